"""Load any number of memories in one transaction, and load a whole saved mind into an empty scope."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from recollect.core.agents.profiles import check_profile
from recollect.core.memories.checks import check_new_memory
from recollect.core.memories.ids import MILLISECOND, fingerprint
from recollect.core.service.batches import divide
from recollect.core.text.checks import check_idempotency_key
from recollect.errors import InvalidInputError
from recollect.models.agents import MindSnapshot, Overview
from recollect.models.memories import NewMemory
from recollect.models.service import Caller, EmbeddingSpace, Scope
from recollect.store.agents import agents, overview
from recollect.store.database.pool import Connection
from recollect.store.memories import bulk, embeddings, memories
from recollect.store.memories.columns import Row
from recollect.store.service import scopes
from recollect.store.service.jobs import defer
from recollect.store.service.scopes import LockedScope
from recollect.store.topics import topics
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.memories.rows import Write, assign, count, pair_vectors, prepare_all, replay

CHUNK, CHUNK_CHARACTERS = 2_000, 400_000
NO_MEMORIES: tuple[int, Sequence[NewMemory]] = (0, ())


@dataclass(frozen=True, slots=True)
class LoadPart:
    """A part of a load, ready to send, and the counters of the scope after it."""

    rows: list[Row]
    heading: bulk.BulkHeader
    values: bulk.Values
    waiting: list[UUID]
    counts: scopes.Counts
    opening: LockedScope


@dataclass(frozen=True, slots=True)
class Load:
    """A running load: its caller, its embedding space, the active space, and the known evidence."""

    parts: Dependencies
    caller: Caller
    scope: Scope
    space: EmbeddingSpace | None
    active: EmbeddingSpace | None
    sources: dict[UUID | int, memories.Source]

    def prepare_part(self, first: int, new: Sequence[NewMemory], opening: LockedScope) -> LoadPart:
        """Check, analyze and encode one chunk that starts at a position of the whole load."""
        for position, memory in enumerate(new, start=first):
            check_one(position, memory)
        write = Write(self.caller, self.scope, prepare_all(new), None, "", b"")
        rows = assign(write, opening, self.sources, first)
        given = zip(rows, pair_vectors(self.parts, write, self.space), strict=True)
        vectors = {row.id: vector for row, vector in given if vector is not None}
        heading = bulk.BulkHeader(opening.scope_id, self.caller.origin, opening.written_at, self.space)
        have = vectors if self.space == self.active else {}
        waiting = [row.id for row in rows if row.id not in have] if self.active else []
        counts = count(write.prepared)
        after = replace(
            opening,
            memory_count=opening.memory_count + counts.memories,
            term_count=opening.term_count + counts.terms,
            written_at=opening.written_at + MILLISECOND,
        )
        return LoadPart(rows, heading, bulk.encode(heading, rows, vectors), waiting, counts, after)


async def load(
    parts: Dependencies, caller: Caller, scope: Scope, new: Sequence[NewMemory], key: str = ""
) -> list[UUID]:
    """Store memories in order and return their IDs; a job adds missing vectors."""
    check_idempotency_key(key)
    if not new:
        return []
    asked = await asyncio.to_thread(recognise, new) if key else b""
    async with parts.database.transaction(scope.tenant_id, pipelined=False) as connection:
        if not key:
            return await load_within(connection, parts, caller, scope, new)
        # As in `remember`: the lock of the scope comes first, the claim after it.
        opening = await scopes.read_opening(await scopes.ask_opening(connection, scope))
        claim = await memories.read_claim(await memories.ask_claim(connection, scope, key, asked))
        if not claim.fresh:
            return [receipt.id for receipt in replay(claim, asked)]
        ids = await load_within(connection, parts, caller, scope, new)
        # A repeated load does not return which vectors there were: a job adds them.
        await memories.complete_claim(connection, opening.scope_id, key, ids, [False] * len(ids))
        return ids


async def load_within(
    connection: Connection,
    parts: Dependencies,
    caller: Caller,
    scope: Scope,
    new: Sequence[NewMemory],
    space: EmbeddingSpace | None = None,
) -> list[UUID]:
    """Load within a transaction; given vectors belong to a space, by default the active one."""
    opening = await scopes.read_opening(await scopes.ask_opening(connection, scope))
    place = await scopes.read_place(await scopes.ask_place(connection, scope.agent, scope.user))
    sources = await memories.read_sources(await memories.ask_sources(connection, scope, new))
    work = Load(parts, caller, scope, space or place.space, place.space, sources)
    return await send_chunks(connection, work, opening, new)


def recognise(new: Sequence[NewMemory]) -> bytes:
    """Return the fingerprint of a load; only valid memories have one."""
    for position, memory in enumerate(new):
        check_one(position, memory)
    return fingerprint(new)


def check_one(position: int, memory: NewMemory) -> None:
    """Check one memory of many; the error names its position."""
    try:
        check_new_memory(memory)
    except InvalidInputError as problem:
        raise InvalidInputError(f"memory {position + 1}: {problem}") from None


async def send_chunks(connection: Connection, work: Load, opening: LockedScope, new: Sequence[NewMemory]) -> list[UUID]:
    """Send chunks in order; the next one is prepared in a thread while the database stores the previous one."""
    stored: list[UUID] = []
    await bulk.stage(connection, work.space)
    chunks = split(new)
    chunk = await asyncio.to_thread(work.prepare_part, *next(chunks, NO_MEMORIES), opening)
    while chunk.rows:
        following = asyncio.create_task(asyncio.to_thread(work.prepare_part, *next(chunks, NO_MEMORIES), chunk.opening))
        await store_chunk(connection, opening.scope_id, chunk)
        stored += [row.id for row in chunk.rows]
        chunk = await following
    return stored


def split(new: Sequence[NewMemory]) -> Iterator[tuple[int, Sequence[NewMemory]]]:
    """Cut a load into chunks of limited number and length, each with its start position."""
    start = 0
    for chunk in divide(new, lambda memory: len(memory.content), CHUNK, CHUNK_CHARACTERS):
        yield start, chunk
        start += len(chunk)


async def store_chunk(connection: Connection, scope_id: int, chunk: LoadPart) -> None:
    """Store one chunk, and queue a job for missing vectors."""
    await bulk.store_staged_rows(connection, chunk.heading, chunk.values)
    await memories.store_links(connection, scope_id, chunk.rows)
    await topics.file_new(connection, scope_id, ((row.id, row.memory) for row in chunk.rows))
    await scopes.close_writing(connection, scope_id, chunk.counts, chunk.opening.written_at)
    if chunk.waiting:
        await embeddings.add_pending(connection, scope_id, chunk.waiting)
        await defer(connection, "embed", f"embed:{scope_id}", {"scope_id": scope_id})


async def restore_mind(parts: Dependencies, caller: Caller, scope: Scope, saved: MindSnapshot) -> list[UUID]:
    """Store a saved mind, all of it or nothing, and return the IDs of its memories."""
    check_profile(saved.profile, parts.channel_names)
    async with parts.database.transaction(scope.tenant_id, pipelined=False) as connection:
        opening = await scopes.read_opening(await scopes.ask_opening(connection, scope))
        if opening.memory_count:
            raise InvalidInputError(
                f"{scope.agent} has {opening.memory_count} memories already: use a new agent or user"
            )
        ids = await load_within(connection, parts, caller, scope, saved.memories, saved.space)
        await agents.store_agent(connection, scope, saved.profile)
        gathered = (saved.unreflected_importance, saved.unreflected_memories)
        await scopes.reset_reflection_backlog(connection, opening.scope_id, *gathered)
        return ids


async def read_inventory(parts: Dependencies, scope: Scope) -> tuple[Overview, dict[str, int]]:
    """Read the overview of a scope with all keywords, and count its other content by name."""
    return await overview.fetch_overview(parts.database, scope, limit=None), await overview.count_others(
        parts.database, scope
    )
