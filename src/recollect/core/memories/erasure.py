"""Decide whether to delete or rebuild derived memories after a purge, and restate them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.core.text.answers import AnswerSchema, tidy
from recollect.core.text.checks import MAX_NAME_LENGTH
from recollect.models.memories import Kind, NewMemory, Triple

MAX_INSIGHT_LENGTH = 2_000


@dataclass(frozen=True, slots=True)
class Erasure:
    """The memories to delete together with purged ones, and the memories to derive again."""

    gone: frozenset[UUID]
    """Derived memories without remaining evidence."""
    to_rederive: frozenset[UUID]
    """Derived memories with some remaining evidence: their content may come from deleted memories."""
    lost: frozenset[UUID]
    """The evidence that the memories to rederive lose."""


def decide(purged: Collection[UUID], evidence: Mapping[UUID, Collection[UUID]]) -> Erasure:
    """Sort derived memories by their remaining evidence after a purge.

    `evidence` contains all evidence of each derived memory.
    """
    out = set(purged)
    while without := {memory for memory, sources in evidence.items() if memory not in out and out.issuperset(sources)}:
        out |= without
    touched = set(out)
    left = {memory: sources for memory, sources in evidence.items() if memory not in out}
    while doubtful := {
        memory for memory, sources in left.items() if memory not in touched and not touched.isdisjoint(sources)
    }:
        touched |= doubtful
    to_rederive = touched - out
    lost = {source for memory in to_rederive for source in evidence[memory] if source in out}
    return Erasure(frozenset(out.intersection(evidence)), frozenset(to_rederive), frozenset(lost))


class Restatement(AnswerSchema):
    """The common statement of the remaining notes, as one sentence and as three short parts."""

    text: str
    subject: str
    predicate: str
    object: str


def restate(answer: Restatement, kind: Kind, importance: float, occurred_at: datetime) -> NewMemory | None:
    """Convert a model's restatement to a memory; None if it is empty."""
    text = tidy(answer.text, MAX_INSIGHT_LENGTH)
    if not text:
        return None
    parts = (tidy(part, MAX_NAME_LENGTH) for part in (answer.subject, answer.predicate, answer.object))
    return NewMemory(text, kind, importance=importance, triple=Triple(*parts), occurred_at=occurred_at)
