"""Graph calculations on facts: how near facts and entities are, and which paths join two entities.

Facts point from subject to object, but are followed both ways: "Ada works at Acme" is about both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from recollect.core.text.names import normalize_name
from recollect.core.text.terms import UNSPACED
from recollect.core.text.words import QUESTION_WORDS, STOP_WORDS

DECAY = 0.5
"""The share of nearness that each hop keeps: 1/2 after one hop, 1/4 after two hops."""
FAN = 10
"""One hop can always follow this number of facts of an entity in either direction, as in `walk_facts`."""
MAX_PIECES = 64
"""Maximum number of pieces to read from the end of a cue: in a dialogue the newest words matter most."""
MAX_NAME_LENGTH = 8
"""Maximum length of a name in a cue: in words, or in characters for scripts without spaces."""
MAX_SEARCH_STEPS = 20_000
"""Maximum number of steps of a search for paths; then it returns the paths found."""
PIECE = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
MIN_SPELLED, MAX_SPELLED = 5, 4
"""Only words with this minimum of letters are compared by spelling, and only this maximum of them: each needs a
search."""
BY_MEANING, BY_HIT = 0.35, 0.3
"""Weights of a start that the cue does not name: its cosine times BY_MEANING, or BY_HIT. Both are below the score of
any fact reached from a name, so that scores show the difference."""


@dataclass(frozen=True, slots=True)
class FollowedFact:
    """A fact that a walk followed: the hop, and the ends in the direction of the walk."""

    memory_id: UUID
    hop: int
    source: UUID
    target: UUID


@dataclass(frozen=True, slots=True)
class NameSpan:
    """A possible name in a cue, normalized, with its first and last piece."""

    name: str
    first: int
    last: int


def spread(starts: Mapping[UUID, float], steps: Iterable[FollowedFact]) -> dict[UUID, float]:
    """Return how near each entity is: a start has its weight, and each hop halves the value."""
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
    """Return the first step that reached each entity; within one hop, the first given."""
    leaders: dict[UUID, FollowedFact] = {}
    known = set(starts)
    for step in sorted(steps, key=lambda step: step.hop):
        if step.target not in known:
            known.add(step.target)
            leaders[step.target] = step
    return leaders


def is_whole(starts: Sequence[UUID], steps: Iterable[FollowedFact], beam: int) -> bool:
    """Return whether a walk certainly followed all facts, because no hop came near its limits."""
    followed = list(steps)
    depths = measure_depths(starts, followed)
    for hop in {step.hop for step in followed}:
        frontier = sum(depth == hop - 1 for depth in depths.values())
        taken = sum(step.hop == hop for step in followed)
        if taken >= min(beam, max(FAN, beam // frontier)):
            return False
    return True


def rate(near: float, other: float) -> float:
    """Rate how near a fact is by its two ends: 1 between two named entities, 0.75 next to one."""
    return (near + other) / 2


def find_paths(
    steps: Iterable[FollowedFact], start: UUID, end: UUID, hops: int, limit: int
) -> list[list[FollowedFact]]:
    """List the paths that meet no entity twice, the shortest first.

    Between two entities, only the newest fact is used.
    """
    joined = _join(steps)
    distances = _measure(joined, end)
    found: list[list[FollowedFact]] = []
    tries = iter(range(MAX_SEARCH_STEPS))
    for length in range(distances.get(start, hops + 1), hops + 1):
        for path in _search(joined, distances, (start, end), length, tries):
            found.append(path)
            if len(found) == limit:
                return found
    return found


@lru_cache(maxsize=64)
def spot_names(text: str) -> tuple[NameSpan, ...]:
    """List possible names in a cue: runs of words, and of characters in scripts without spaces.

    Cached, because one recall uses it twice: for entities and for speakers.
    """
    pieces = list(PIECE.finditer(text))
    first = max(0, len(pieces) - MAX_PIECES)
    found: dict[NameSpan, None] = {}
    for begin in range(first, len(pieces)):
        for end in range(begin, min(begin + MAX_NAME_LENGTH, len(pieces))):
            name = normalize_name(text[pieces[begin].start() : pieces[end].end()])
            if name:
                found[NameSpan(name, begin, end)] = None
    return tuple(found)


def spot_spellings(text: str) -> list[str]:
    """List possible misspelled names: the longest words and pairs of words, capitalized ones first."""
    pieces = [piece.group() for piece in PIECE.finditer(text)][-MAX_PIECES:]
    names = [normalize_name(piece) for piece in pieces]
    kept = [len(name) > 1 and name not in STOP_WORDS and name not in QUESTION_WORDS for name in names]
    found: dict[str, bool] = {}
    for place, (piece, name) in enumerate(zip(pieces, names, strict=True)):
        if kept[place]:
            found[name] = piece[:1].isupper()
            if place and kept[place - 1]:
                found[f"{names[place - 1]} {name}"] = piece[:1].isupper() and pieces[place - 1][:1].isupper()
    spelled = [name for name in found if len(name) >= MIN_SPELLED]
    return sorted(spelled, key=lambda name: (not found[name], -len(name), name))[:MAX_SPELLED]


def _join(steps: Iterable[FollowedFact]) -> dict[UUID, dict[UUID, FollowedFact]]:
    """Return for each entity its neighbors and the newest fact that leads there, both ways."""
    joined: dict[UUID, dict[UUID, FollowedFact]] = {}
    for step in sorted(steps, key=lambda step: step.memory_id, reverse=True):
        back = FollowedFact(step.memory_id, step.hop, step.target, step.source)
        joined.setdefault(step.source, {}).setdefault(step.target, step)
        joined.setdefault(step.target, {}).setdefault(step.source, back)
    return joined


def _measure(joined: Mapping[UUID, Mapping[UUID, FollowedFact]], end: UUID) -> dict[UUID, int]:
    """Return the distance of each entity from the end."""
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
    """Yield every path of one length that can reach the end, until the steps are used up."""
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
