"""Decide whether to delete or rebuild derived memories after a purge, and restate them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.core.text.answers import AnswerSchema, tidy
from recollect.core.text.checks import LONGEST_NAME
from recollect.models.memories import Kind, NewMemory, Triple

LONGEST_INSIGHT = 2_000


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is deleted together with purged memories, and what must be derived again."""

    gone: frozenset[UUID]
    """Derived memories of which no evidence is left."""
    to_rederive: frozenset[UUID]
    """Derived memories with some evidence left: what they say may come from what is gone."""
    lost: frozenset[UUID]
    """The evidence that those to rederive lose."""


def decide(purged: Collection[UUID], evidence: Mapping[UUID, Collection[UUID]]) -> Erasure:
    """Sort derived memories, each given with all its evidence, by what is left of it after a purge."""
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
    """What the remaining notes say together, in one sentence and in three short parts."""

    text: str
    subject: str
    predicate: str
    object: str


def restate(answer: Restatement, kind: Kind, importance: float, occurred_at: datetime) -> NewMemory | None:
    """Turn a model's statement of the remaining notes into a memory; None if it says nothing."""
    text = tidy(answer.text, LONGEST_INSIGHT)
    if not text:
        return None
    parts = (tidy(part, LONGEST_NAME) for part in (answer.subject, answer.predicate, answer.object))
    return NewMemory(text, kind, importance=importance, triple=Triple(*parts), occurred_at=occurred_at)
