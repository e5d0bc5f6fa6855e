"""Enter servers in the catalog: each gets an identity, which is checked from then on, and the list of all servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict

from psycopg import AsyncConnection, errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow

from recollect.core.service.placements import KnownShard, ServerFacts, choose_number
from recollect.errors import InvalidInputError
from recollect.models.shards import ServerAddresses, ServerIdentity
from recollect.store.database.connect_errors import connect
from recollect.store.database.identity import check_identity, read_identity
from recollect.store.database.ownership import owning, owning_server
from recollect.store.database.pool import load_queries
from recollect.store.shards import catalog

QUERIES = load_queries(__file__)


async def add_shard(
    owner: str, name: str, addresses: ServerAddresses, migrate: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Enter a server, or change its addresses. If this is interrupted, the same call completes it."""
    refuse_passwords(addresses)
    async with owning(owner) as connection:
        await choose_identity(connection, name, addresses)
    if migrate is not None:
        await migrate()
    async with owning(owner) as connection, connection.transaction():
        await connection.execute(catalog.QUERIES["lock"])
        identity = await choose_identity(connection, name, addresses)
        entry = to_row(identity.number, KnownShard(name, addresses))
        async with owning(addresses.owner) as server, server.transaction():
            await server.execute(QUERIES["identify"], asdict(identity))
            await check_identity(server, identity)
            await server.execute(QUERIES["know"], entry)
        for address in {addresses.service, addresses.direct or addresses.service}:
            async with await connect(address) as service:
                await check_identity(service, identity)
        await connection.execute(QUERIES["enter"], entry)
    await publish_shards(owner)


def refuse_passwords(addresses: ServerAddresses) -> None:
    """Raise InvalidInputError if an address has a password: the catalog and every server store the addresses."""
    for address in (addresses.service, addresses.owner, addresses.direct):
        if {"password", "sslpassword"} & conninfo_to_dict(address).keys():
            raise InvalidInputError(
                "an address has a password, and the catalog stores addresses: put passwords into a passfile "
                "(~/.pgpass, or PGPASSFILE) or the environment of each process"
            )


async def choose_identity(
    connection: AsyncConnection[DictRow], name: str, addresses: ServerAddresses
) -> ServerIdentity:
    """Return the identity that a server has or will get; raise an error if its name has another identity."""
    shards = await catalog.read_entries(connection)
    catalog_id = await catalog.read_catalog_id(connection)
    async with owning(addresses.owner) as server:
        entrant = await read_facts(server)
    known = dict[int, str]()
    for each in shards.values() if entrant.identity is None else ():
        async with owning_server(each.addresses) as other:
            known |= to_names(await catalog.read_known(other))
    return ServerIdentity(catalog_id, choose_number(name, catalog_id, to_names(shards), entrant, known))


async def publish_shards(owner: str, left_out: Collection[int] = ()) -> None:
    """Store the names and addresses of all shards on each of them, so that a lost catalog can be rebuilt."""
    async with owning(owner) as connection:
        shards = await catalog.read_entries(connection)
    for number, each in shards.items():
        if number in left_out:
            continue
        async with owning_server(each.addresses) as server:
            await server.cursor().executemany(QUERIES["know"], [to_row(*entry) for entry in shards.items()])


async def read_facts(server: AsyncConnection[DictRow]) -> ServerFacts:
    """Read the facts that a server stores; there are none before its first migration."""
    try:
        identity, known = await read_identity(server), await catalog.read_known(server)
        tenants = await (await server.execute(QUERIES["tenants"])).fetchall()
    except errors.UndefinedTable:
        return ServerFacts()
    return ServerFacts(identity, known, {row["id"]: row["name"] for row in tenants})


def to_names(shards: Mapping[int, KnownShard]) -> dict[int, str]:
    """Return the names of shards by number."""
    return {number: each.name for number, each in shards.items()}


def to_row(number: int, shard: KnownShard) -> dict[str, object]:
    """Return the columns of a shard."""
    addresses = shard.addresses
    return {
        "number": number,
        "name": shard.name,
        "service": addresses.service,
        "owner": addresses.owner,
        "direct": addresses.direct,
    }
