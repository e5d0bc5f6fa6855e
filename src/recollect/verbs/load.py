"""Load: remember a large chunk at once, for importers, by COPY and in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from recollect.core.checks import check_new_memory
from recollect.core.identity import LARGEST_BATCH
from recollect.errors import InvalidInputError
from recollect.models import Caller, NewMemory, Scope
from recollect.store import bulk, jobs, memories, scopes, spaces
from recollect.verbs.parts import Parts
from recollect.verbs.remember import Write, assign, place_vectors, prepare


async def load(parts: Parts, caller: Caller, scope: Scope, new: Sequence[NewMemory]) -> list[UUID]:
    """Store up to 4,096 memories; what came without a vector gets it from a job."""
    if not 1 <= len(new) <= LARGEST_BATCH:
        raise InvalidInputError(f"a chunk must hold 1 to {LARGEST_BATCH} memories")
    for memory in new:
        check_new_memory(memory)
    write = Write(caller, scope, [prepare(memory) for memory in new], None, "", b"")
    sources = list(dict.fromkeys(source for memory in new for source in memory.evidence))
    async with parts.database.transaction(scope.tenant_id, pipelined=False) as connection:
        opening = await scopes.read_opening(await scopes.ask_opening(connection, scope))
        space = (await scopes.read_place(await scopes.ask_place(connection, scope.agent, scope.user))).space
        trusted = await memories.ask_source_trust(connection, scope, sources)
        trust = {row["id"]: row["trust"] for row in await trusted.fetchall()}
        rows = assign(write, opening, trust)
        given = zip(rows, place_vectors(parts, write, space), strict=True)
        vectors = {row.id: vector for row, vector in given if vector is not None}
        await bulk.copy_memories(connection, opening.scope_id, caller.origin, opening.written_at, rows)
        if space is not None and vectors:
            await bulk.copy_vectors(connection, opening.scope_id, space.id, rows, vectors)
        if space is not None and len(vectors) < len(rows):
            waiting = [row.id for row in rows if row.id not in vectors]
            await spaces.add_pending(connection, opening.scope_id, waiting)
            await jobs.defer(connection, "embed", f"embed:{opening.scope_id}", {"scope_id": opening.scope_id})
        terms = sum(len(item.terms) for item in write.prepared)
        await scopes.count_written(connection, opening.scope_id, len(rows), terms)
    return [row.id for row in rows]
