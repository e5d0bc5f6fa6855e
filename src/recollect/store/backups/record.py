"""Read a database for a backup or a restore, and set the time from which a restored one may be served."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import DictRow

from recollect.core.service.erasures import Entries, ErasureLog
from recollect.core.service.numbers import tenant_of
from recollect.models.service import Scope
from recollect.store.database.erasures import between_erasures
from recollect.store.database.ownership import owning
from recollect.store.database.pool import Database, load_queries, show_cold

QUERIES = load_queries(__file__)
Owner = AsyncConnection[DictRow]


async def read_log(dsn: str, log: ErasureLog) -> Entries:
    """Read the log while no erasure is between its log entry and its commit."""
    async with owning(dsn) as connection, between_erasures(connection):
        return await log.read_erasures()


async def close_record(dsn: str) -> datetime | None:
    """Remove the incarnation, so that no process can serve this record; return when it began."""
    async with owning(dsn) as connection:
        rows = await fetch(connection, "close")
    return rows[0]["begun_at"] if rows else None


async def open_record(dsn: str) -> UUID:
    """Start a new incarnation of the record, so that processes may serve it."""
    async with owning(dsn) as connection:
        await connection.execute(QUERIES["sample"])
        new: UUID = (await fetch(connection, "renew"))[0]["id"]
        return new


async def find_scope(database: Database, scope_id: int) -> Scope | None:
    """Find the names of a scope, in any storage tier."""
    async with database.reading(tenant_of(scope_id)) as connection:
        await show_cold(connection)
        found = await connection.execute(QUERIES["scope"], {"scope_id": scope_id})
    row = await found.fetchone()
    return Scope(tenant_of(scope_id), row["agent"], row["user"]) if row else None


async def has_receipt(database: Database, scope_id: int, receipt: UUID, *, of_purge: bool) -> bool:
    """Return whether a record has a purge's receipt, or the receipt of a finished user erasure."""
    query = QUERIES["has_purged" if of_purge else "has_erased"]
    async with database.reading(tenant_of(scope_id)) as connection:
        await show_cold(connection)
        found = await connection.execute(query, {"scope_id": scope_id, "receipt": receipt})
    return await found.fetchone() is not None


async def fetch(connection: Owner, name: str) -> list[DictRow]:
    """Run a named query without parameters."""
    return await (await connection.execute(QUERIES[name])).fetchall()
