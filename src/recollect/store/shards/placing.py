"""Suspend, place and resume tenants on their servers, as the owner of the tables; the catalog follows the servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.errors import ConflictError
from recollect.models.shards import LAST_BUCKET, OWN_BUCKET, BucketPlacement, ServerAddresses
from recollect.store.database import ownership
from recollect.store.database.ownership import owning, owning_server
from recollect.store.database.pool import load_queries
from recollect.store.shards import catalog

QUERIES = load_queries(__file__)
OF_TENANT = ("api_keys", "agents", "erasure_receipts")
"""The tables with rows of a tenant that are not in an export of its scopes."""
LIMITS = "limits"
NOT_RESTORED = "RC005"
UNLIKE = "The catalog and the servers differ about this tenant: run `recollect admin shard check`."


@dataclass(frozen=True, slots=True)
class TenantOn:
    """The part of a tenant that one server serves."""

    placements: tuple[BucketPlacement, ...]
    fenced: bool
    """Whether all of it is suspended."""
    memories: int
    """Number of memories that the server has of it, or awaits."""
    erasing: bool
    """Whether an erasure is not finished."""


@asynccontextmanager
async def acting(server: ServerAddresses, tenant_id: int) -> AsyncIterator[AsyncConnection[DictRow]]:
    """Connect as the owner of a server's tables, with access to one tenant's rows."""
    async with owning_server(server) as connection:
        await connection.execute(QUERIES["act_for"], {"tenant_id": tenant_id})
        yield connection


async def suspend(server: ServerAddresses, tenant_id: int) -> None:
    """Wait for running writes of a tenant on one server, then refuse new ones."""
    async with acting(server, tenant_id) as connection:
        await connection.execute(QUERIES["suspend"], {"tenant_id": tenant_id})


async def resume(server: ServerAddresses, tenant_id: int) -> None:
    """Accept writes on one server again, with the next generation, and run the waiting jobs.

    Raises ConflictError if rows are missing.
    """
    async with acting(server, tenant_id) as connection:
        try:
            await connection.execute(QUERIES["resume"], {"tenant_id": tenant_id})
            await connection.execute(ownership.QUERIES["wake"], {"tenant_id": tenant_id})
        except psycopg.DatabaseError as problem:
            if problem.sqlstate != NOT_RESTORED:
                raise
            missing = problem.diag.message_detail
            raise ConflictError(f"{missing} memories are not restored yet: import the export of the tenant.") from None


async def read_claims(server: ServerAddresses, shard_id: int, tenant_id: int) -> TenantOn | None:
    """Read the part of a tenant that a server serves; None if there is none."""
    async with acting(server, tenant_id) as connection:
        rows = await (await connection.execute(QUERIES["claims"], {"tenant_id": tenant_id})).fetchall()
    if not rows:
        return None
    placements = (BucketPlacement(row["first_bucket"], row["last_bucket"], shard_id, row["generation"]) for row in rows)
    memories = max(rows[0]["memories"], *(row["awaited"] or 0 for row in rows))
    return TenantOn(tuple(placements), all(row["state"] == "fenced" for row in rows), memories, rows[0]["erasing"])


async def await_rows(server: ServerAddresses, tenant_id: int, name: str, generation: int, memories: int) -> None:
    """Make a server without rows of a tenant wait for them: they are restored before writes resume."""
    asked = {"tenant_id": tenant_id, "name": name, "generation": generation, "memories": memories}
    async with acting(server, tenant_id) as connection, connection.transaction():
        row = await (await connection.execute(QUERIES["has_rows"], asked)).fetchone()
        if row and row["present"]:
            raise ConflictError("That shard has rows of this tenant already: choose another one.")
        await connection.execute(QUERIES["add_tenant"], asked)
        await connection.execute(QUERIES["forget_closed"], asked)
        await connection.execute(QUERIES["await_rows"], asked)


async def close_tenant(server: ServerAddresses, tenant_id: int) -> None:
    """Stop serving a suspended tenant on one server; its rows stay."""
    async with acting(server, tenant_id) as connection:
        await connection.execute(QUERIES["close"], {"tenant_id": tenant_id})


@asynccontextmanager
async def deciding(owner: str) -> AsyncIterator[tuple[AsyncConnection[DictRow], dict[int, ServerAddresses]]]:
    """Block other changes of placement, and commit the servers' changes to the catalog."""
    async with owning(catalog.require_owner(owner)) as connection, connection.transaction():
        await connection.execute(catalog.QUERIES["lock"])
        yield connection, {number: each.addresses for number, each in (await catalog.read_entries(connection)).items()}


