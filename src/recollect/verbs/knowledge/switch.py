"""Switch: replace what was learned from history by the result of a run, in one transaction and at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.knowledge.fact_plan import NewVersion, Plan
from recollect.core.knowledge.rerun import keep_apart
from recollect.errors import ConflictError
from recollect.store.database.pool import Connection
from recollect.store.knowledge import facts, reruns, segments
from recollect.store.knowledge.facts import VersionQuery
from recollect.store.knowledge.segments import Closed
from recollect.store.memories import memories
from recollect.store.service import scopes
from recollect.store.topics import topics
from recollect.verbs.knowledge.enrich import Work
from recollect.verbs.knowledge.steps.draft import StepContext, Write
from recollect.verbs.knowledge.steps.link import state_waiting
from recollect.verbs.knowledge.steps.staged import Staged
from recollect.verbs.knowledge.write_facts import FactWrite, PlannedFacts, open_fact_write, write
from recollect.verbs.memories.rows import Prepared, assign, count, place_vectors, store_vectors
from recollect.verbs.memories.rows import Write as MemoryWrite

AT_ONCE = 500
TAKEN_OVER = "Another process has let this run take over, or another run: look at the plan again before you go on."


@dataclass(frozen=True, slots=True)
class Built:
    """The result of a run for one segment, ready to be written."""

    closed: Closed
    label: str
    summary: Prepared | None
    vector: NDArray[np.float32] | None
    """The vector of the summary, if the embedder gave it in time."""
    writes: tuple[Write, ...]


@dataclass(frozen=True, slots=True)
class Switched:
    """What a switch changed."""

    segments: int
    replaced: int


async def switch(work: Work, context: StepContext, staged: Staged, built: Sequence[Built]) -> Switched:
    """Write everything that a run has built, or nothing; what lost a message meanwhile is left as it is."""
    async with work.parts.database.transaction(work.scope.tenant_id, pipelined=False) as connection:
        fact_write = await open_fact_write(connection, context.caller, context.scope)
        if not await reruns.hold(connection, work.scope_id, staged.run_id):
            raise ConflictError(TAKEN_OVER)
        held = await reruns.hold_ready(connection, work.scope_id, staged.run_id, [each.closed.id for each in built])
        ready = [each for each in built if each.closed.id in held]
        if not ready:
            return Switched(0, 0)
        ids = [each.closed.id for each in ready]
        replaced = await give_place(work, connection, fact_write, ids)
        await reruns.dim_mentions(connection, work.scope_id, ids)
        staged.fact_write = fact_write
        for each in ready:
            for one in each.writes:
                await one(connection, work.scope_id)
        await state_waiting(connection, context, staged)
        await reruns.drop_mentions(connection, work.scope_id, ids)
        await sum_up(work, connection, fact_write, staged.run_id, ready)
        await reruns.finish(connection, work.scope_id, staged.run_id, fact_write.moment)
    return Switched(len(ready), replaced)


async def give_place(work: Work, connection: Connection, fact_write: FactWrite, ids: Sequence[UUID]) -> int:
    """Supersede facts that rest on these segments alone, and undo what they alone changed; return how many."""
    scope_id, moment = work.scope_id, fact_write.moment
    found = await reruns.find_replaced(connection, scope_id, ids)
    gone = [each.id for each in found if each.span is None]
    await facts.supersede(connection, scope_id, gone, moment)
    await facts.withhold(connection, scope_id, gone)
    spans = {each.lineage: each.span for each in found if each.span is not None}
    if spans:
        known = await facts.fetch_versions(connection, scope_id, VersionQuery(lineages=list(spans)))
        visible = {version.fact.id: version for version in known if not version.hidden and version.fact.id in spans}
        placed = keep_apart([version.fact for version in visible.values()], spans)
        changes = [
            NewVersion(replace(fact, version=fact.version + 1), before, ())
            for fact in placed
            if fact.span != (before := visible[fact.id].fact).span
        ]
        await write(work.parts, connection, fact_write, PlannedFacts((), Plan(tuple(changes), ()), visible, {}))
    return len(found)


async def sum_up(
    work: Work, connection: Connection, fact_write: FactWrite, run_id: UUID, ready: Sequence[Built]
) -> None:
    """Write the summaries at the moment of the switch, and let segments and conversations use them."""
    scope_id = work.scope_id
    summaries = await store_summaries(work, connection, fact_write, ready)
    await reruns.supersede_summaries(connection, scope_id, summaries, fact_write.moment)
    await reruns.apply_extractions(
        connection, scope_id, run_id, {each.closed.id: each.label for each in ready}, summaries
    )
    for conversation in sorted({each.closed.conversation for each in ready}):
        await segments.follow_summary(connection, scope_id, conversation)


async def store_summaries(
    work: Work, connection: Connection, fact_write: FactWrite, ready: Sequence[Built]
) -> dict[UUID, UUID]:
    """Store the summaries of segments, a batch at a time; return their ids by segment."""
    written: dict[UUID, UUID] = {}
    summed = [(each, each.summary) for each in ready if each.summary is not None]
    for start in range(0, len(summed), AT_ONCE):
        batch = summed[start : start + AT_ONCE]
        prepared = [summary for _, summary in batch]
        named = await memories.ask_sources(connection, fact_write.scope, [each.memory for each in prepared])
        sources = await memories.read_sources(named)
        job = MemoryWrite(fact_write.caller, fact_write.scope, prepared, stack(batch), "", b"")
        rows = assign(job, fact_write.opening, sources)
        await memories.store(connection, work.scope_id, fact_write.caller.origin, fact_write.moment, rows)
        await topics.file_new(connection, work.scope_id, ((row.id, row.memory) for row in rows))
        await scopes.close_writing(connection, work.scope_id, count(prepared), fact_write.moment)
        chosen = place_vectors(work.parts, job, fact_write.space)
        await store_vectors(connection, work.scope_id, fact_write.space, rows, chosen)
        written |= {each.closed.id: row.id for (each, _), row in zip(batch, rows, strict=True)}
    return written


def stack(batch: Sequence[tuple[Built, Prepared]]) -> NDArray[np.float32] | None:
    """Stack the vectors of summaries; None if one is missing: then a job embeds them."""
    present = [each.vector for each, _ in batch if each.vector is not None]
    return np.stack(present) if present and len(present) == len(batch) else None
