"""The catalog: a small database of the servers and their tenants.

Operators write it; every process keeps a copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import groupby

from psycopg import AsyncConnection, OperationalError
from psycopg.rows import DictRow

from recollect.core.service.placements import REPAIR, KnownShard
from recollect.errors import ConflictError, NotFoundError, SetupError, UnavailableError
from recollect.models.shards import BucketPlacement, ServerAddresses, ServerIdentity, Shard, ShardState, TenantPlacement
from recollect.store.database.ownership import owning, owning_server
from recollect.store.database.pool import load_queries

QUERIES = load_queries(__file__)
SCHEMA = load_queries(str(__file__).replace("catalog", "schema"))
NO_SHARD = "There is no shard {}."
NO_OPEN_SHARD = "No shard is open for a new tenant: add one with `recollect admin shard add`."
NO_NUMBER = "A new tenant needs an answer of every shard, and {} does not answer: start it, then try again."
OLDER = "The {} knows this tenant already ({}): the catalog is older than its servers; " + REPAIR + "."
UNKNOWN = "The server {} knows the shard {}, and the catalog does not: it is older than its servers; " + REPAIR + "."
UNPLACED = "The tenant {} has no placement: when every shard answers, " + REPAIR + "."


@dataclass(frozen=True, slots=True)
class ShardLoad:
    """The load of a shard in the map."""

    name: str
    state: ShardState
    tenants: int
    buckets: int


def require_owner(dsn: str) -> str:
    """Return the DSN of the catalog's owner; raise an error if none is set."""
    if not dsn:
        raise SetupError("Set RECOLLECT_SHARDS__OWNER_CATALOG_URL: this needs the owner of the catalog.")
    return dsn


async def create_catalog(owner: str) -> None:
    """Create the tables of the catalog, or upgrade them."""
    async with owning(owner) as connection, connection.transaction():
        await connection.execute(QUERIES["lock"])
        await connection.execute(SCHEMA["create"])


async def read_catalog_id(connection: AsyncConnection[DictRow]) -> str:
    """Read the ID of the catalog."""
    row = await (await connection.execute(QUERIES["catalog_id"])).fetchone()
    return str(row["id"]) if row else ""


async def read_shards(connection: AsyncConnection[DictRow]) -> dict[int, Shard]:
    """Read all shards, as the service's role sees them."""
    rows = await (await connection.execute(QUERIES["shards"])).fetchall()
    return {row["id"]: to_shard(row) for row in rows}


async def read_tenants(
    connection: AsyncConnection[DictRow], tenant_id: int | None = None
) -> dict[int, TenantPlacement]:
    """Read the placement of one tenant, or of all."""
    found = await connection.execute(QUERIES["placements"], {"tenant_id": tenant_id})
    return join_placements(await found.fetchall())


async def find_placed(owner: str, tenant_id: int) -> TenantPlacement:
    """Find the placement of a tenant in the catalog."""
    async with owning(owner) as connection:
        return await read_placed(connection, tenant_id)


async def read_placed(connection: AsyncConnection[DictRow], tenant_id: int) -> TenantPlacement:
    """Read the placement of a tenant, or raise an error if it has none."""
    placed = (await read_tenants(connection, tenant_id)).get(tenant_id)
    if placed is None:
        raise ConflictError(UNPLACED.format(tenant_id))
    return placed


def join_placements(rows: Iterable[Mapping[str, int]]) -> dict[int, TenantPlacement]:
    """Group placements, sorted by tenant and bucket, by tenant."""
    fields = ("first_bucket", "last_bucket", "shard_id", "generation")
    return {
        tenant_id: TenantPlacement(tenant_id, tuple(BucketPlacement(*(row[name] for name in fields)) for row in some))
        for tenant_id, some in groupby(rows, key=lambda row: row["tenant_id"])
    }


async def find_shard(owner: str, name: str) -> int:
    """Return a shard's number; raise an error if it is unknown."""
    async with owning(owner) as connection:
        row = await (await connection.execute(QUERIES["find_shard"], {"name": name})).fetchone()
    if row is None:
        raise NotFoundError(NO_SHARD.format(name))
    number: int = row["id"]
    return number


def to_shard(row: DictRow) -> Shard:
    """Convert a row to a shard, as the service's role knows it."""
    addresses, state = (row["address"], row["direct_address"]), ShardState(row["state"])
    return Shard(row["id"], row["name"], *addresses, state, row["catalog_id"])


async def set_state(owner: str, name: str, state: ShardState) -> None:
    """Set whether new tenants are placed on a shard."""
    async with owning(owner) as connection:
        row = await (await connection.execute(QUERIES["set_state"], {"name": name, "state": state})).fetchone()
    if row is None:
        raise NotFoundError(NO_SHARD.format(name))


async def list_loads(owner: str) -> list[ShardLoad]:
    """List the load of all shards."""
    async with owning(owner) as connection:
        rows = await (await connection.execute(QUERIES["load"])).fetchall()
    return [ShardLoad(row["name"], ShardState(row["state"]), row["tenants"], row["buckets"]) for row in rows]


