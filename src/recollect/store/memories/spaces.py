"""Create, switch, drop and index embedding spaces, as the owner of the tables."""

from __future__ import annotations

import asyncio

from psycopg import AsyncConnection, sql
from psycopg.rows import DictRow

from recollect.core.memories.ids import space_id
from recollect.errors import NotFoundError, SetupError
from recollect.models.service import EmbeddingSpace
from recollect.store.database.ownership import owning
from recollect.store.database.pool import load_queries
from recollect.store.memories.embeddings import vector_type, vectors_table

QUERIES = load_queries(__file__)
MAX_INDEX_DIMENSIONS = {"half": 4_000, "single": 2_000}


FOLDED = 2
"""Importance adds two dimensions to an indexed vector: see fold_importance."""


MAX_INDEXES = 64


async def ensure_space(
    dsn: str, model: str, dimensions: int, *, precision: str = "half", activate: bool = True
) -> EmbeddingSpace:
    """Return a model's embedding space, creating it if it is new; the first space is activated at once."""
    number = space_id(model, dimensions)
    wanted = {"space": number, "model": model, "dimensions": dimensions, "precision": precision}
    async with owning(dsn) as connection, connection.transaction():
        await connection.execute(QUERIES["lock_spaces"])
        if await (await connection.execute(QUERIES["find_space"], wanted)).fetchone() is None:
            await connection.execute(QUERIES["create_space"], wanted)
        row = await (await connection.execute(QUERIES["find_space"], wanted)).fetchone()
        if row is None:
            raise SetupError("The embedding space could not be created.")
        if (row["model"], row["dimensions"]) != (model, dimensions):
            raise SetupError(
                f"Embedding space {number} of {model} already belongs to {row['model']} ({row['dimensions']} "
                "dimensions). Rename the model or drop that space."
            )
        if activate and await (await connection.execute(QUERIES["has_active_space"])).fetchone() is None:
            await connection.execute(QUERIES["switch_space"], {"space": row["id"]})
            # A job computes vectors of memories that are older than the model.
            await connection.execute(QUERIES["defer_fill"], {"space": row["id"]})
            row["state"] = "active"
        return EmbeddingSpace(row["id"], row["model"], row["dimensions"], row["state"], row["precision"])


async def switch_space(dsn: str, space_id: int) -> None:
    """Make recall read another space; return when all earlier writes see it."""
    async with owning(dsn) as connection:
        async with connection.transaction():
            await connection.execute(QUERIES["lock_spaces"])
            await connection.execute(QUERIES["switch_space"], {"space": space_id})
        boundary = await (await connection.execute(QUERIES["newest_transaction"])).fetchone()
        while True:
            row = await (await connection.execute(QUERIES["all_newer"], boundary)).fetchone()
            if row is not None and row["passed"]:
                return
            await asyncio.sleep(0.05)


async def drop_space(dsn: str, space_id: int) -> None:
    """Drop a space that recall does not read, with all its vectors."""
    async with owning(dsn) as connection, connection.transaction():
        await connection.execute(QUERIES["lock_spaces"])
        if await (await connection.execute(QUERIES["delete_space"], {"space": space_id})).fetchone() is None:
            raise NotFoundError("No droppable embedding space with this number.")
        vectors = vectors_table(space_id)
        await connection.execute(sql.SQL(QUERIES["drop_vectors"]).format(vectors=vectors))


async def compact_space(dsn: str, space_id: int) -> tuple[int, int]:
    """Rebuild the key of a space's vectors without blocking requests; return its bytes before and after.

    Scopes that grow at the same time leave its pages half full.
    """
    name = f"vectors_{space_id}_pkey"

    async def measure() -> int:
        row = await (await connection.execute(QUERIES["size_of_index"], {"name": name})).fetchone()
        if row is None or row["bytes"] is None:
            raise NotFoundError("No embedding space with this number.")
        size: int = row["bytes"]
        return size

    async with owning(dsn) as connection:
        before = await measure()
        await connection.execute(sql.SQL(QUERIES["compact_index"]).format(index=sql.Identifier(name)))
        return before, await measure()


async def index_large_scopes(dsn: str, space: EmbeddingSpace, at_least: int) -> list[int]:
    """Create an approximate index for each of the largest scopes; few scopes, never one per tenant."""
    if space.dimensions + FOLDED > MAX_INDEX_DIMENSIONS[space.precision]:
        most = MAX_INDEX_DIMENSIONS[space.precision] - FOLDED
        raise SetupError(f"At most {most} dimensions can be indexed at this precision; this space is scanned exactly.")
    indexed: list[int] = []
    async with owning(dsn) as connection:
        present = await (await connection.execute(QUERIES["count_indexes"])).fetchone()
        room = MAX_INDEXES - (present["indexes"] if present else 0)
        tenants = await (await connection.execute(QUERIES["tenants"])).fetchall()
        for tenant in tenants:
            await connection.execute(QUERIES["bind"], {"tenant": str(tenant["id"])})
            asked = {"at_least": at_least, "space": space.id}
            for row in await (await connection.execute(QUERIES["large_scopes"], asked)).fetchall():
                if len(indexed) < room:
                    await index_scope(connection, space, row["id"])
                    indexed.append(row["id"])
    return indexed


async def index_scope(connection: AsyncConnection[DictRow], space: EmbeddingSpace, scope_id: int) -> None:
    """Build one scope's indexes without blocking its writers, then activate them for recall."""
    places = {
        "vectors": vectors_table(space.id),
        "scope": sql.Literal(scope_id),
        "type": vector_type(space),
        "width": sql.Literal(space.dimensions + FOLDED),
        "operators": sql.Identifier("halfvec_ip_ops" if space.precision == "half" else "vector_ip_ops"),
    }
    of_scope = f"{space.id}_of_{scope_id}"
    numbers = {"space": space.id, "scope_id": scope_id}
    fold_vectors = sql.SQL(QUERIES["fold_vectors"]).format(vectors=places["vectors"], scope=places["scope"])
    await connection.execute(QUERIES["fold_scope"], numbers)
    await connection.execute(fold_vectors)
    for query, name in (("index_scope", f"vectors_{of_scope}"), ("index_importance", f"importance_{of_scope}")):
        if await (await connection.execute(QUERIES["broken_index"], {"name": name})).fetchone():
            await connection.execute(sql.SQL(QUERIES["drop_index"]).format(index=sql.Identifier(name)))
        await connection.execute(sql.SQL(QUERIES[query]).format(index=sql.Identifier(name), **places))
    # Building has waited for all writes that could not see that importance is stored with their vectors.
    await connection.execute(fold_vectors)
    # Without fresh statistics the planner does not use the new indexes.
    await connection.execute(sql.SQL(QUERIES["analyze"]).format(vectors=places["vectors"]))
    await connection.execute(QUERIES["mark_indexed"], numbers)
