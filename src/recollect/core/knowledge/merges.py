"""Plan the changes of facts when two entities are merged, and when a merge is undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from recollect.core.knowledge.fact_plan import NewVersion
from recollect.core.knowledge.facts import identify, overlap
from recollect.models.knowledge import Fact, FactEnd, ValidTime


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The versions to write, and the versions that end without a successor."""

    changes: tuple[NewVersion, ...]
    closed: tuple[Fact, ...] = ()


def plan_merge(kept: UUID, absorbed: UUID, facts: Iterable[Fact], standing: Iterable[Fact]) -> MergePlan:
    """Move the facts of an absorbed entity to the kept one.

    Facts between the two are closed. A fact that the kept entity already has is not repeated: the moved fact keeps only
    the part of its time that no other one covers.
    """
    taken: dict[object, list[ValidTime]] = {}
    for fact in standing:
        taken.setdefault(identify(fact.subject, fact.predicate, fact.object), []).append(fact.span)
    changes: list[NewVersion] = []
    closed: list[Fact] = []
    for fact in facts:
        subject, object_ = (kept if end == absorbed else end for end in (fact.subject, fact.object))
        span = find_remainder(fact.span, taken.get(identify(subject, fact.predicate, object_), []))
        if subject == object_ or span is None:
            closed.append(fact)
        else:
            moved = replace(fact, subject=subject, object=object_, span=span, version=fact.version + 1)
            changes.append(NewVersion(moved, fact, ()))
    return MergePlan(tuple(changes), tuple(closed))


def find_remainder(span: ValidTime, taken: Iterable[ValidTime]) -> ValidTime | None:
    """Return the first part of a span that others do not cover; None if there is none."""
    for other in sorted(taken, key=lambda each: (each.valid_at is not None, each.valid_at)):
        if not overlap(span, other):
            continue
        if other.valid_at is not None and (span.valid_at is None or span.valid_at < other.valid_at):
            return replace(span, invalid_at=other.valid_at)
        if other.invalid_at is None or (span.invalid_at is not None and span.invalid_at <= other.invalid_at):
            return None
        span = replace(span, valid_at=other.invalid_at)
    return span


@dataclass(frozen=True, slots=True)
class EndedMerge:
    """A merge to undo: the entity that gets its facts back, the one that has them, and the time."""

    absorbed: UUID
    kept: UUID
    """The entity that now has the facts: the absorbing one, or the one that absorbed that one."""
    merged_at: datetime


def plan_split(merge: EndedMerge, ended: Iterable[Fact], believed: Mapping[UUID, Fact]) -> MergePlan:
    """Return the facts of an absorbed entity to it, in their present state.

    `ended` are the versions that the merge replaced, `believed` the present versions of their facts.
    """
    changes = []
    for was in ended:
        now = believed.get(was.id)
        before = now or was
        subject = find_end(merge, was.subject, before.subject)
        object_ = find_end(merge, was.object, before.object)
        if subject is None or object_ is None:
            continue
        untouched = now is None or now.created_at == merge.merged_at
        span = was.span if untouched else before.span
        back = replace(
            before, subject=subject, object=object_, span=span, version=before.version + 1, superseded_at=None
        )
        changes.append(NewVersion(back, before, ()))
    return MergePlan(tuple(changes))


def find_end(merge: EndedMerge, was: FactEnd, now: FactEnd) -> FactEnd | None:
    """Return the end of a fact after a split; None if it moved to yet another entity."""
    if was != merge.absorbed:
        return now
    return was if now in {was, merge.kept} else None