async def record(connection: AsyncConnection[DictRow], tenant_id: int, placements: Sequence[BucketPlacement]) -> None:
    """Write the placements of a tenant to the catalog, as its servers have them."""
    await connection.execute(QUERIES["forget_placements"], {"tenant_id": tenant_id})
    await catalog.place_on(connection, tenant_id, placements)


def spread_evenly(shards: Sequence[int]) -> list[BucketPlacement]:
    """Divide the buckets of a new tenant evenly between shards; the first one is its home."""
    starts = [number * (LAST_BUCKET + 1) // len(shards) for number in range(len(shards))]
    ends = [*(start - 1 for start in starts[1:]), LAST_BUCKET]
    first, *others = (BucketPlacement(*each, 1) for each in zip(starts, ends, shards, strict=True))
    return [replace(first, first_bucket=OWN_BUCKET), *others]


async def find_claims(servers: Mapping[int, ServerAddresses], tenant_id: int) -> dict[int, TenantOn]:
    """Read the parts of a tenant on all servers of the catalog."""
    found = {shard_id: await read_claims(each, shard_id, tenant_id) for shard_id, each in servers.items()}
    return {shard_id: claims for shard_id, claims in found.items() if claims}


async def require_home(server: ServerAddresses, connection: AsyncConnection[DictRow], tenant_id: int) -> None:
    """Raise if another server has the rows of a tenant outside its scopes: the catalog is older than its servers."""
    if server.identity is None:
        return
    row = await (await connection.execute(QUERIES["is_home"], {"tenant_id": tenant_id})).fetchone()
    if not (row and row["is_home"]):
        raise ConflictError(UNLIKE)


async def export_tenant(server: ServerAddresses, tenant_id: int) -> list[dict[str, Any]]:
    """Read the rows of a tenant outside its scopes: keys, with their hashes, limits, profiles and receipts."""
    async with acting(server, tenant_id) as connection:
        await require_home(server, connection, tenant_id)
        limits = await (await connection.execute(QUERIES["limits"], {"tenant_id": tenant_id})).fetchone()
        found: list[dict[str, Any]] = [{"table": LIMITS, "row": limits}]
        for table in OF_TENANT:
            query = sql.SQL(QUERIES["rows"]).format(table=sql.Identifier(table))
            rows = await (await connection.execute(query, {"tenant_id": tenant_id})).fetchall()
            found += [{"table": table, "row": row["row"]} for row in rows]
    return found


async def import_tenant(server: ServerAddresses, tenant_id: int, lines: Sequence[Mapping[str, Any]]) -> None:
    """Store rows of `export_tenant`; existing rows stay unchanged."""
    async with acting(server, tenant_id) as connection, connection.transaction():
        await require_home(server, connection, tenant_id)
        for line in lines:
            given = {"tenant_id": tenant_id, "row": Jsonb(line["row"])}
            if line["table"] == LIMITS:
                await connection.execute(QUERIES["set_limits"], given)
            else:
                table = sql.Identifier(OF_TENANT[OF_TENANT.index(line["table"])])
                await connection.execute(sql.SQL(QUERIES["add_row"]).format(table=table), given)
