"""Write facts in the current transaction, known or new, in order of time among contradicted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.knowledge.fact_plan import NewVersion, ParsedFact, Plan, find_clashes, plan
from recollect.core.knowledge.facts import assume_start, check_span
from recollect.errors import InvalidInputError
from recollect.models.knowledge import Fact, FactEnd, ValidTime
from recollect.models.memories import NewMemory
from recollect.models.service import Caller, EmbeddingSpace, Scope
from recollect.store.database.pool import Connection
from recollect.store.knowledge import facts
from recollect.store.knowledge.facts import FADED, Version, VersionQuery
from recollect.store.memories import memories
from recollect.store.memories.columns import Row
from recollect.store.service import scopes
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.memories.rows import Write, assign, count, find_source, pair_vectors, prepare, store_vectors

Sources = dict[UUID | int, memories.Source]


@dataclass(frozen=True, slots=True)
class FactWriteRow:
    """A fact to write: its memory, its entities, and the facts that it contradicts."""

    id: UUID
    """Only used within the call."""
    memory: NewMemory
    subject: UUID
    object: UUID
    span: ValidTime
    contradicted: tuple[UUID, ...] = ()
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class FactWrite:
    """The caller and the scope, which is open for writing."""

    caller: Caller
    scope: Scope
    opening: scopes.LockedScope
    space: EmbeddingSpace | None

    @property
    def moment(self) -> datetime:
        """Return the time from which the fact is believed."""
        return self.opening.written_at


async def open_fact_write(connection: Connection, caller: Caller, scope: Scope) -> FactWrite:
    """Lock the scope, so that concurrent writes see each other's result."""
    opened = await scopes.ask_opening(connection, scope)
    asked = await scopes.ask_place(connection, scope.agent, scope.user)
    opening = await scopes.read_opening(opened)
    return FactWrite(caller, scope, opening, (await scopes.read_place(asked)).space)


async def add_facts(
    parts: Dependencies, connection: Connection, fact_write: FactWrite, taken: Sequence[FactWriteRow]
) -> list[Fact]:
    """Write the changes of several statements; return for each its currently believed version."""
    scope_id = fact_write.opening.scope_id
    named = await memories.ask_sources(connection, fact_write.scope, [each.memory for each in taken])
    wanted = VersionQuery(
        pairs=[(each.subject, each.object) for each in taken],
        lineages=[lineage for each in taken for lineage in each.contradicted],
    )
    known = await facts.fetch_versions(connection, scope_id, wanted)
    sources = await memories.read_sources(named)
    visible = {version.fact.id: version for version in known if not version.hidden}
    stated = [to_stated(each, visible, fact_write.moment) for each in taken]
    faded = {version.fact.id for version in visible.values() if version.withheld == FADED}
    planned = plan(stated, [version.fact for version in visible.values()], fact_write.moment, faded)
    clashes = find_clashes(
        [change.fact for change in planned.changes], [version.fact for version in known if version.hidden]
    )
    over = [version.id for version in known if version.fact in clashes]
    written = await write_fact_versions(
        parts, connection, fact_write, PlannedFacts(taken, planned, visible, sources, over)
    )
    await note_evidence(connection, scope_id, PlannedFacts(taken, planned, visible, sources), written)
    return [written.get(lineage) or visible[lineage].fact for lineage in planned.outcomes]


def to_stated(each: FactWriteRow, visible: Mapping[UUID, Version], moment: datetime) -> ParsedFact:
    """Date a statement, and find the facts that it contradicts."""
    check_span(each.span)
    span = assume_start(each.span, each.memory.occurred_at or moment)
    ends: tuple[FactEnd, FactEnd] = (each.subject, each.object)
    predicate = each.memory.triple.predicate
    fact = Fact(each.id, ends[0], predicate, ends[1], each.memory.content, span, created_at=moment)
    contradicted = tuple(find_named(visible, name) for name in each.contradicted)
    return ParsedFact(fact, contradicted)


def find_named(visible: Mapping[UUID, Version], name: UUID) -> UUID:
    """Find the fact of an ID, or raise an error."""
    for lineage, version in visible.items():
        if version.is_named(name):
            return lineage
    raise InvalidInputError("replaces must be fact or version IDs of the same scope")


@dataclass(frozen=True, slots=True)
class PlannedFacts:
    """The planned changes, and their sources."""

    taken: Sequence[FactWriteRow]
    plan: Plan
    visible: Mapping[UUID, Version]
    sources: Sources
    over: Sequence[UUID] = ()
    """Hidden versions to supersede, because the same statement is stated again."""


