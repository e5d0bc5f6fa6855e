"""Erase all data in the scopes of one user, scope by scope, and store a receipt with numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from recollect.core.imports.sections import ERASED_FIRST, SECTIONS
from recollect.core.service.numbers import number_range
from recollect.errors import NotFoundError
from recollect.models.imports import UserErasure
from recollect.models.shards import FIRST_BUCKET
from recollect.store.database.erasures import log_erasure
from recollect.store.database.pool import Connection, Database, load_queries, show_cold
from recollect.store.imports.exports import list_spaces
from recollect.store.memories.embeddings import vectors_table

QUERIES = load_queries(__file__)
VECTORS = "vectors"
LEFT_SECONDS = 30.0
"""Seconds after which a job resumes an erasure; it usually ends earlier."""
TABLES = (*ERASED_FIRST, *(section.table for section in reversed(SECTIONS)))
"""Tables with references to others come before those."""


async def list_scopes(database: Database, tenant_id: int, user: str, agent: str = "") -> list[int]:
    """List the scopes of a user over all agents, or of one agent.

    The name of a receipt lists the scopes that it has erased.
    """
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(QUERIES["scopes"], {"user": user, "agent": agent})
    return [row["id"] for row in await found.fetchall()]


def name_erased(receipt: UUID) -> str:
    """Return the name that replaces an erased user's name; no user can have it."""
    return f"/{receipt}"


async def count_affected(database: Database, tenant_id: int, scopes: Sequence[int]) -> dict[str, int]:
    """Count the rows that an erasure of scopes would remove, by table, in one snapshot."""
    counted = Counter[str]()
    async with database.snapshot(tenant_id) as connection:
        await show_cold(connection)
        for scope_id in scopes:
            counted += await count_rows(connection, scope_id)
    return dict(counted)


async def count_rows(connection: Connection, scope_id: int) -> Counter[str]:
    """Count the rows of a scope by table, in any storage tier; empty tables are absent."""
    row = await (await connection.execute(QUERIES["count_cold"], {"scope_id": scope_id})).fetchone()
    counted = Counter[str](row["counts"] if row else {})
    for name, table in await list_tables(connection):
        query = SQL(QUERIES["count"]).format(table=table)
        row = await (await connection.execute(query, {"scope_id": scope_id})).fetchone()
        counted[name] += row["rows"] if row else 0
    return +counted


async def find_unfinished(database: Database, tenant_id: int, user: str, agent: str) -> UUID | None:
    """Find the receipt of an unfinished erasure of the same names."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["unfinished"], {"user": user, "agent": agent})
    row = await found.fetchone()
    return row["id"] if row else None


async def begin(database: Database, tenant_id: int, begun: UserErasure) -> None:
    """Store a receipt at the tenant's home, with a job that resumes the erasure if it stops."""
    # A job of a tenant has the first number that a scope of it could have.
    first, _ = number_range(tenant_id, FIRST_BUCKET, FIRST_BUCKET)
    arguments = {"scope_id": first, "receipt": str(begun.id)}
    async with database.transaction(tenant_id) as connection:
        await add_receipt(connection, begun)
        deferred = {"lock": lock_of(begun.id), "arguments": Jsonb(arguments), "seconds": LEFT_SECONDS}
        await connection.execute(QUERIES["defer"], deferred)


async def begin_part(database: Database, tenant_id: int, whole: UserErasure) -> None:
    """Store the part of a receipt for another server, which counts its rows; an existing part stays."""
    async with database.transaction(tenant_id) as connection:
        await add_receipt(connection, whole)


async def add_receipt(connection: Connection, begun: UserErasure) -> None:
    """Store a receipt, unless it exists."""
    named = {"user": begun.user, "agent": begun.agent, "asked_by": begun.asked_by, "id": begun.id}
    await connection.execute(QUERIES["begin"], named)


def lock_of(receipt: UUID | None) -> str:
    """Return the name of the lock of a receipt's job."""
    return f"erase:{receipt}"


async def erase_scope(database: Database, tenant_id: int, scope_id: int, whole: UserErasure) -> None:
    """Erase all rows of a scope and the user's name, and count them on the receipt, in one transaction.

    The scope's object is marked for removal. A scope that another process has erased is left alone.
    """
    assert whole.id is not None  # noqa: S101 - only a dry run has none
    async with database.transaction(tenant_id, pipelined=False) as connection:
        await show_cold(connection)
        parameters: dict[str, object] = {"scope_id": scope_id, "user": whole.user, "name": name_erased(whole.id)}
        if await (await connection.execute(QUERIES["lock"], parameters)).fetchone() is None:
            return
        # Counted first: the deletion of rows also deletes rows of other tables.
        removed = await count_rows(connection, scope_id)
        for _, table in await list_tables(connection):
            await connection.execute(SQL(QUERIES["erase"]).format(table=table), parameters)
        await connection.execute(QUERIES["release_objects"], parameters)
        await connection.execute(QUERIES["reset"], parameters)
        await connection.execute(QUERIES["cancel"], parameters)
        await connection.execute(QUERIES["await_mirrors"], parameters | {"id": whole.id})
        await connection.execute(QUERIES["note"], {"id": whole.id, "scopes": 1, "removed": Jsonb(dict(removed))})
        if database.erasures is not None:
            await log_erasure(connection, database.erasures, scope_id, receipt=whole.id)


async def finish(database: Database, tenant_id: int, receipt: UUID, others: Sequence[UserErasure] = ()) -> UserErasure:
    """Record that all rows here are erased, and add the counts of other servers.

    The receipt is finished when all servers and all mirrors are.
    """
    told = {name: note for other in others for name, note in other.mirrors.items()}
    unreported = sum(other.finished_at is None for other in others)
    asked = {"id": receipt, "lock": lock_of(receipt), "unreported": unreported, "mirrors": Jsonb(told)}
    async with database.transaction(tenant_id) as connection:
        await connection.execute(QUERIES["hold"], asked)
        for other in others:
            counted = {"id": receipt, "scopes": other.scopes, "removed": Jsonb(dict(other.removed))}
            await connection.execute(QUERIES["note"], counted)
        row = await (await connection.execute(QUERIES["finish"], asked)).fetchone()
        await connection.execute(QUERIES["end_job"], asked)
    assert row is not None  # noqa: S101 - nobody deletes receipts
    return to_erasure(row)


async def read_receipt(database: Database, tenant_id: int, receipt: UUID) -> UserErasure:
    """Read the current state of a receipt."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["receipt"], {"id": receipt})
    row = await found.fetchone()
    if row is None:
        raise NotFoundError("No such receipt.")
    return to_erasure(row)


async def list_receipts(database: Database, tenant_id: int, user: str, limit: int) -> list[UserErasure]:
    """List receipts of erasures, latest first; of one user, or of all if none is named."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["receipts"], {"user": user, "limit": limit})
    return [to_erasure(row) for row in await found.fetchall()]


async def list_tables(connection: Connection) -> list[tuple[str, Identifier | Composed]]:
    """List the tables with rows of scopes, by their names in receipts; vectors first."""
    spaces = [(VECTORS, vectors_table(space.id)) for space in await list_spaces(connection)]
    return [*spaces, *((name, Identifier(name)) for name in TABLES)]


def to_erasure(row: DictRow) -> UserErasure:
    """Turn a row into a receipt."""
    return UserErasure(**row)
