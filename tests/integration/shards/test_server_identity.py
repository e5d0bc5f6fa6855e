"""Each server has an identity: another server, or an empty one, is refused wherever it is connected to."""

import asyncio
import json
import logging

import psycopg
import pytest

from conftest import addresses_of
from recollect.errors import ConflictError, InvalidInputError, UnavailableError, WrongServerError
from recollect.llm.fake import FakeEmbedder
from recollect.models.service import Scope
from recollect.models.shards import ServerAddresses
from recollect.store.agents import agents
from recollect.store.database.identity import ServerCheck
from recollect.store.database.pool import Database
from recollect.store.shards import catalog
from recollect.store.shards.entry import add_shard
from recollect.wiring import connected
from support.programs.command_line import run
from support.service.made_settings import make_settings
from support.shards.shards import lay_out, query

pytest_plugins = ("support.shards.two_shards",)

IDENTITY = "select number from server_identity"


def empty(cluster, clones):
    """Make a database with a schema that belongs to no catalog."""
    found = addresses_of(cluster, clones.take())
    return ServerAddresses(found.service, found.owner)


async def test_each_server_has_its_number_and_knows_the_others(layout):
    found = {name: query(owner, IDENTITY) for name, (_, owner) in layout.shards.items()}
    assert found == {"north": [(1,)], "south": [(2,)]}
    for _, owner in layout.shards.values():
        assert query(owner, "select number, name from known_shards order by 1") == [(1, "north"), (2, "south")]


async def test_another_server_under_a_known_name_is_refused_before_it_is_changed(layout, cluster, clones):
    other = await lay_out(cluster, clones, 1)
    migrated = []

    async def migrate():
        migrated.append(True)

    for addresses, reason in (
        (empty(cluster, clones), "This server is empty, and south is the name of another"),
        (ServerAddresses(*layout.shards["north"]), "This server is the shard north"),
        (ServerAddresses(*other.shards["north"]), "is server 1 of the catalog"),
    ):
        with pytest.raises(WrongServerError, match=reason):
            await add_shard(layout.owner, "south", addresses, migrate)
    assert not migrated
    before = (await catalog.list_addresses(layout.owner))[2]
    moved = ServerAddresses(*layout.shards["south"], direct=layout.shards["south"][0])
    await add_shard(layout.owner, "south", moved)
    assert (await catalog.list_addresses(layout.owner))[2] == moved != before


async def test_a_server_with_tenants_of_its_own_is_refused(layout, cluster, clones):
    used = empty(cluster, clones)
    query(used.owner, "insert into tenants (name) values ('somebody')")
    with pytest.raises(ConflictError, match="tenants that the catalog"):
        await add_shard(layout.owner, "west", used)
    assert query(used.owner, IDENTITY) == []


async def test_an_entry_that_was_killed_is_completed_under_the_same_number(layout, cluster, clones):
    west = empty(cluster, clones)
    await add_shard(layout.owner, "west", west)
    query(layout.owner, "delete from shards where name = 'west'")
    for _, owner in layout.shards.values():
        query(owner, "delete from known_shards where name = 'west'")
    await add_shard(layout.owner, "west", west)
    assert query(layout.owner, "select id from shards where name = 'west'") == [(3,)]
    assert query(west.owner, IDENTITY) == [(3,)]


async def test_a_server_that_an_older_catalog_does_not_know_is_refused(layout, cluster, clones):
    west = empty(cluster, clones)
    await add_shard(layout.owner, "west", west)
    query(west.owner, "insert into tenants (name) values ('somebody')")
    query(layout.owner, "delete from shards where name = 'west'")
    with pytest.raises(WrongServerError, match="shard check --repair"):
        await add_shard(layout.owner, "west", west)
    with pytest.raises(WrongServerError, match="west is the name of another"):
        await add_shard(layout.owner, "west", empty(cluster, clones))
    await add_shard(layout.owner, "east", empty(cluster, clones))
    assert query(layout.owner, "select id from shards where name = 'east'") == [(4,)]


async def test_an_address_with_a_password_is_refused(layout):
    service, owner = layout.shards["south"]
    for wrong in (f"{service} password=secret", "postgresql://u@h/d?password=secret", "postgresql://u:secret@h/d"):
        with pytest.raises(InvalidInputError, match="PGPASSFILE"):
            await add_shard(layout.owner, "south", ServerAddresses(wrong, owner))


