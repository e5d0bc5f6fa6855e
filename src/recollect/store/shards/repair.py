"""Survey the catalog and its servers, and rebuild a lost or old catalog from them; no tenant's row is deleted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import DictRow

from recollect.core.service.placements import (
    OWNER,
    RepairPlan,
    ServerClaim,
    ServerFacts,
    Survey,
    list_roles,
    plan_repair,
)
from recollect.errors import SchemaError, SetupError
from recollect.models.shards import ServerAddresses
from recollect.store.database.connect_errors import connect, find_refusal
from recollect.store.database.errors import describe_database_error
from recollect.store.database.identity import read_identity
from recollect.store.database.migrate import job_engine_migrations, list_migrations
from recollect.store.database.ownership import owning
from recollect.store.database.pool import load_queries
from recollect.store.database.probe import check_schema, read_applied
from recollect.store.shards import catalog, entry, placing

QUERIES = load_queries(__file__)
EMPTY = "The catalog names no shard: run `recollect admin shard check --repair --from` with any server's owner address."


async def take_survey(connection: AsyncConnection[DictRow], start: str = "") -> Survey:
    """Query all servers that the catalog knows, the servers known to these, and the one at `start`, if given."""
    shards, answers = await catalog.read_entries(connection), dict[str, ServerFacts]()
    catalog_id = await catalog.read_catalog_id(connection)
    waiting = [role for each in shards.values() for role in list_roles(each.addresses)]
    waiting += [(OWNER, start)] if start else []
    if not shards:
        identity = (await fetch_server_facts(start, owner=True)).identity if start else None
        if identity is None:
            raise SetupError(EMPTY)
        catalog_id = identity.catalog_id
    while waiting:
        role, address = waiting.pop(0)
        if address not in answers:
            facts = answers[address] = await fetch_server_facts(address, owner=role == OWNER)
            if facts.identity and facts.identity.catalog_id == catalog_id:
                waiting += [found for each in facts.known.values() for found in list_roles(each.addresses)]
    names = await (await connection.execute(entry.QUERIES["tenants"])).fetchall()
    placements = await catalog.read_tenants(connection)
    return Survey(catalog_id, shards, {row["id"]: row["name"] for row in names}, placements, answers)


async def fetch_server_facts(address: str, *, owner: bool) -> ServerFacts:
    """Query the identity of a server; as its owner, all facts."""
    try:
        async with await connect(address) as server:
            if owner:
                return await read_all(server)
            primary = await (await server.execute(QUERIES["is_primary"])).fetchone()
            return ServerFacts(await read_identity(server), primary=bool(primary and primary["primary"]))
    except psycopg.OperationalError as problem:
        refusal, names = find_refusal(str(problem), address)
        return ServerFacts(problem=refusal.sentence.format(variable="its address", **names))
    except psycopg.Error as problem:
        return ServerFacts(problem=describe_database_error(problem))


async def read_all(server: AsyncConnection[DictRow]) -> ServerFacts:
    """Read all facts of a server."""
    facts = await entry.read_facts(server)
    if facts.identity is None:
        return facts
    claims = [ServerClaim(**row) for row in await (await server.execute(QUERIES["claims"])).fetchall()]
    strays = list[tuple[int, str, int]]()
    for tenant_id in {*facts.tenants} - {each.tenant_id for each in claims if is_whole(each)}:
        await server.execute(placing.QUERIES["act_for"], {"tenant_id": tenant_id})
        rows = await (await server.execute(QUERIES["strays"], {"tenant_id": tenant_id})).fetchall()
        strays += [(tenant_id, row["state"], row["rows"]) for row in rows]
    leftovers = await (await server.execute(QUERIES["leftovers"])).fetchall()
    primary = await (await server.execute(QUERIES["is_primary"])).fetchone()
    return ServerFacts(
        facts.identity,
        facts.known,
        facts.tenants,
        claims,
        strays,
        [row["name"] for row in leftovers],
        primary=bool(primary and primary["primary"]),
        schema=await find_misfit(server),
    )


def is_whole(claim: ServerClaim) -> bool:
    """Return whether a claim has all buckets of its tenant."""
    return claim.state != "closed" and (claim.first_bucket, claim.last_bucket) == (-1, 4095)


async def find_misfit(server: AsyncConnection[DictRow]) -> str:
    """Return why the schema of a server does not fit this program; empty if it fits."""
    try:
        check_schema([*list_migrations(), *job_engine_migrations()], await read_applied(server))
    except SchemaError as problem:
        return str(problem)
    return ""


async def repair(owner: str, start: str = "", without: Collection[str] = ()) -> RepairPlan:
    """Rebuild the catalog from the servers.

    Lost claims are closed before the catalog is written. If this is interrupted, the same call completes it.
    """
    await catalog.create_catalog(owner)
    async with owning(owner) as connection, connection.transaction():
        await connection.execute(catalog.QUERIES["lock"])
        survey = await take_survey(connection, start)
        plan = plan_repair(survey, without)
        for number, pieces in plan.changed:
            await cut_claim(plan.shards[number].addresses, pieces)
        await connection.execute(QUERIES["take_over"], {"catalog_id": plan.catalog_id})
        for number, shard in plan.shards.items():
            await connection.execute(entry.QUERIES["enter"], entry.to_row(number, shard))
        asked = {"ids": list(plan.tenants), "names": list(plan.tenants.values())}
        await connection.execute(QUERIES["add_tenants"], asked)
        await connection.execute(QUERIES["count_on"])
        for tenant_id, placed in plan.placed.items():
            if placed != survey.placements.get(tenant_id):
                await placing.record(connection, tenant_id, placed.placements)
    await entry.publish_shards(owner, plan.left_out)
    return plan


async def cut_claim(addresses: ServerAddresses, pieces: Sequence[ServerClaim]) -> None:
    """Close the lost parts of a claim after running writes; their rows stay."""
    async with owning(addresses.owner) as server, server.transaction():
        first, *others = (asdict(each) for each in pieces)
        await server.execute(QUERIES["hold_tenant"], first)
        await server.execute(QUERIES["cut_claim"], first)
        for each in others:
            await server.execute(QUERIES["add_claim"], each)