async def find_tenant(owner: str, name: str) -> int | None:
    """Return a tenant's number; None for an unknown tenant."""
    async with owning(owner) as connection:
        row = await (await connection.execute(QUERIES["find_tenant"], {"name": name})).fetchone()
    return row["id"] if row else None


async def list_addresses(owner: str) -> dict[int, ServerAddresses]:
    """List the addresses of all shards, by number."""
    async with owning(owner) as connection:
        return {number: each.addresses for number, each in (await read_entries(connection)).items()}


async def read_entries(connection: AsyncConnection[DictRow]) -> dict[int, KnownShard]:
    """Read the names and addresses of all shards."""
    return to_entries(await (await connection.execute(QUERIES["addresses"])).fetchall())


async def read_known(server: AsyncConnection[DictRow]) -> dict[int, KnownShard]:
    """Read which shards a server knows."""
    return to_entries(await (await server.execute(QUERIES["known_shards"])).fetchall())


def to_entries(rows: Iterable[DictRow]) -> dict[int, KnownShard]:
    """Convert rows of the catalog, or of a server's copy, to shards by number."""
    return {row["number"]: KnownShard(row["name"], to_addresses(row)) for row in rows}


def to_addresses(row: DictRow) -> ServerAddresses:
    """Convert a row to addresses; those of the catalog have the expected identity."""
    identity = ServerIdentity(row["catalog_id"], row["number"]) if "catalog_id" in row else None
    return ServerAddresses(row["service"], row["owner"], row["direct"], identity)


async def list_servers(owner: str, wanted: Collection[int] = ()) -> dict[int, ServerAddresses]:
    """Return the addresses of some or all shards by their numbers, after checking the identity of each."""
    known = await list_addresses(owner)
    servers = {number: known[number] for number in wanted or known}
    for each in servers.values():
        async with owning_server(each):
            pass
    return servers


async def ensure_tenant(owner: str, name: str, wanted: Sequence[BucketPlacement] = ()) -> int:
    """Return a tenant's number; place a new tenant as requested, by default on the emptiest shard.

    If this is interrupted, the next call completes it.
    """
    async with owning(owner) as connection, connection.transaction():
        await connection.execute(QUERIES["lock"])
        added = (await connection.execute(QUERIES["add_tenant"], {"name": name})).rowcount
        found = await (await connection.execute(QUERIES["find_tenant"], {"name": name})).fetchone()
        number: int = found["id"] if found else 0
        entries = await read_entries(connection)
        if added:
            await check_unknown(entries, number, name)
            if wanted:
                await place_on(connection, number, wanted)
            else:
                await connection.execute(QUERIES["place"], {"tenant_id": number})
        placed = (await read_tenants(connection, number)).get(number)
        if placed is None:
            raise ConflictError(NO_OPEN_SHARD if added else UNPLACED.format(name))
    for placement in placed.placements:
        await serve(entries[placement.shard_id].addresses, number, name, placement)
    return number


async def place_on(connection: AsyncConnection[DictRow], tenant_id: int, placements: Sequence[BucketPlacement]) -> None:
    """Write which servers serve the buckets of a tenant."""
    columns = zip(*(astuple(each) for each in placements), strict=True)
    names = ("firsts", "lasts", "shards", "generations")
    asked = {name: list(column) for name, column in zip(names, columns, strict=True)}
    await connection.execute(QUERIES["place_on"], asked | {"tenant_id": tenant_id})


async def check_unknown(shards: Mapping[int, KnownShard], number: int, name: str) -> None:
    """Raise if a server knows a new tenant or another server, as then the catalog is older; each server must answer."""
    for shard in shards.values():
        try:
            async with owning_server(shard.addresses) as server:
                found, known = await find_known(server, number, name), await read_known(server)
        except OperationalError:
            raise UnavailableError(NO_NUMBER.format(shard.name)) from None
        if found:
            raise ConflictError(OLDER.format(shard.name, found))
        if unknown := [each.name for key, each in known.items() if key not in shards]:
            # That server may have a tenant of this number or this name.
            raise ConflictError(UNKNOWN.format(shard.name, unknown[0]))


async def find_known(server: AsyncConnection[DictRow], number: int, name: str) -> dict[int, str]:
    """Return the tenants of a server that have a number or a name."""
    found = await server.execute(QUERIES["known_tenants"], {"tenant_id": number, "name": name})
    return {row["id"]: row["name"] for row in await found.fetchall()}


async def serve(addresses: ServerAddresses, tenant_id: int, name: str, placement: BucketPlacement) -> None:
    """Make a shard serve some buckets of a tenant; existing buckets stay unchanged."""
    asked = {"tenant_id": tenant_id, "name": name, "generation": placement.generation}
    asked |= {"first_bucket": placement.first_bucket, "last_bucket": placement.last_bucket}
    async with owning_server(addresses) as connection, connection.transaction():
        known = await find_known(connection, tenant_id, name)
        if known not in ({}, {tenant_id: name}):
            raise ConflictError(OLDER.format("server", known))
        await connection.execute(QUERIES["serve"], asked)