async def test_an_older_catalog_numbers_no_tenant_twice(layout):
    number = await catalog.ensure_tenant(layout.owner, "one")
    query(layout.owner, "delete from placements")
    with pytest.raises(ConflictError, match="The tenant one has no placement"):
        await catalog.ensure_tenant(layout.owner, "one")
    query(layout.owner, "delete from tenants")
    with pytest.raises(ConflictError, match="older than its servers"):
        await catalog.ensure_tenant(layout.owner, "one")
    query(layout.owner, "alter sequence tenants_id_seq restart with 1")
    with pytest.raises(ConflictError, match="older than its servers"):
        await catalog.ensure_tenant(layout.owner, "two")
    assert query(layout.owner, "select * from tenants") == []
    assert query(layout.shards["north"][1], "select id, name from tenants") == [(number, "one")]


async def test_an_older_catalog_that_lacks_a_server_numbers_no_tenant(layout, cluster, clones):
    west = empty(cluster, clones)
    await add_shard(layout.owner, "west", west)
    query(west.owner, "insert into tenants (id, name) values (1, 'one')")
    query(layout.owner, "delete from shards where name = 'west'")
    for name in ("one", "two"):
        with pytest.raises(ConflictError, match="knows the shard west"):
            await catalog.ensure_tenant(layout.owner, name)
    assert query(layout.owner, "select * from tenants") == []


async def test_a_new_tenant_waits_until_every_server_answers(layout):
    number = await catalog.ensure_tenant(layout.owner, "one")
    query(layout.owner, "update shards set owner_address = 'host=127.0.0.1 port=1' where name = 'south'")
    with pytest.raises(UnavailableError, match="south does not"):
        await catalog.ensure_tenant(layout.owner, "two")
    assert await catalog.ensure_tenant(layout.owner, "one") == number


async def test_a_wrong_address_is_unavailable_and_the_other_shard_goes_on(layout, cluster, clones, tmp_path, caplog):
    one, two = [await catalog.ensure_tenant(layout.owner, name) for name in ("one", "two")]
    wrong = empty(cluster, clones).service
    query(layout.owner, "update shards set service_address = %s where name = 'south'", wrong)
    async with layout.serving() as servers:
        await agents.fetch(await servers.home(one), Scope(one, "ada"))
        with pytest.raises(UnavailableError, match="south"):
            await servers.home(two)
    refused = [json.loads(each.message) for each in caplog.records if each.levelno == logging.ERROR]
    assert "has no identity" in refused[0]["reason"]
    settings = make_settings(embedder="fake", shards__map_file=tmp_path / "map.json")
    async with connected(settings, layout.addresses, FakeEmbedder()) as running:
        await running.probe.check()
        assert [*running.probe.failing] == ["south"]
        assert "has no identity" in running.probe.failing["south"]
        query(layout.owner, "update shards set service_address = %s where name = 'south'", layout.shards["south"][0])
        await running.parts.servers.read_anew(two)


async def test_a_connection_made_later_is_compared_too(layout):
    service, owner = layout.shards["south"]
    [shard] = [each for each in (await catalog_shards(layout)).values() if each.name == "south"]
    check = ServerCheck("", shard.identity)
    database = await Database.open(service, 2, 600, server=check)
    query(owner, "update server_identity set number = 7")
    async with database.reading(None), asyncio.timeout(60):
        with pytest.raises(UnavailableError, match="PoolClosed"):
            async with database.reading(None):
                pass
    assert check.refused
    await database.close()


async def catalog_shards(layout):
    async with await psycopg.AsyncConnection.connect(layout.service, row_factory=psycopg.rows.dict_row) as connection:
        return await catalog.read_shards(connection)


async def test_commands_of_the_owner_refuse_another_server(layout, cluster, clones, tmp_path):
    await catalog.ensure_tenant(layout.owner, "one")
    given = {"shards__catalog_url": layout.service, "shards__owner_catalog_url": layout.owner, "embedder": "fake"}
    given |= {"shards__map_file": str(tmp_path / "map.json")}
    settings = {f"RECOLLECT_{name.upper()}": value for name, value in given.items()}
    wrong = empty(cluster, clones).owner
    query(layout.owner, "update shards set owner_address = %s where name = 'north'", wrong)
    for words in (
        (
            "admin",
            "migrate",
        ),
        ("admin", "embeddings", "list"),
        ("admin", "keys", "create", "second", "--tenant", "one"),
    ):
        assert "has no identity" in " ".join(run(*words, settings=settings, fails=True).split())
    assert query(wrong, "select * from tenants") == []
