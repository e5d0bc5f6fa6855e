"""Write to a scope in one transaction: open it, decide the rows of all writes, store them all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from recollect.core.agents.reflection import add_importance, waits_for_reflection
from recollect.core.conversations.appends import EmbeddedWithContext
from recollect.core.memories.importance import read_importance
from recollect.errors import RecollectError
from recollect.models.agents import EnrichSource, Profile
from recollect.models.memories import Kind, MemoryProgress, Receipt
from recollect.models.service import EmbeddingSpace
from recollect.store.database.pool import Connection, Cursor
from recollect.store.knowledge import segments
from recollect.store.memories import bulk, memories
from recollect.store.memories.columns import Row
from recollect.store.service import scopes
from recollect.store.topics import topics
from recollect.verbs.dependencies import Dependencies, run_in_thread_if_heavy
from recollect.verbs.memories.duplicates import KnownMemories, find_known
from recollect.verbs.memories.rows import (
    BatchState,
    ExtraWrite,
    LinkedRows,
    PreparedMemory,
    Write,
    assign,
    count,
    merge_receipts,
    pair_vectors,
    progress_of,
    replay,
    store_vectors,
)

Outcome: TypeAlias = list[Receipt] | RecollectError
"""The result of one write: its receipts, or the error that refused it."""


@dataclass(frozen=True, slots=True)
class AskedWrite:
    """The queries of one write in the first round trip."""

    write: Write
    sources: Cursor | None
    claim: Cursor | None
    also_store: ExtraWrite | None


@dataclass(frozen=True, slots=True)
class DecidedWrite:
    """A write whose rows and vectors are decided."""

    write: Write
    rows: Sequence[Row]
    vectors: list[NDArray[np.float32] | None]
    context: EmbeddedWithContext
    met: Mapping[int, Receipt | int] = field(default_factory=dict[int, Receipt | int])
    """The receipts of known memories, by their position in the write."""

    def receipts(self) -> list[Receipt]:
        """Return the receipts for the caller."""
        pairs = zip(self.rows, self.vectors, strict=True)
        return merge_receipts([Receipt(row.id, progress_of(vector is not None)) for row, vector in pairs], self.met)


async def execute_write(parts: Dependencies, connection: Connection, write: Write) -> list[Receipt]:
    """Write in two round trips: open the scope and claim the key, then store everything."""
    [outcome] = await execute_writes(parts, connection, [write])
    if isinstance(outcome, RecollectError):
        raise outcome
    return outcome


async def execute_writes(parts: Dependencies, connection: Connection, writes: Sequence[Write]) -> list[Outcome]:
    """Run writes of one scope in order; a refused one leaves nothing behind."""
    opened = await scopes.ask_opening(connection, writes[0].scope)
    placed = await scopes.ask_place(connection, writes[0].scope.agent, writes[0].scope.user)
    asked = [await query_write(connection, write) for write in writes]
    opening, place = await scopes.read_opening(opened), await scopes.read_place(placed)
    outcomes: list[Outcome] = []
    decided: list[DecidedWrite] = []
    together, grown = BatchState(), opening
    for each in asked:
        claim = await memories.read_claim(each.claim) if each.claim else None
        try:
            if claim is not None and not claim.fresh:
                outcomes.append(replay(claim, each.write.fingerprint))
                continue
            made = await decide(parts, connection, each, grown, place.space, together)
        except RecollectError as problem:
            outcomes.append(problem)
            if claim is not None and claim.fresh:
                await memories.release_claim(connection, opening.scope_id, each.write.key)
            continue
        decided.append(made)
        outcomes.append(made.receipts())
        together.rows.extend(made.rows)
        grown = scopes.grow(grown, count(made.write.prepared))
    if decided:
        await store_write_rows(parts, connection, opening, place, decided)
    return outcomes


async def query_write(connection: Connection, write: Write) -> AskedWrite:
    """Send the queries of a write before it is decided."""
    return AskedWrite(
        write,
        await memories.ask_sources(connection, write.scope, [item.memory for item in write.prepared]),
        await memories.ask_claim(connection, write.scope, write.key, write.fingerprint) if write.key else None,
        await write.also_ask(connection) if write.also_ask else None,
    )


async def decide(
    parts: Dependencies,
    connection: Connection,
    asked: AskedWrite,
    opening: scopes.LockedScope,
    space: EmbeddingSpace | None,
    together: BatchState,
) -> DecidedWrite:
    """Decide the rows of a write, and store its other rows; it is refused before anything is stored."""
    write = asked.write
    sources = await memories.read_sources(asked.sources)
    declined = await find_known(connection, opening.scope_id, write, together.rows)
    rows = await run_in_thread_if_heavy(write.heavy, assign, write, opening, sources, 0, declined.met)
    placed = pair_vectors(parts, write, space)
    met = {
        place: Receipt(sources[place].id, find_progress(declined, placed, place), known=True) for place in declined.met
    }
    vectors = [vector for place, vector in enumerate(placed) if place not in met]
    kept = replace(write, prepared=declined.keep(write.prepared)) if met else write
    beside = LinkedRows(rows)
    if asked.also_store is not None:
        beside = await asked.also_store(connection, opening.scope_id, rows, together)
    return DecidedWrite(kept, beside.rows, vectors, beside.heard, met or write.known)


def find_progress(declined: KnownMemories, placed: Sequence[NDArray[np.float32] | None], place: int) -> MemoryProgress:
    """Return the progress of a known memory: the stored one, or the earlier one of the same write."""
    same = declined.met[place]
    return declined.progress[place] if not isinstance(same, int) else progress_of(placed[same] is not None)


async def store_write_rows(
    parts: Dependencies,
    connection: Connection,
    opening: scopes.LockedScope,
    place: scopes.ScopeHandle,
    decided: Sequence[DecidedWrite],
) -> None:
    """Store the rows of all writes together."""
    rows = [row for each in decided for row in each.rows]
    prepared = [item for each in decided for item in each.write.prepared]
    origin = decided[0].write.caller.origin
    if bulk.use_copy(connection, rows):
        heading = bulk.BulkHeader(opening.scope_id, origin, opening.written_at, None)
        await bulk.stage(connection, None)
        await bulk.store_staged_rows(connection, heading, await asyncio.to_thread(bulk.encode, heading, rows, {}))
        await memories.store_links(connection, opening.scope_id, rows)
    else:
        await memories.store_memories(connection, opening.scope_id, origin, opening.written_at, rows)
    if place.profile.enrich is EnrichSource.ALL and "segment" in parts.steps:
        await log_events(connection, opening, rows)
    await topics.file_new(connection, opening.scope_id, ((row.id, row.memory) for row in rows))
    await scopes.close_writing(connection, opening.scope_id, count(prepared), opening.written_at)
    if parts.chat is not None:
        await queue_reflection_if_due(connection, opening, place.profile, prepared)
    vectors = [vector for each in decided for vector in each.vectors]
    context = join_contexts([each.context for each in decided])
    await store_vectors(connection, opening.scope_id, place.space, rows, vectors, context)
    for each in decided:
        if each.write.key:
            told = each.receipts()
            ids, embedded = [one.id for one in told], [one.progress is not MemoryProgress.STORED for one in told]
            await memories.complete_claim(connection, opening.scope_id, each.write.key, ids, embedded, [*each.met])


async def log_events(connection: Connection, opening: scopes.LockedScope, rows: Sequence[Row]) -> None:
    """Enter events in the journal of their scope, from which they are enriched, except idle ones."""
    events = [row for row in rows if row.memory.kind is Kind.EVENT and not row.idle]
    if events:
        await segments.enter(connection, opening.scope_id, events, opening.written_at)


def join_contexts(contexts: Sequence[EmbeddedWithContext]) -> EmbeddedWithContext:
    """Join the contexts of vectors of several writes."""
    return EmbeddedWithContext(
        frozenset().union(*(each.done for each in contexts)), frozenset().union(*(each.again for each in contexts))
    )


async def queue_reflection_if_due(
    connection: Connection, opening: scopes.LockedScope, profile: Profile, prepared: Sequence[PreparedMemory]
) -> None:
    """Queue a reflection when the backlog's importance is large enough."""
    added = [read_importance(item.memory.importance) for item in prepared if waits_for_reflection(item.memory)]
    gathered = add_importance(
        opening.unreflected_importance, opening.unreflected_memories, added, profile.reflection_threshold
    )
    if added and gathered.due:
        await scopes.defer_reflection(connection, opening.scope_id, opening.unreflected_memories + len(added))
