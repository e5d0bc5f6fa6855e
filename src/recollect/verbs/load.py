"""Load: remember any number of memories fast, for importers, by COPY and in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from recollect.core.checks import check_new_memory
from recollect.core.identity import MILLISECOND
from recollect.models import Caller, EmbeddingSpace, NewMemory, Scope
from recollect.store import bulk, memories, scopes, spaces
from recollect.store.db import Connection
from recollect.store.jobs import defer
from recollect.store.scopes import Opening
from recollect.verbs.parts import Parts
from recollect.verbs.remember import Write, assign, place_vectors, prepare_all

CHUNK, CHUNK_CHARACTERS = 2_000, 400_000


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a load, ready to be sent, and how the scope stands after it."""

    rows: list[memories.Row]
    encoded: bulk.Encoded
    waiting: list[UUID]
    opening: Opening


@dataclass(frozen=True, slots=True)
class Load:
    """One load under way: for whom, into which space, and how far its evidence can be trusted."""

    parts: Parts
    caller: Caller
    scope: Scope
    space: EmbeddingSpace | None
    trust: dict[UUID, int]

    def make_ready(self, new: Sequence[NewMemory], opening: Opening) -> Chunk:
        """Check, analyse and encode one chunk."""
        for memory in new:
            check_new_memory(memory)
        write = Write(self.caller, self.scope, prepare_all(new), None, "", b"")
        rows = assign(write, opening, self.trust)
        given = zip(rows, place_vectors(self.parts, write, self.space), strict=True)
        vectors = {row.id: vector for row, vector in given if vector is not None}
        encoded = bulk.encode(opening.scope_id, self.caller.origin, opening.written_at, rows, vectors)
        waiting = [row.id for row in rows if row.id not in vectors] if self.space else []
        after = replace(
            opening,
            memory_count=opening.memory_count + len(rows),
            term_count=opening.term_count + sum(sum(item.counts.values()) for item in write.prepared),
            written_at=opening.written_at + MILLISECOND,
        )
        return Chunk(rows, encoded, waiting, after)


async def load(parts: Parts, caller: Caller, scope: Scope, new: Sequence[NewMemory]) -> list[UUID]:
    """Store memories in order and return their ids; what came without a vector gets it from a job."""
    if not new:
        return []
    sources = list(dict.fromkeys(source for memory in new for source in memory.evidence))
    async with parts.database.transaction(scope.tenant_id, pipelined=False) as connection:
        opening = await scopes.read_opening(await scopes.ask_opening(connection, scope))
        place = await scopes.read_place(await scopes.ask_place(connection, scope.agent, scope.user))
        trusted = await memories.ask_source_trust(connection, scope, sources)
        trust = {row["id"]: row["trust"] for row in await trusted.fetchall()}
        work = Load(parts, caller, scope, place.space, trust)
        return await send_chunks(connection, work, opening, new)


async def send_chunks(connection: Connection, work: Load, opening: Opening, new: Sequence[NewMemory]) -> list[UUID]:
    """Send chunk after chunk; the next one is made ready in a thread while the database stores the one before."""
    stored: list[UUID] = []
    await bulk.stage(connection, work.space.id if work.space else None)
    chunks = split(new)
    chunk = await asyncio.to_thread(work.make_ready, next(chunks), opening)
    while chunk.rows:
        following = asyncio.create_task(asyncio.to_thread(work.make_ready, next(chunks, ()), chunk.opening))
        await store_chunk(connection, work.space, opening.scope_id, chunk)
        stored += [row.id for row in chunk.rows]
        chunk = await following
    after = chunk.opening
    terms = after.term_count - opening.term_count
    await scopes.close_writing(connection, opening.scope_id, len(stored), terms, after.written_at)
    return stored


def split(new: Sequence[NewMemory]) -> Iterator[Sequence[NewMemory]]:
    """Cut a load into chunks of bounded number and length."""
    start = characters = 0
    for position, memory in enumerate(new):
        if position - start == CHUNK or characters > CHUNK_CHARACTERS:
            yield new[start:position]
            start, characters = position, 0
        characters += len(memory.content)
    yield new[start:]


async def store_chunk(connection: Connection, space: EmbeddingSpace | None, scope_id: int, chunk: Chunk) -> None:
    """Store one chunk, and put off what still needs a vector."""
    await bulk.store(connection, space.id if space else None, chunk.encoded)
    await memories.store_evidence(connection, scope_id, chunk.rows)
    if chunk.waiting:
        await spaces.add_pending(connection, scope_id, chunk.waiting)
        await defer(connection, "embed", f"embed:{scope_id}", {"scope_id": scope_id})
