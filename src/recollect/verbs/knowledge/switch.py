"""Switch: replace the extracted knowledge by the result of a run, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.knowledge.fact_plan import NewVersion, Plan
from recollect.core.knowledge.rerun import separate_spans
from recollect.errors import ConflictError
from recollect.store.database.pool import Connection
from recollect.store.knowledge import facts, reruns, segments
from recollect.store.knowledge.facts import VersionQuery
from recollect.store.knowledge.segments import ClosedSegment
from recollect.store.memories import memories
from recollect.store.service import scopes
from recollect.store.topics import topics
from recollect.verbs.knowledge.enrich import EnrichJob
from recollect.verbs.knowledge.steps.draft import StepContext, Write
from recollect.verbs.knowledge.steps.link import state_waiting
from recollect.verbs.knowledge.steps.staged import StagedStatements
from recollect.verbs.knowledge.write_facts import FactWrite, PlannedFacts, open_fact_write, write_fact_versions
from recollect.verbs.memories.rows import PreparedMemory, assign, count, pair_vectors, store_vectors
from recollect.verbs.memories.rows import Write as MemoryWrite

AT_ONCE = 500
RUN_SUPERSEDED = "Another process has switched to this run or another one. Check the plan again."


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """The result of a run for one segment, ready to be written."""

    closed: ClosedSegment
    label: str
    summary: PreparedMemory | None
    vector: NDArray[np.float32] | None
    """The vector of the summary, if the embedder returned it in time."""
    writes: tuple[Write, ...]


@dataclass(frozen=True, slots=True)
class SwitchReport:
    """The changes of a switch."""

    segments: int
    replaced: int


async def switch(
    work: EnrichJob, context: StepContext, staged: StagedStatements, built: Sequence[SegmentResult]
) -> SwitchReport:
    """Write the whole result of a run, or nothing; segments that lost a message stay unchanged."""
    async with work.parts.database.transaction(work.scope.tenant_id, pipelined=False) as connection:
        fact_write = await open_fact_write(connection, context.caller, context.scope)
        if not await reruns.lock_run(connection, work.scope_id, staged.run_id):
            raise ConflictError(RUN_SUPERSEDED)
        held = await reruns.lock_ready_segments(
            connection, work.scope_id, staged.run_id, [each.closed.id for each in built]
        )
        ready = [each for each in built if each.closed.id in held]
        if not ready:
            return SwitchReport(0, 0)
        ids = [each.closed.id for each in ready]
        replaced = await supersede_segment_facts(work, connection, fact_write, ids)
        await reruns.mark_old_mentions(connection, work.scope_id, ids)
        staged.fact_write = fact_write
        for each in ready:
            for one in each.writes:
                await one(connection, work.scope_id)
        await state_waiting(connection, context, staged)
        await reruns.drop_mentions(connection, work.scope_id, ids)
        await sum_up(work, connection, fact_write, staged.run_id, ready)
        await reruns.finish(connection, work.scope_id, staged.run_id, fact_write.moment)
    return SwitchReport(len(ready), replaced)


async def supersede_segment_facts(
    work: EnrichJob, connection: Connection, fact_write: FactWrite, ids: Sequence[UUID]
) -> int:
    """Supersede facts whose only evidence is these segments, and undo their changes to others; return how many."""
    scope_id, moment = work.scope_id, fact_write.moment
    found = await reruns.find_replaced(connection, scope_id, ids)
    gone = [each.id for each in found if each.span is None]
    await facts.supersede(connection, scope_id, gone, moment)
    await facts.exclude_from_recall(connection, scope_id, gone)
    spans = {each.lineage: each.span for each in found if each.span is not None}
    if spans:
        known = await facts.fetch_versions(connection, scope_id, VersionQuery(lineages=list(spans)))
        visible = {version.fact.id: version for version in known if not version.hidden and version.fact.id in spans}
        placed = separate_spans([version.fact for version in visible.values()], spans)
        changes = [
            NewVersion(replace(fact, version=fact.version + 1), before, ())
            for fact in placed
            if fact.span != (before := visible[fact.id].fact).span
        ]
        await write_fact_versions(
            work.parts, connection, fact_write, PlannedFacts((), Plan(tuple(changes), ()), visible, {})
        )
    return len(found)


async def sum_up(
    work: EnrichJob, connection: Connection, fact_write: FactWrite, run_id: UUID, ready: Sequence[SegmentResult]
) -> None:
    """Write the summaries with the time of the switch, and assign them to segments and conversations."""
    scope_id = work.scope_id
    summaries = await store_summaries(work, connection, fact_write, ready)
    await reruns.supersede_summaries(connection, scope_id, summaries, fact_write.moment)
    await reruns.apply_extractions(
        connection, scope_id, run_id, {each.closed.id: each.label for each in ready}, summaries
    )
    for conversation in sorted({each.closed.conversation for each in ready}):
        await segments.follow_summary(connection, scope_id, conversation)


async def store_summaries(
    work: EnrichJob, connection: Connection, fact_write: FactWrite, ready: Sequence[SegmentResult]
) -> dict[UUID, UUID]:
    """Store the summaries of segments in batches; return their IDs by segment."""
    written: dict[UUID, UUID] = {}
    summed = [(each, each.summary) for each in ready if each.summary is not None]
    for start in range(0, len(summed), AT_ONCE):
        batch = summed[start : start + AT_ONCE]
        prepared = [summary for _, summary in batch]
        named = await memories.ask_sources(connection, fact_write.scope, [each.memory for each in prepared])
        sources = await memories.read_sources(named)
        job = MemoryWrite(fact_write.caller, fact_write.scope, prepared, stack(batch), "", b"")
        rows = assign(job, fact_write.opening, sources)
        await memories.store_memories(connection, work.scope_id, fact_write.caller.origin, fact_write.moment, rows)
        await topics.file_new(connection, work.scope_id, ((row.id, row.memory) for row in rows))
        await scopes.close_writing(connection, work.scope_id, count(prepared), fact_write.moment)
        chosen = pair_vectors(work.parts, job, fact_write.space)
        await store_vectors(connection, work.scope_id, fact_write.space, rows, chosen)
        written |= {each.closed.id: row.id for (each, _), row in zip(batch, rows, strict=True)}
    return written


def stack(batch: Sequence[tuple[SegmentResult, PreparedMemory]]) -> NDArray[np.float32] | None:
    """Stack the vectors of summaries; None if one is missing: then a job embeds them."""
    present = [each.vector for each, _ in batch if each.vector is not None]
    return np.stack(present) if present and len(present) == len(batch) else None
