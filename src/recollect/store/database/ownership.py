"""Changes that only the owner of the tables may make: databases and tenants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from uuid import UUID

from psycopg import AsyncConnection, errors, sql
from psycopg.rows import DictRow, dict_row

from recollect.errors import NotFoundError, SetupError
from recollect.models.service import Limits
from recollect.models.shards import ServerAddresses
from recollect.store.database.identity import check_identity
from recollect.store.database.pool import load_queries

QUERIES = load_queries(__file__)


def require_owner(dsn: str) -> str:
    """Return the DSN of the tables' owner; raise an error if none is set."""
    if not dsn:
        raise SetupError("Set RECOLLECT_OWNER_DATABASE_URL: this needs the owner of the tables.")
    return dsn


@asynccontextmanager
async def owning(dsn: str) -> AsyncIterator[AsyncConnection[DictRow]]:
    """Connect as the owner."""
    async with await AsyncConnection[DictRow].connect(dsn, autocommit=True, row_factory=dict_row) as connection:
        yield connection


@asynccontextmanager
async def owning_server(addresses: ServerAddresses) -> AsyncIterator[AsyncConnection[DictRow]]:
    """Connect as the owner of a server's tables, after comparing its identity with the expected one, if any."""
    async with owning(addresses.owner) as connection:
        if addresses.identity is not None:
            await check_identity(connection, addresses.identity)
        yield connection


async def ensure_database(dsn: str, name: str) -> None:
    """Create a database if it does not exist."""
    async with owning(dsn) as connection:
        if await (await connection.execute(QUERIES["has_database"], {"name": name})).fetchone() is None:
            try:
                await connection.execute(sql.SQL(QUERIES["create_database"]).format(name=sql.Identifier(name)))
            except (errors.DuplicateDatabase, errors.UniqueViolation):
                return


async def ensure_tenant(dsn: str, name: str) -> int:
    """Return a tenant's number, making the tenant if it is new."""
    async with owning(dsn) as connection:
        await connection.execute(QUERIES["create_tenant"], {"name": name})
        row = await (await connection.execute(QUERIES["find_tenant"], {"name": name})).fetchone()
        if row is None:
            raise NotFoundError("No such tenant.")
        number: int = row["id"]
        return number


async def number_tenants_from(dsn: str, block: int) -> None:
    """Start the numbers of tenants in a block; refuse if they start in another one already."""
    async with owning(dsn) as connection:
        await connection.execute(QUERIES["start_block"], {"block": block})
        row = await (await connection.execute(QUERIES["first_block"])).fetchone()
        if row is None or row["block"] != block:
            begun = row["block"] if row else None
            raise SetupError(f"Tenant numbers already start at block {begun}; cannot start at {block}.")


async def find_tenant(dsn: str, name: str) -> int | None:
    """Return a tenant's number; None for an unknown tenant."""
    async with owning(dsn) as connection:
        row = await (await connection.execute(QUERIES["find_tenant"], {"name": name})).fetchone()
        return row["id"] if row else None


async def set_budget(dsn: str, name: str, tokens: int | None) -> int | None:
    """Set a tenant's daily token budget, and wake jobs that wait for it.

    Returns the tenant's number; None for an unknown tenant.
    """
    async with owning(dsn) as connection, connection.transaction():
        row = await (await connection.execute(QUERIES["set_budget"], {"name": name, "tokens": tokens})).fetchone()
        if row is None:
            return None
        await connection.execute(QUERIES["wake"], {"tenant_id": row["id"]})
        number: int = row["id"]
        return number


async def limit_tenant(dsn: str, name: str, limits: Limits | None = None) -> Limits | None:
    """Set a tenant's limits, if given; return the current ones, None for an unknown tenant."""
    async with owning(dsn) as connection:
        if limits is not None:
            await connection.execute(QUERIES["limit_tenant"], {"name": name, **asdict(limits)})
        row = await (await connection.execute(QUERIES["tenant_limits"], {"name": name})).fetchone()
    return Limits(**row) if row else None


async def limit_key(dsn: str, tenant_id: int, key_id: UUID, limits: Limits | None = None) -> Limits | None:
    """Set a key's limits, if given; return the current ones, None for an unknown key."""
    async with owning(dsn) as connection, connection.transaction():
        await connection.execute(QUERIES["act_for"], {"tenant": str(tenant_id)})
        if limits is not None:
            await connection.execute(QUERIES["limit_key"], {"key_id": key_id, **asdict(limits)})
        row = await (await connection.execute(QUERIES["key_limits"], {"key_id": key_id})).fetchone()
    return Limits(**row) if row else None
