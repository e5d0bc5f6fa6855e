"""The catalog: a small database that says which server has what; operators write it, every process keeps a copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby

from psycopg import AsyncConnection
from psycopg.rows import DictRow

from recollect.errors import ConflictError, NotFoundError, SetupError
from recollect.models.shards import PlacedBuckets, PlacedTenant, ServerAddresses, Shard, ShardState
from recollect.store.database.ownership import owning
from recollect.store.database.pool import load_queries

QUERIES = load_queries(__file__)
SCHEMA = load_queries(str(__file__).replace("catalog", "schema"))
NO_SHARD = "There is no shard {}."


@dataclass(frozen=True, slots=True)
class ShardLoad:
    """How much of the map a shard has."""

    name: str
    state: ShardState
    tenants: int
    buckets: int


def require_owner(dsn: str) -> str:
    """Return the DSN of the catalog's owner, or raise where none is set."""
    if not dsn:
        raise SetupError("Set RECOLLECT_OWNER_CATALOG_URL: this needs the owner of the catalog.")
    return dsn


async def create_catalog(owner: str) -> None:
    """Make the tables of the catalog, or bring them to their newest shape."""
    async with owning(owner) as connection, connection.transaction():
        await connection.execute(QUERIES["lock"])
        await connection.execute(SCHEMA["create"])


async def read_shards(connection: AsyncConnection[DictRow]) -> dict[int, Shard]:
    """Read all shards, as the service's role sees them."""
    rows = await (await connection.execute(QUERIES["shards"])).fetchall()
    return {row["id"]: to_shard(row) for row in rows}


async def read_tenants(connection: AsyncConnection[DictRow], tenant_id: int | None = None) -> dict[int, PlacedTenant]:
    """Read where a tenant lies, or where all of them do."""
    found = await connection.execute(QUERIES["placements"], {"tenant_id": tenant_id})
    return join_placements(await found.fetchall())


async def find_placed(owner: str, tenant_id: int) -> PlacedTenant:
    """Find where a tenant lies, as the catalog has it now."""
    async with owning(owner) as connection:
        return (await read_tenants(connection, tenant_id))[tenant_id]


def join_placements(rows: Iterable[Mapping[str, int]]) -> dict[int, PlacedTenant]:
    """Join placements, which come in the order of tenants and buckets, to tenants."""
    fields = ("first_bucket", "last_bucket", "shard_id", "generation")
    return {
        tenant_id: PlacedTenant(tenant_id, tuple(PlacedBuckets(*(row[name] for name in fields)) for row in some))
        for tenant_id, some in groupby(rows, key=lambda row: row["tenant_id"])
    }


async def find_shard(owner: str, name: str) -> int:
    """Return a shard's number, or raise."""
    async with owning(owner) as connection:
        row = await (await connection.execute(QUERIES["find_shard"], {"name": name})).fetchone()
    if row is None:
        raise NotFoundError(NO_SHARD.format(name))
    number: int = row["id"]
    return number


async def add_shard(owner: str, name: str, addresses: ServerAddresses) -> Shard:
    """Enter a server that has been migrated, or change its addresses."""
    asked = {"name": name, **asdict(addresses), "replicas": list(addresses.replicas)}
    async with owning(owner) as connection:
        row = await (await connection.execute(QUERIES["add_shard"], asked)).fetchone()
    if row is None:
        raise SetupError("The shard was not entered.")
    return to_shard(row)


def to_shard(row: DictRow) -> Shard:
    """Turn a row into a shard, as the service's role knows it."""
    addresses, state = (row["address"], row["direct_address"]), ShardState(row["state"])
    return Shard(row["id"], row["name"], *addresses, state, tuple(row["replica_addresses"]))


async def set_state(owner: str, name: str, state: ShardState) -> None:
    """Say whether new tenants are placed on a shard."""
    async with owning(owner) as connection:
        row = await (await connection.execute(QUERIES["set_state"], {"name": name, "state": state})).fetchone()
    if row is None:
        raise NotFoundError(NO_SHARD.format(name))


async def list_loads(owner: str) -> list[ShardLoad]:
    """List what every shard holds."""
    async with owning(owner) as connection:
        rows = await (await connection.execute(QUERIES["load"])).fetchall()
    return [ShardLoad(row["name"], ShardState(row["state"]), row["tenants"], row["buckets"]) for row in rows]


async def find_tenant(owner: str, name: str) -> int | None:
    """Return a tenant's number, if there is such a tenant."""
    async with owning(owner) as connection:
        row = await (await connection.execute(QUERIES["find_tenant"], {"name": name})).fetchone()
    return row["id"] if row else None


async def list_addresses(owner: str) -> dict[int, ServerAddresses]:
    """List where every shard is reached, by its number."""
    async with owning(owner) as connection:
        rows = await (await connection.execute(QUERIES["addresses"])).fetchall()
    return {
        row["id"]: ServerAddresses(row["service"], row["owner"], row["direct"], tuple(row["replicas"])) for row in rows
    }


async def ensure_tenant(owner: str, name: str) -> int:
    """Return a tenant's number; a new one is placed on the emptiest shard, which then serves it.

    Broken off in between, the next call goes on.
    """
    async with owning(owner) as connection, connection.transaction():
        await connection.execute(QUERIES["lock"])
        await connection.execute(QUERIES["add_tenant"], {"name": name})
        found = await (await connection.execute(QUERIES["find_tenant"], {"name": name})).fetchone()
        number: int = found["id"] if found else 0
        await connection.execute(QUERIES["place"], {"tenant_id": number})
        placed = (await read_tenants(connection, number)).get(number)
    if placed is None:
        raise ConflictError("No shard is open for a new tenant: add one with `recollect shard add`.")
    addresses = await list_addresses(owner)
    for placement in placed.placements:
        await serve(addresses[placement.shard_id].owner, number, name, placement)
    return number


async def serve(owner: str, tenant_id: int, name: str, placement: PlacedBuckets) -> None:
    """Tell a shard that it serves some buckets of a tenant; what it knows already stays."""
    asked = {"tenant_id": tenant_id, "name": name, "generation": placement.generation}
    asked |= {"first_bucket": placement.first_bucket, "last_bucket": placement.last_bucket}
    async with owning(owner) as connection:
        await connection.execute(QUERIES["serve"], asked)
