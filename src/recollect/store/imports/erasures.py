"""Erase everything that scopes of one user hold, scope by scope, and keep one receipt of it in numbers."""

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
"""After how long a job goes on with an erasure; usually it has ended by then."""
TABLES = (*ERASED_FIRST, *(section.table for section in reversed(SECTIONS)))
"""What refers to others goes before them."""


async def list_scopes(database: Database, tenant_id: int, user: str) -> list[int]:
    """List the scopes of a user over all agents; by the name of a receipt, those that it has erased."""
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(QUERIES["scopes"], {"user": user})
    return [row["id"] for row in await found.fetchall()]


def name_erased(receipt: UUID) -> str:
    """Write what stands in place of an erased user's name; no user can be called so."""
    return f"/{receipt}"


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


async def find_unfinished(database: Database, tenant_id: int, user: str) -> UUID | None:
    """Find the receipt of an erasure of a user that was begun, and has not removed everything yet."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["unfinished"], {"user": user})
    row = await found.fetchone()
    return row["id"] if row else None


async def begin(database: Database, tenant_id: int, begun: UserErasure) -> None:
    """Begin a receipt at the tenant's home, with a job that goes on if this is broken off."""
    # A job of a tenant bears the first number that a scope of it could have.
    first, _ = number_range(tenant_id, FIRST_BUCKET, FIRST_BUCKET)
    arguments = {"scope_id": first, "receipt": str(begun.id)}
    async with database.transaction(tenant_id) as connection:
        await add_receipt(connection, begun)
        deferred = {"lock": lock_of(begun.id), "arguments": Jsonb(arguments), "seconds": LEFT_SECONDS}
        await connection.execute(QUERIES["defer"], deferred)


async def begin_part(database: Database, tenant_id: int, whole: UserErasure) -> None:
    """Begin the part of a receipt that another server counts for itself; one that is begun stays."""
    async with database.transaction(tenant_id) as connection:
        await add_receipt(connection, whole)


async def add_receipt(connection: Connection, begun: UserErasure) -> None:
    """Store a receipt, unless it is there."""
    named = {"user": begun.user, "asked_by": begun.asked_by, "id": begun.id}
    await connection.execute(QUERIES["begin"], named)


def lock_of(receipt: UUID | None) -> str:
    """Name the lock of the job of a receipt."""
    return f"erase:{receipt}"


async def erase_scope(database: Database, tenant_id: int, scope_id: int, whole: UserErasure) -> None:
    """Erase all rows of a scope and the user's name, and note how many rows, in one transaction.

    An object of it is to be removed. What was erased by somebody else meanwhile is left alone.
    """
    assert whole.id is not None  # noqa: S101 - only a dry run has none
    async with database.transaction(tenant_id, pipelined=False) as connection:
        await show_cold(connection)
        parameters: dict[str, object] = {"scope_id": scope_id, "user": whole.user, "name": name_erased(whole.id)}
        if await (await connection.execute(QUERIES["lock"], parameters)).fetchone() is None:
            return
        # Counted before: what is erased takes rows of other tables along.
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
    """Note that all is erased here, with what other servers have counted; finished when they are, and all mirrors."""
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
    """Read a receipt as it stands."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["receipt"], {"id": receipt})
    row = await found.fetchone()
    if row is None:
        raise NotFoundError("There is no such receipt.")
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
