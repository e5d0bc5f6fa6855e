"""Recall from extra scopes: their names, and how their hits are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import merge

from recollect.core.text.checks import check_scope
from recollect.errors import InvalidInputError
from recollect.models.recall import Cue, Hit, RecallResult

MAX_EXTRA_SCOPES = 4
SLASH = "/"
"""Not allowed in names, so it separates agent and user."""


def check_also(also: Sequence[str]) -> None:
    """Refuse too many scopes, or invalid names."""
    if len(also) > MAX_EXTRA_SCOPES:
        raise InvalidInputError(f"also must have at most {MAX_EXTRA_SCOPES} items")
    for name in also:
        check_scope(*read_scope_name(name))


def read_scope_name(name: str) -> tuple[str, str]:
    """Parse the name of a scope: `agent` (without a user) or `agent/user`."""
    agent, _, user = name.partition(SLASH)
    return agent, user


def join(cue: Cue, own: RecallResult, others: Mapping[str, RecallResult], limit: int) -> RecallResult:
    """Merge the hits of several scopes by relevance.

    The order within each scope stays, and every hit has its scope.
    """
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
    """Merge lists by their first elements, the best one first, so that no list changes its order."""
    keyed = [list(lower(hits, rank)) for hits in found]
    return [hit for _, hit in merge(*keyed, key=lambda pair: -pair[0])]


def lower(hits: Sequence[Hit], rank: Callable[[Hit], float]) -> Iterable[tuple[float, Hit]]:
    """Limit the rank of each hit to the rank of the previous one."""
    least = float("inf")
    for hit in hits:
        least = min(least, rank(hit))
        yield least, hit


def rank_relevant(hit: Hit) -> float:
    """Return a rank that is comparable across scopes: the relevance, or else the score."""
    return hit.score if hit.relevance is None else hit.relevance


def rank_newest(hit: Hit) -> float:
    """Return a rank by time: without text, the newest hits come first."""
    return hit.memory.occurred_at.timestamp()