async def write_fact_versions(
    parts: Dependencies, connection: Connection, fact_write: FactWrite, batch: PlannedFacts
) -> dict[UUID, Fact]:
    """Write the planned versions, and supersede and withhold the old ones; return them by lineage."""
    scope_id, moment = fact_write.opening.scope_id, fact_write.moment
    changes = batch.plan.changes
    if not changes:
        return {}
    new = [change for change in changes if change.before is None]
    positions = {change.fact.id: position for position, change in enumerate(new)}
    wording = [word(change, batch, positions) for change in changes]
    sources = batch.sources | {version.id: version.source for version in batch.visible.values()}
    vectors = gather_vectors(batch.taken, new)
    work = Write(fact_write.caller, fact_write.scope, [prepare(memory) for memory in wording], vectors, "", b"")
    rows = assign(work, fact_write.opening, sources)
    elders = [batch.visible[change.fact.id].id for change in changes if change.before is not None]
    await facts.supersede(connection, scope_id, [*elders, *batch.over], moment)
    await memories.store_memories(connection, scope_id, fact_write.caller.origin, moment, rows)
    written = [number(change, row, moment) for change, row in zip(changes, rows, strict=True)]
    await facts.store_beliefs(
        connection, scope_id, [(row.id, fact) for row, fact in zip(rows, written, strict=True)], moment
    )
    await scopes.close_writing(connection, scope_id, count(work.prepared), moment)
    first = rows[: len(new)]
    chosen = pair_vectors(parts, replace(work, prepared=work.prepared[: len(new)]), fact_write.space)
    await store_vectors(connection, scope_id, fact_write.space, first, chosen)
    heirs = [(row.id, elder) for row, elder in zip(rows[len(new) :], elders, strict=True)]
    await facts.inherit_vectors(connection, scope_id, heirs)
    past = [fact.memory_id for fact in written if is_over(fact.span, moment) and fact.memory_id is not None]
    await facts.exclude_from_recall(connection, scope_id, [*elders, *past])
    return {change.fact.id: fact for change, fact in zip(changes, written, strict=True)}


def word(change: NewVersion, batch: PlannedFacts, positions: Mapping[UUID, int]) -> NewMemory:
    """Create the memory of a version.

    A later version has the text of the previous one; its evidence is the previous one and its cause.
    """
    if change.before is None:
        return batch.taken[change.causes[0]].memory
    before = batch.visible[change.fact.id]
    causes: list[UUID | int] = [before.id]
    for position in change.causes:
        outcome = batch.plan.outcomes[position]
        if outcome == change.fact.id:
            causes += batch.taken[position].memory.evidence
        else:
            causes.append(positions[outcome] if outcome in positions else batch.visible[outcome].id)
    return replace(before.memory, evidence=tuple(dict.fromkeys(causes)))


def gather_vectors(taken: Sequence[FactWriteRow], new: Sequence[NewVersion]) -> NDArray[np.float32] | None:
    """Stack the vectors of new facts; None if one is missing: then a job embeds them."""
    rows = [taken[change.causes[0]].vector for change in new]
    present = [row for row in rows if row is not None]
    return np.stack(present) if present and len(present) == len(rows) else None


def number(change: NewVersion, row: Row, moment: datetime) -> Fact:
    """Set the ID of a version to that of its memory; a new fact has the ID of its first version."""
    lineage = row.id if change.before is None else change.fact.id
    triple = row.memory.triple
    named = replace(change.fact, subject_name=triple.subject, object_name=triple.object)
    return replace(named, id=lineage, memory_id=row.id, created_at=moment)


def is_over(span: ValidTime, moment: datetime) -> bool:
    """Return whether a span has ended."""
    return span.invalid_at is not None and span.invalid_at <= moment


async def note_evidence(
    connection: Connection, scope_id: int, batch: PlannedFacts, written: Mapping[UUID, Fact]
) -> None:
    """Add evidence to a known fact that did not change."""
    pairs = []
    for each, lineage in zip(batch.taken, batch.plan.outcomes, strict=True):
        named = [find_source(batch.sources, source).id for source in each.memory.evidence]
        if lineage not in written:
            pairs += [(batch.visible[lineage].id, source) for source in named]
        elif lineage not in batch.visible and written[lineage].memory_id is not None:
            pairs += [(written[lineage].memory_id or lineage, source) for source in named]
    await facts.add_evidence(connection, scope_id, pairs)
