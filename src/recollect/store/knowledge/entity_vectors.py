"""Store vectors of entities: find entities without one, and write it if nothing has changed."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import sql
from psycopg.rows import DictRow

from recollect.core.knowledge.entities import entity_text
from recollect.core.service.numbers import tenant_of
from recollect.models.service import EmbeddingSpace
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.knowledge.entities import to_entity
from recollect.store.memories.embeddings import PendingEmbedding, to_half

QUERIES = load_queries(__file__)
CALLED = sql.SQL(QUERIES["called"]).format()


async def list_pending(database: Database, scope_id: int, after: UUID, limit: int) -> list[PendingEmbedding]:
    """List a scope's entities without a vector after an ID, when all running writes have ended."""
    parameters = {"scope_id": scope_id, "after": after, "limit": limit}
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["lock"], parameters)
        return await fetch_entity_texts(connection, "pending", parameters)


async def list_unfilled(
    database: Database, tenant_id: int, space_id: int, after: tuple[int, UUID], limit: int
) -> list[PendingEmbedding]:
    """List a tenant's entities that lack a vector in a space, after a cursor, in key order."""
    parameters = {"scope_id": after[0], "after": after[1], "space_id": space_id, "limit": limit}
    async with database.reading(tenant_id) as connection:
        return await fetch_entity_texts(connection, "unfilled", parameters)


async def list_older(
    connection: Connection, scope_id: int, space_id: int, ids: Sequence[UUID], least: float
) -> list[tuple[UUID, UUID, float]]:
    """List older entities with a similar meaning: both IDs, and the similarity."""
    parameters = {"scope_id": scope_id, "space_id": space_id, "ids": list(ids), "least": least}
    found = await connection.execute(QUERIES["older"], parameters)
    return [(row["older"], row["younger"], row["alike"]) for row in await found.fetchall()]


async def read_held(
    database: Database, space: EmbeddingSpace, batch: Sequence[PendingEmbedding]
) -> dict[UUID, NDArray[np.float32]]:
    """Read a space's vectors of one tenant's entities; entities that wait for a new one are absent."""
    scope_ids, ids = [each.scope_id for each in batch], [each.id for each in batch]
    async with database.reading(tenant_of(batch[0].scope_id)) as connection:
        asked = {"scope_ids": scope_ids, "ids": ids, "space_id": space.id}
        rows = await (await connection.execute(QUERIES["vectors"], asked)).fetchall()
    return {row["id"]: np.array(row["numbers"], dtype=np.float32) for row in rows}


async def store_entity_vectors(
    database: Database, space: EmbeddingSpace, batch: Sequence[PendingEmbedding], rows: NDArray[np.float32]
) -> None:
    """Write vectors of entities, each scope in one transaction; a changed entity gets none."""
    for scope_id in sorted({entity.scope_id for entity in batch}):
        members = [index for index, entity in enumerate(batch) if entity.scope_id == scope_id]
        parameters = {"scope_id": scope_id, "ids": [batch[index].id for index in members]}
        async with database.transaction(tenant_of(scope_id)) as connection:
            await connection.execute(QUERIES["lock"], parameters)
            known = {entity.id: entity.checksum for entity in await fetch_entity_texts(connection, "held", parameters)}
            same = [index for index in members if known.get(batch[index].id) == batch[index].checksum]
            written = {"scope_id": scope_id, "space_id": space.id, "ids": [batch[index].id for index in same]}
            vectors = [to_half(rows[index]) for index in same]
            if same:
                await connection.execute(QUERIES["store"], written | {"embeddings": vectors})
            if space.state == "active":
                await connection.execute(QUERIES["remove_pending"], written)


async def fetch_entity_texts(
    connection: Connection, name: str, parameters: dict[str, object]
) -> list[PendingEmbedding]:
    """Read entities with the texts to embed."""
    found = await connection.execute(sql.SQL(QUERIES[name]).format(called=CALLED), parameters)
    return [to_unembedded(row) for row in await found.fetchall()]


def to_unembedded(row: DictRow) -> PendingEmbedding:
    """Convert a row to an entity to embed: its names and its descriptions."""
    text = entity_text(to_entity(row))
    checksum = md5(text.encode(), usedforsecurity=False).hexdigest()
    return PendingEmbedding(row["scope_id"], row["id"], "", text, "", checksum)
