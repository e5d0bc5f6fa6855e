"""Erase everything that scopes of one user hold, scope by scope, and keep one receipt of it in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from recollect.core.imports.sections import ERASED_FIRST, SECTIONS
from recollect.models.imports import UserErasure
from recollect.store.database.erasures import log_erasure
from recollect.store.database.pool import Connection, Database, load_queries, show_cold
from recollect.store.imports.exports import list_spaces
from recollect.store.memories.embeddings import vectors_table

QUERIES = load_queries(__file__)
VECTORS = "vectors"
TABLES = (*ERASED_FIRST, *(section.table for section in reversed(SECTIONS)))
"""What refers to others goes before them."""


async def list_scopes(database: Database, tenant_id: int, user: str) -> list[tuple[int, str]]:
    """List the scopes of a user over all agents, each with its agent."""
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(QUERIES["scopes"], {"user": user})
    return [(row["id"], row["agent"]) for row in await found.fetchall()]


async def foresee(database: Database, tenant_id: int, scopes: Sequence[int]) -> dict[str, int]:
    """Count what an erasure of scopes would remove, by table, at one moment."""
    counted = Counter[str]()
    async with database.snapshot(tenant_id) as connection:
        await show_cold(connection)
        for scope_id in scopes:
            counted += await count_rows(connection, scope_id)
    return dict(counted)


async def count_rows(connection: Connection, scope_id: int) -> Counter[str]:
    """Count the rows of a scope, by table, wherever they are; tables without any are absent."""
    row = await (await connection.execute(QUERIES["count_cold"], {"scope_id": scope_id})).fetchone()
    counted = Counter[str](row["counts"] if row else {})
    for name, table in await list_tables(connection):
        query = SQL(QUERIES["count"]).format(table=table)
        row = await (await connection.execute(query, {"scope_id": scope_id})).fetchone()
        counted[name] += row["rows"] if row else 0
    return +counted


async def begin(database: Database, tenant_id: int, user: str, asked_by: str, part_of: UUID | None = None) -> UUID:
    """Begin a receipt, or this server's part of one, or go on with what was not finished; return its id."""
    async with database.transaction(tenant_id) as connection:
        named = {"user": user, "asked_by": asked_by, "id": part_of}
        row = await (await connection.execute(QUERIES["begin"], named)).fetchone()
    assert row is not None  # noqa: S101 - one of its two parts gives a row
    receipt: UUID = row["id"]
    return receipt


async def erase_scope(database: Database, tenant_id: int, scope_id: int, receipt: UUID) -> None:
    """Erase all rows of a scope and note how many there were, in one transaction; an object of it is to be removed."""
    async with database.transaction(tenant_id, pipelined=False) as connection:
        await show_cold(connection)
        parameters: dict[str, object] = {"scope_id": scope_id}
        await connection.execute(QUERIES["lock"], parameters)
        # Counted before: what is erased takes rows of other tables along.
        removed = await count_rows(connection, scope_id)
        for _, table in await list_tables(connection):
            await connection.execute(SQL(QUERIES["erase"]).format(table=table), parameters)
        await connection.execute(QUERIES["release_objects"], parameters)
        await connection.execute(QUERIES["reset"], parameters)
        await connection.execute(QUERIES["cancel"], parameters)
        await connection.execute(QUERIES["await_mirrors"], parameters | {"id": receipt})
        await connection.execute(QUERIES["note"], {"id": receipt, "scopes": 1, "removed": Jsonb(dict(removed))})
        if database.erasures is not None:
            await log_erasure(connection, database.erasures, scope_id, receipt=receipt)


async def finish(database: Database, tenant_id: int, receipt: UUID, others: Sequence[UserErasure] = ()) -> UserErasure:
    """Finish a receipt with what other servers have counted, and return it."""
    async with database.transaction(tenant_id) as connection:
        for other in others:
            counted = {"id": receipt, "scopes": other.scopes, "removed": Jsonb(dict(other.removed))}
            await connection.execute(QUERIES["note"], counted)
        row = await (await connection.execute(QUERIES["finish"], {"id": receipt})).fetchone()
    assert row is not None  # noqa: S101 - nobody deletes receipts
    return to_erasure(row)


async def list_receipts(database: Database, tenant_id: int, user: str, limit: int) -> list[UserErasure]:
    """List what erasures removed, the latest first; of one user, or of all if none is named."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["receipts"], {"user": user, "limit": limit})
    return [to_erasure(row) for row in await found.fetchall()]


async def list_tables(connection: Connection) -> list[tuple[str, Identifier | Composed]]:
    """List the tables with rows of scopes, by the names that a receipt has for them; vectors first."""
    spaces = [(VECTORS, vectors_table(space.id)) for space in await list_spaces(connection)]
    return [*spaces, *((name, Identifier(name)) for name in TABLES)]


def to_erasure(row: DictRow) -> UserErasure:
    """Turn a row into a receipt."""
    return UserErasure(**row)
