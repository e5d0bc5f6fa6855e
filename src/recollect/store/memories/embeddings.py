"""Store vectors in embedding spaces: write them, find memories without one, and change the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector, Vector
from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.core.service.numbers import tenant_of
from recollect.core.text.terms import BEFORE, utterance_before
from recollect.models.service import EmbeddingSpace, Scope
from recollect.store.database.pool import Connection, Database, load_queries

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class PendingEmbedding:
    """A memory that still needs a vector, with the text to embed."""

    scope_id: int
    id: UUID
    speaker: str
    content: str
    embedding_text: str
    checksum: str
    """The checksum of its text, to detect a change."""
    before: str = ""
    """The end of the previous message, if it is a message that follows one."""
    before_id: UUID | None = None


def vectors_table(space_id: int) -> sql.Identifier:
    """Name the table that holds a space's vectors."""
    return sql.Identifier(f"vectors_{space_id}")


def vector_type(space: EmbeddingSpace) -> sql.SQL:
    """Name the type that a space's vectors have."""
    return sql.SQL("halfvec") if space.precision == "half" else sql.SQL("vector")


def to_vector(space: EmbeddingSpace, row: NDArray[np.float32]) -> HalfVector | Vector:
    """Convert a vector for the driver, in the precision of its space."""
    return HalfVector(row) if space.precision == "half" else Vector(row)


def to_half(row: NDArray[np.float32]) -> HalfVector:
    """Convert a vector of an entity, which has half precision in every space."""
    return HalfVector(row)


async def store_vectors(
    connection: Connection, space: EmbeddingSpace, scope_id: int, ids: Sequence[UUID], rows: NDArray[np.float32]
) -> AsyncCursor[DictRow]:
    """Write vectors for memories of this transaction; the result names those that are new or changed."""
    query = sql.SQL(QUERIES["store_vectors"]).format(
        vectors=vectors_table(space.id), type=vector_type(space), space=sql.Literal(space.id)
    )
    embeddings = [to_vector(space, row) for row in rows]
    return await connection.execute(query, {"scope_id": scope_id, "ids": list(ids), "embeddings": embeddings})


async def read_vectors(
    database: Database, scope: Scope, space: EmbeddingSpace, ids: Sequence[UUID]
) -> dict[UUID, NDArray[np.float32]]:
    """Read vectors of a scope's memories, exactly as stored; memories without one are absent."""
    query = sql.SQL(QUERIES["read_vectors"]).format(vectors=vectors_table(space.id))
    parameters = {"agent": scope.agent, "user": scope.user, "ids": list(ids)}
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(query, parameters)
    return {row["id"]: np.array(row["numbers"], dtype=np.float32) for row in await found.fetchall()}


async def note_with_context(connection: Connection, space: EmbeddingSpace, scope_id: int, ids: Sequence[UUID]) -> None:
    """Record that vectors include the previous message: they are deleted when it is forgotten."""
    parameters = {"scope_id": scope_id, "space_id": space.id, "ids": list(ids)}
    await connection.execute(QUERIES["note_with_context"], parameters)


