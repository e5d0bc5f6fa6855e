"""Turn a caller's verdict on the hits of a recall into marks with the factors that the hits were ranked by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from recollect.core.text.checks import MOST_HITS
from recollect.errors import InvalidInputError
from recollect.models.agents import Feedback, Mark
from recollect.models.recall import Factors, Recollection

STREAM = "stream"
MOST_CANDIDATES = 2**31 - 1


def judge(recollection: Recollection, useful: Sequence[UUID], useless: Sequence[UUID] | None) -> Feedback:
    """Mark hits as useful or useless; where the useless are not named, they are all the others of the stream."""
    ranked = {
        hit.memory.id: part.factors
        for hit in recollection.hits
        if (part := hit.channels.get(STREAM)) is not None and part.factors is not None
    }
    tally = recollection.tallies.get(STREAM)
    if not ranked or tally is None:
        raise InvalidInputError("feedback needs a recollection with hits of the channel `stream`")
    rest = [memory_id for memory_id in ranked if memory_id not in set(useful)] if useless is None else useless
    both = set(useful) & set(rest)
    if both:
        raise InvalidInputError("a memory must not be marked both useful and useless")
    verdicts = dict.fromkeys(useful, True) | dict.fromkeys(rest, False)
    marks = tuple(Mark(memory_id, verdict, factors_of(ranked, memory_id)) for memory_id, verdict in verdicts.items())
    return Feedback(marks, tally.candidates, recollection.recall_id)


def factors_of(ranked: Mapping[UUID, Factors], memory_id: UUID) -> Factors:
    """Look up the factors of a hit; what the stream did not rank teaches nothing about its weights."""
    if memory_id not in ranked:
        raise InvalidInputError("useful and useless must name hits that the channel `stream` ranked")
    return ranked[memory_id]


def check_feedback(feedback: Feedback) -> None:
    """Refuse marks that cannot come from a recall."""
    if not 1 <= len(feedback.marks) <= MOST_HITS:
        raise InvalidInputError(f"marks must hold 1 to {MOST_HITS} items")
    if len({mark.memory_id for mark in feedback.marks}) < len(feedback.marks):
        raise InvalidInputError("marks must not name a memory twice")
    if not 1 <= feedback.candidates <= MOST_CANDIDATES:
        raise InvalidInputError(f"candidates must be between 1 and {MOST_CANDIDATES}")
    for mark in feedback.marks:
        factors = mark.factors
        if not all(0 <= factor <= 1 for factor in (factors.recency, factors.similarity, factors.importance)):
            raise InvalidInputError("recency, similarity and importance must be between 0 and 1")
        if not 0 <= factors.rank <= feedback.candidates:
            raise InvalidInputError("rank must be between 0 and the number of candidates")
