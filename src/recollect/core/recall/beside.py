"""Read beside the own scope: how other scopes are named, and how what is found there is merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import merge

from recollect.core.text.checks import check_scope
from recollect.errors import InvalidInputError
from recollect.models.recall import Cue, Hit, Recollection

MOST_OTHERS = 4
SLASH = "/"
"""No name has one, so it parts agent and user."""


def check_also(also: Sequence[str]) -> None:
    """Refuse too many scopes, or what can be none."""
    if len(also) > MOST_OTHERS:
        raise InvalidInputError(f"also must hold at most {MOST_OTHERS} items")
    for name in also:
        check_scope(*read_scope_name(name))


def read_scope_name(name: str) -> tuple[str, str]:
    """Read the name of a scope: `agent`, for what it knows without a user, or `agent/user`."""
    agent, _, user = name.partition(SLASH)
    return agent, user


def join(cue: Cue, own: Recollection, others: Mapping[str, Recollection], limit: int) -> Recollection:
    """Merge the hits of several scopes by relevance; each scope's own order stands, and every hit names its scope."""
    found = [own.hits, *([replace(hit, scope=name) for hit in each.hits] for name, each in others.items())]
    hits = tuple(merge_hits(found, rank_newest if cue.blank else rank_relevant))[:limit]
    shown = {hit.memory.id for hit in hits}
    answered = next((each for each in (own, *others.values()) if each.hits), own)
    told = {f"also {name}": f"{len(each.hits)} hits" for name, each in others.items()}
    return replace(
        own,
        hits=hits,
        methods={**own.methods, **told},
        status=answered.status,
        message=answered.message,
        accessed=tuple(each for made in (own, *others.values()) for each in made.accessed if each in shown),
        milliseconds=own.milliseconds + max((each.milliseconds for each in others.values()), default=0.0),
    )


def merge_hits(found: Iterable[Sequence[Hit]], rank: Callable[[Hit], float]) -> list[Hit]:
    """Merge lists from their heads: the best head comes next, so no list changes its order."""
    keyed = [list(lower(hits, rank)) for hits in found]
    return [hit for _, hit in merge(*keyed, key=lambda pair: -pair[0])]


def lower(hits: Sequence[Hit], rank: Callable[[Hit], float]) -> Iterable[tuple[float, Hit]]:
    """Rank the hits of one scope so that none stands above the one before it."""
    least = float("inf")
    for hit in hits:
        least = min(least, rank(hit))
        yield least, hit


def rank_relevant(hit: Hit) -> float:
    """Rank by what compares across scopes; where one channel ranks alone, by its score."""
    return hit.score if hit.relevance is None else hit.relevance


def rank_newest(hit: Hit) -> float:
    """Rank by time: a cue without text lists the newest first."""
    return hit.memory.occurred_at.timestamp()
