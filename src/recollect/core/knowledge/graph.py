"""Compute on facts as a graph: how near a fact is, who is reached how, which paths join two entities.

Facts point from subject to object and are followed either way: that Ada works at Acme says something of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from recollect.core.text.names import normalise_name
from recollect.core.text.terms import UNSPACED
from recollect.core.text.variants import text_version
from recollect.core.text.words import QUESTION_WORDS, STOP_WORDS

DECAY = 0.5
"""The share of nearness that each hop keeps: one hop away half, two hops away a quarter."""
FAN = 10
"""One hop may always follow so many facts of an entity in either direction, as `walk_facts` does."""
MOST_PIECES = 64
"""Of a longer cue the last pieces are read: in a dialogue the newest words matter most."""
LONGEST_NAME = 8
"""Names of more words, or characters where words are not spaced, are not found in a cue."""
MOST_TRIES = 20_000
"""How many steps a search for paths may take before it returns what it has."""
PIECE = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
SHORTEST_SPELLED, MOST_SPELLED = 5, 4
"""Only words of so many letters are compared by spelling, and only so many of a cue: each is a search of its own."""
BY_MEANING, BY_HIT = 0.35, 0.3
"""What a start counts that the cue does not name: its cosine times this, or this. Less than what any fact scores
that is reached from a name, so that a score tells the two apart."""


@dataclass(frozen=True, slots=True)
class FollowedFact:
    """A fact that a walk followed: the hop, and from which end to which."""

    memory_id: UUID
    hop: int
    source: UUID
    target: UUID


@dataclass(frozen=True, slots=True)
class NameSpan:
    """What may be a name in a cue, normalised: from which piece to which."""

    name: str
    first: int
    last: int


def spread(starts: Mapping[UUID, float], steps: Iterable[FollowedFact]) -> dict[UUID, float]:
    """Return how near each entity is: a start as much as it counts, and half as much with every hop."""
    near = dict(starts)
    for step in sorted(steps, key=lambda step: step.hop):
        near[step.target] = max(near.get(step.target, 0.0), near[step.source] * DECAY)
    return near


def measure_depths(starts: Iterable[UUID], steps: Iterable[FollowedFact]) -> dict[UUID, int]:
    """Return the hops from each entity to the nearest start."""
    depths = dict.fromkeys(starts, 0)
    for step in sorted(steps, key=lambda step: step.hop):
        depths.setdefault(step.target, step.hop)
    return depths


def find_leaders(starts: Iterable[UUID], steps: Iterable[FollowedFact]) -> dict[UUID, FollowedFact]:
    """Return the step that led to each entity first; of one hop the first given counts."""
    leaders: dict[UUID, FollowedFact] = {}
    known = set(starts)
    for step in sorted(steps, key=lambda step: step.hop):
        if step.target not in known:
            known.add(step.target)
            leaders[step.target] = step
    return leaders


def is_whole(starts: Sequence[UUID], steps: Iterable[FollowedFact], beam: int) -> bool:
    """Tell whether a walk certainly followed everything, because no hop came near its limits."""
    followed = list(steps)
    depths = measure_depths(starts, followed)
    for hop in {step.hop for step in followed}:
        frontier = sum(depth == hop - 1 for depth in depths.values())
        taken = sum(step.hop == hop for step in followed)
        if taken >= min(beam, max(FAN, beam // frontier)):
            return False
    return True


def rate(near: float, other: float) -> float:
    """Rate how near a fact is by its two ends: 1 between two named entities, 0.75 next to one of them."""
    return (near + other) / 2


def find_paths(
    steps: Iterable[FollowedFact], start: UUID, end: UUID, hops: int, limit: int
) -> list[list[FollowedFact]]:
    """List the paths that meet no entity twice, the shortest first; between two entities the newest fact stands."""
    joined = _join(steps)
    distances = _measure(joined, end)
    found: list[list[FollowedFact]] = []
    tries = iter(range(MOST_TRIES))
    for length in range(distances.get(start, hops + 1), hops + 1):
        for path in _search(joined, distances, (start, end), length, tries):
            found.append(path)
            if len(found) == limit:
                return found
    return found


def spot_names(text: str) -> tuple[NameSpan, ...]:
    """List what may be a name in a cue: runs of words, and of single characters where words are not spaced."""
    return _spot_names(text, text_version())


@lru_cache(maxsize=64)
def _spot_names(text: str, _version: int) -> tuple[NameSpan, ...]:
    """Spot names as they are folded by a version: one recall asks for entities that are named, and for speakers."""
    pieces = list(PIECE.finditer(text))
    first = max(0, len(pieces) - MOST_PIECES)
    found: dict[NameSpan, None] = {}
    for begin in range(first, len(pieces)):
        for end in range(begin, min(begin + LONGEST_NAME, len(pieces))):
            name = normalise_name(text[pieces[begin].start() : pieces[end].end()])
            if name:
                found[NameSpan(name, begin, end)] = None
    return tuple(found)


def spot_spellings(text: str) -> list[str]:
    """List what may be a name with a slip in it: the longest words and pairs of words, those with a capital first."""
    pieces = [piece.group() for piece in PIECE.finditer(text)][-MOST_PIECES:]
    names = [normalise_name(piece) for piece in pieces]
    kept = [len(name) > 1 and name not in STOP_WORDS and name not in QUESTION_WORDS for name in names]
    found: dict[str, bool] = {}
    for place, (piece, name) in enumerate(zip(pieces, names, strict=True)):
        if kept[place]:
            found[name] = piece[:1].isupper()
            if place and kept[place - 1]:
                found[f"{names[place - 1]} {name}"] = piece[:1].isupper() and pieces[place - 1][:1].isupper()
    spelled = [name for name in found if len(name) >= SHORTEST_SPELLED]
    return sorted(spelled, key=lambda name: (not found[name], -len(name), name))[:MOST_SPELLED]


def _join(steps: Iterable[FollowedFact]) -> dict[UUID, dict[UUID, FollowedFact]]:
    """List for each entity its neighbours, and the facts that lead there, both ways; the newest fact first."""
    joined: dict[UUID, dict[UUID, FollowedFact]] = {}
    for step in sorted(steps, key=lambda step: step.memory_id, reverse=True):
        back = FollowedFact(step.memory_id, step.hop, step.target, step.source)
        joined.setdefault(step.source, {}).setdefault(step.target, step)
        joined.setdefault(step.target, {}).setdefault(step.source, back)
    return joined


def _measure(joined: Mapping[UUID, Mapping[UUID, FollowedFact]], end: UUID) -> dict[UUID, int]:
    """Say how far each entity is from the end."""
    distances, frontier, distance = {end: 0}, [end], 0
    while frontier:
        distance += 1
        reached = (other for entity in frontier for other in joined.get(entity, {}))
        frontier = [other for other in dict.fromkeys(reached) if other not in distances]
        distances |= dict.fromkeys(frontier, distance)
    return distances


def _search(
    joined: Mapping[UUID, Mapping[UUID, FollowedFact]],
    distances: Mapping[UUID, int],
    ends: tuple[UUID, UUID],
    length: int,
    tries: Iterator[int],
) -> Iterator[list[FollowedFact]]:
    """Try every path of one length that can still arrive, until the steps are used up."""
    start, end = ends
    waiting: list[tuple[FollowedFact, ...]] = [()]
    while waiting and next(tries, None) is not None:
        path = waiting.pop()
        here = path[-1].target if path else start
        left = length - len(path)
        if here == end and not left:
            yield list(path)
        if here == end or not left:
            continue
        met = {start, *(step.target for step in path)}
        waiting += [
            (*path, step)
            for other, step in list(joined.get(here, {}).items())[::-1]
            if other not in met and distances.get(other, length) < left
        ]
