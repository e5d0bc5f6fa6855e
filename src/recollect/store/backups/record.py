"""What a backup asks of a database: how it stands, whether it is whole, and from when on it may be used again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from psycopg import AsyncConnection, errors, sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import DictRow

from recollect.core.backups.manifest import RecordDescription
from recollect.core.service.erasures import Entries, ErasureLog
from recollect.core.service.numbers import tenant_of
from recollect.errors import ConflictError, SetupError
from recollect.models.service import Scope
from recollect.store.database.erasures import between_erasures
from recollect.store.database.migrate import migrate
from recollect.store.database.ownership import ensure_database, owning
from recollect.store.database.pool import Database, load_queries, show_cold
from recollect.store.database.probe import UNSETTLED

QUERIES = load_queries(__file__)
Owner = AsyncConnection[DictRow]
SCRATCH = "recollect_scratch"
HIDDEN = (
    "Row-level security hides rows from this role: set RECOLLECT_BACKUP_URL to a superuser or a role with BYPASSRLS, "
    "because a backup must have every row."
)


@asynccontextmanager
async def hold_snapshot(dsn: str) -> AsyncIterator[tuple[str, RecordDescription]]:
    """Hold a moment of a database, by whose name pg_dump can read the same, and describe the database at it."""
    async with owning(dsn) as connection, connection.transaction():
        await connection.execute(QUERIES["freeze"])
        name = (await fetch(connection, "snapshot"))[0]["name"]
        yield name, await describe(connection)


async def describe_now(dsn: str) -> RecordDescription:
    """Describe a database as it is now."""
    async with owning(dsn) as connection:
        return await describe(connection)


async def describe(connection: Owner) -> RecordDescription:
    """Describe a database: which it is, what made it, and how many rows each table has."""
    if not (await fetch(connection, "sees_all"))[0]["sees_all"]:
        raise SetupError(HIDDEN)
    try:
        found = await fetch(connection, "describe")
    except errors.UndefinedTable:
        raise SetupError("This database has no memories: run `recollect migrate` first.") from None
    if not found:
        raise SetupError(UNSETTLED)
    roles = tuple(row["name"] for row in await fetch(connection, "roles"))
    return RecordDescription(**found[0], roles=roles, rows=await count_rows(connection))


async def count_rows(connection: Owner) -> dict[str, int]:
    """Count the rows of every table but the job engine's, which changes by itself."""
    counted: dict[str, int] = {}
    for table in await fetch(connection, "tables"):
        query = sql.SQL(QUERIES["count"]).format(table=sql.Identifier(table["name"]))
        row = await (await connection.execute(query)).fetchone()
        counted[table["name"]] = row["rows"] if row else 0
    return counted


async def count_rows_now(dsn: str) -> dict[str, int]:
    """Count the rows of a database as it is now."""
    async with owning(dsn) as connection:
        return await count_rows(connection)


def join_counts(before: RecordDescription, after: RecordDescription) -> RecordDescription:
    """Describe a server that was copied meanwhile: its rows are known only if nothing has changed."""
    return before if before.rows == after.rows else replace(before, rows=None)


async def read_log(dsn: str, log: ErasureLog) -> Entries:
    """Read the log at a moment at which the effect of each of its entries is committed."""
    async with owning(dsn) as connection:
        if not (await fetch(connection, "sees_all"))[0]["sees_all"]:
            raise SetupError(HIDDEN)
        async with between_erasures(connection):
            return await log.read()


async def check_indexes(dsn: str) -> int | None:
    """Check every B-tree index of a database; return how many, or None where PostgreSQL has no amcheck."""
    async with owning(dsn) as connection:
        if not await fetch(connection, "has_amcheck"):
            return None
        await connection.execute(QUERIES["add_amcheck"])
        indexes = await fetch(connection, "indexes")
        for index in indexes:
            try:
                await connection.execute(QUERIES["check_index"], {"index": index["number"]})
            except (errors.IndexCorrupted, errors.DataCorrupted) as problem:
                raise ConflictError(f"The backup is damaged: {problem}") from None
        return len(indexes)


async def require_empty(dsn: str) -> None:
    """Refuse a database that holds tables: a backup is restored into an empty one."""
    async with owning(dsn) as connection:
        if await fetch(connection, "tables"):
            raise ConflictError("The database has tables already: restore into an empty one.")


async def require_roles(dsn: str, roles: tuple[str, ...], *, create: bool) -> None:
    """See that the roles exist that a dump names: what they own has their rights; make them on a server of our own."""
    async with owning(dsn) as connection:
        known = {row["name"] for row in await fetch(connection, "every_role")}
        missing = [role for role in roles if role not in known]
        if missing and not create:
            raise SetupError(f"The server lacks the roles {', '.join(missing)}: create them first (deploy/roles.sql).")
        for role in missing:
            await connection.execute(sql.SQL(QUERIES["create_role"]).format(role=sql.Identifier(role)))


async def make_roles(dsn: str) -> None:
    """Make the roles of the service on a new server as migrations do, with their rights and limits."""
    place = make_conninfo(dsn, dbname=SCRATCH)
    await ensure_database(dsn, SCRATCH)
    await migrate(place)
    async with owning(dsn) as connection:
        await connection.execute(sql.SQL(QUERIES["drop_database"]).format(name=sql.Identifier(SCRATCH)))


async def rename_database(dsn: str, old: str, new: str) -> None:
    """Give a database another name."""
    async with owning(dsn) as connection:
        names = {"old": sql.Identifier(old), "new": sql.Identifier(new)}
        await connection.execute(sql.SQL(QUERIES["rename"]).format(**names))


async def close_record(dsn: str) -> datetime | None:
    """Take the incarnation away: whoever would serve this record is refused; return when it had begun."""
    async with owning(dsn) as connection:
        rows = await fetch(connection, "close")
    return rows[0]["begun_at"] if rows else None


async def open_record(dsn: str) -> UUID:
    """Give the record a new incarnation: from now on it may be served."""
    async with owning(dsn) as connection:
        await connection.execute(QUERIES["sample"])
        new: UUID = (await fetch(connection, "renew"))[0]["id"]
        return new


async def find_scope(database: Database, scope_id: int) -> Scope | None:
    """Find the names of a scope, wherever its rows are."""
    async with database.reading(tenant_of(scope_id)) as connection:
        await show_cold(connection)
        found = await connection.execute(QUERIES["scope"], {"scope_id": scope_id})
    row = await found.fetchone()
    return Scope(tenant_of(scope_id), row["agent"], row["user"]) if row else None


async def has_receipt(database: Database, scope_id: int, receipt: UUID, *, of_purge: bool) -> bool:
    """Tell whether a record knows a purge, or has ended the erasure of a user."""
    query = QUERIES["has_purged" if of_purge else "has_erased"]
    async with database.reading(tenant_of(scope_id)) as connection:
        await show_cold(connection)
        found = await connection.execute(query, {"scope_id": scope_id, "receipt": receipt})
    return await found.fetchone() is not None


async def fetch(connection: Owner, name: str) -> list[DictRow]:
    """Run a named query without parameters."""
    return await (await connection.execute(QUERIES[name])).fetchall()
