"""Convert a caller's verdict on the hits of a recall into marks with the ranking data of the hits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from uuid import UUID

from recollect.core.recall.weights import NAMES
from recollect.core.text.checks import MAX_HITS
from recollect.errors import InvalidInputError
from recollect.models.agents import Feedback, HitFeedback
from recollect.models.recall import Factors, Hit, RecallResult

STREAM = "stream"
MAX_CANDIDATES = 2**31 - 1


def judge(recollection: RecallResult, useful: Sequence[UUID], useless: Sequence[UUID] | None) -> Feedback:
    """Mark hits as useful or useless.

    If `useless` is None, all other hits of the own scope are useless.
    """
    hits = {hit.memory.id: hit for hit in recollection.hits if not hit.scope}
    if not hits:
        raise InvalidInputError("feedback() needs a recall result with hits from this scope")
    rest = [memory_id for memory_id in hits if memory_id not in set(useful)] if useless is None else useless
    if set(useful) & set(rest):
        raise InvalidInputError("a memory cannot be both useful and useless")
    verdicts = dict.fromkeys(useful, True) | dict.fromkeys(rest, False)
    if unknown := verdicts.keys() - hits.keys():
        raise InvalidInputError(f"useful and useless must name hits of the recollection: {min(unknown)} is none")
    tally = recollection.tallies.get(STREAM)
    marks = tuple(mark(hits[memory_id], useful=verdict) for memory_id, verdict in verdicts.items())
    return Feedback(marks, tally.candidates if tally else None, recollection.recall_id, recollection.facets.script)


def mark(hit: Hit, *, useful: bool) -> HitFeedback:
    """Mark a hit.

    A single channel has the whole score, which gives no information about its weight, so its share is omitted.
    """
    stream = hit.channels.get(STREAM)
    shares = {name: part.share for name, part in hit.channels.items()} | dict(hit.preferences)
    told = {name: share for name, share in shares.items() if name in NAMES and share}
    alone = hit.relevance is None and len(hit.channels) == 1
    return HitFeedback(hit.memory.id, useful, stream.factors if stream else None, {} if alone else told)


def check_feedback(feedback: Feedback) -> None:
    """Refuse marks that cannot come from a recall."""
    if not 1 <= len(feedback.marks) <= MAX_HITS:
        raise InvalidInputError(f"marks must have 1 to {MAX_HITS} items")
    if len({mark.memory_id for mark in feedback.marks}) < len(feedback.marks):
        raise InvalidInputError("marks must not repeat a memory")
    if feedback.candidates is not None and not 1 <= feedback.candidates <= MAX_CANDIDATES:
        raise InvalidInputError(f"candidates must be between 1 and {MAX_CANDIDATES}")
    for each in feedback.marks:
        if each.factors is not None:
            check_factors(each.factors, feedback.candidates)
        elif not each.shares:
            raise InvalidInputError("a mark needs stream factors or channel shares")
        check_shares(each.shares)


def check_factors(factors: Factors, candidates: int | None) -> None:
    """Refuse factors that the stream cannot have computed."""
    if candidates is None:
        raise InvalidInputError("candidates is required when marks have stream factors")
    if not all(0 <= factor <= 1 for factor in (factors.recency, factors.similarity, factors.importance)):
        raise InvalidInputError("recency, similarity and importance must be between 0 and 1")
    if not 0 <= factors.rank <= candidates:
        raise InvalidInputError("rank must be between 0 and the number of candidates")


def check_shares(shares: Mapping[str, float]) -> None:
    """Refuse shares that no ranking can have computed."""
    if unknown := sorted(shares.keys() - NAMES):
        raise InvalidInputError(f"shares: there is no channel or preference {unknown[0]!r}")
    if not all(math.isfinite(share) and -1 <= share <= 1 for share in shares.values()):
        raise InvalidInputError("shares must be between -1 and 1")