async def add_pending(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> None:
    """Add memories to those that wait for a vector."""
    await connection.execute(QUERIES["add_pending"], {"scope_id": scope_id, "ids": list(ids)})


async def list_pending(database: Database, scope_id: int, after: UUID, limit: int) -> list[PendingEmbedding]:
    """List a scope's oldest memories without a vector after an ID, when all running writes have ended."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        parameters = {"scope_id": scope_id, "after": after, "limit": limit, "most": BEFORE + 1}
        await connection.execute(QUERIES["await_writers"], parameters)
        found = await connection.execute(QUERIES["pending"], parameters)
        return [to_unembedded(row) for row in await found.fetchall()]


def to_unembedded(row: DictRow) -> PendingEmbedding:
    """Convert a row to a memory to embed; one with a separate text to embed uses only that text."""
    said = "" if row["embedding_text"].strip() else row["before_content"] or ""
    return PendingEmbedding(
        scope_id=row["scope_id"],
        id=row["id"],
        speaker=row["speaker"],
        content=row["content"],
        embedding_text=row["embedding_text"],
        checksum=row["checksum"],
        before=utterance_before(row["before_speaker"] or "", said),
        before_id=row["before_id"],
    )


async def count_pending(database: Database, scope_id: int) -> int:
    """Count a scope's memories that wait for a vector."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["count_pending"], {"scope_id": scope_id})
    return sum([row["waiting"] for row in await found.fetchall()])


async def defer_waiting(connection: Connection, scope: Scope) -> None:
    """Queue a job if memories of a scope wait for a vector."""
    await connection.execute(QUERIES["defer_waiting"], {"agent": scope.agent, "user": scope.user})


async def store_pending(
    database: Database, space: EmbeddingSpace, batch: Sequence[PendingEmbedding], rows: NDArray[np.float32]
) -> None:
    """Write vectors of one scope's waiting memories; forgotten or changed memories get none."""
    scope_id = batch[0].scope_id
    async with database.transaction(tenant_of(scope_id)) as connection:
        ids = await store_buffered(connection, space, batch, rows)
        await connection.execute(QUERIES["remove_pending"], {"scope_id": scope_id, "ids": ids})


async def store_buffered(
    connection: Connection, space: EmbeddingSpace, batch: Sequence[PendingEmbedding], rows: NDArray[np.float32]
) -> list[UUID]:
    """Write the vectors of unchanged memories of one scope; return their IDs."""
    scope_id = batch[0].scope_id
    ids, checksums = [memory.id for memory in batch], [memory.checksum for memory in batch]
    before = [memory.before_id for memory in batch if memory.before_id is not None]
    # The scope is locked first, as in every write.
    await connection.execute(QUERIES["await_writers"], {"scope_id": scope_id})
    await connection.execute(QUERIES["hold"], {"scope_id": scope_id, "ids": ids + before})
    found = await connection.execute(QUERIES["unchanged"], {"scope_id": scope_id, "ids": ids, "checksums": checksums})
    unchanged = {row["id"] for row in await found.fetchall()}
    chosen = [index for index, memory in enumerate(batch) if memory.id in unchanged]
    stored = [batch[index].id for index in chosen]
    if stored:
        written = await (await store_vectors(connection, space, scope_id, stored, rows[chosen])).fetchall()
        if written:
            logged = {"scope_id": scope_id, "ids": sorted(row["id"] for row in written)}
            await connection.execute(QUERIES["log_embedded"], logged)
    if with_context := [batch[index].id for index in chosen if batch[index].before]:
        await note_with_context(connection, space, scope_id, with_context)
    return stored


async def list_unfilled(
    database: Database, tenant_id: int, space_id: int, after: tuple[int, UUID], limit: int
) -> list[PendingEmbedding]:
    """List a tenant's memories without a vector in a space, after a cursor, in key order."""
    query = sql.SQL(QUERIES["unfilled"]).format(vectors=vectors_table(space_id))
    async with database.reading(tenant_id) as connection:
        parameters = {"scope_id": after[0], "id": after[1], "limit": limit, "most": BEFORE + 1}
        rows = await (await connection.execute(query, parameters)).fetchall()
        return [to_unembedded(row) for row in rows]


async def read_held(
    database: Database, space: EmbeddingSpace, batch: Sequence[PendingEmbedding]
) -> dict[UUID, NDArray[np.float32]]:
    """Read a space's vectors of one tenant's memories; memories that wait for a new one are absent."""
    query = sql.SQL(QUERIES["held"]).format(vectors=vectors_table(space.id))
    asked = {"scope_ids": [each.scope_id for each in batch], "ids": [each.id for each in batch]}
    async with database.reading(tenant_of(batch[0].scope_id)) as connection:
        rows = await (await connection.execute(query, asked)).fetchall()
    return {row["id"]: np.array(row["numbers"], dtype=np.float32) for row in rows}


async def fill(
    database: Database, space: EmbeddingSpace, batch: Sequence[PendingEmbedding], rows: NDArray[np.float32]
) -> None:
    """Write one batch of a fill and its progress."""
    last = batch[-1]
    async with database.transaction(tenant_of(last.scope_id)) as connection:
        for scope_id in sorted({memory.scope_id for memory in batch}):
            members = [index for index, memory in enumerate(batch) if memory.scope_id == scope_id]
            ids = await store_buffered(connection, space, [batch[index] for index in members], rows[members])
            if space.state == "active":
                await connection.execute(QUERIES["remove_pending"], {"scope_id": scope_id, "ids": ids})
        progress = {"space": space.id, "scope_id": last.scope_id, "id": last.id, "count": len(batch)}
        await connection.execute(QUERIES["filled"], progress)


async def read_fill_cursor(database: Database, space_id: int) -> tuple[int, UUID]:
    """Return the position up to which a space is filled."""
    async with database.reading(None) as connection:
        row = await (await connection.execute(QUERIES["cursor"], {"space": space_id})).fetchone()
        return (row["filled_scope"], row["filled_id"]) if row else (0, UUID(int=0))


async def list_spaces(database: Database) -> list[tuple[EmbeddingSpace, int]]:
    """List all embedding spaces with the number of vectors that fills wrote."""
    async with database.reading(None) as connection:
        rows = await (await connection.execute(QUERIES["all"])).fetchall()
        return [
            (
                EmbeddingSpace(row["id"], row["model"], row["dimensions"], row["state"], row["precision"]),
                row["filled_count"],
            )
            for row in rows
        ]
