"""The map of shards: who lies where, how a change is noticed, and what happens while the catalog is unavailable."""

import psycopg
import pytest

from recollect.errors import ConflictError, ScopeMovedError, SetupError, UnauthenticatedError, UnavailableError
from recollect.models.service import Scope
from recollect.models.shards import ShardState
from recollect.store.agents import agents
from recollect.store.shards import catalog
from recollect.store.shards.map import ShardMap
from support.shards.shards import NAMES

pytest_plugins = ("support.shards.two_shards",)

NOBODY = "host=127.0.0.1 port=1 dbname=none user=none"


async def whereabouts(database):
    async with database.reading(None) as connection:
        found = await connection.execute("select current_database() as name")
    return (await found.fetchone())["name"]


async def test_new_tenants_go_to_the_emptiest_shard_under_one_number(layout):
    numbers = [await catalog.ensure_tenant(layout.owner, name) for name in ("one", "two", "three")]
    assert len({*numbers}) == 3
    assert await catalog.ensure_tenant(layout.owner, "one") == numbers[0]
    loads = await catalog.list_loads(layout.owner)
    assert [(each.name, each.tenants, each.buckets) for each in loads] == [("north", 2, 2 * 4097), ("south", 1, 4097)]
    for name, (_, owner) in layout.shards.items():
        with psycopg.connect(owner) as connection:
            held = connection.execute("select tenant_id from placements order by 1").fetchall()
        assert held == [(number,) for number in numbers[NAMES.index(name) :: 2]]


async def test_no_tenant_is_placed_on_a_shard_that_is_drained(layout):
    await catalog.set_state(layout.owner, "north", ShardState.DRAINING)
    number = await catalog.ensure_tenant(layout.owner, "one")
    async with layout.serving() as servers:
        assert await whereabouts(await servers.home(number)) == dsn_name(layout, "south")
    await catalog.set_state(layout.owner, "south", ShardState.DRAINING)
    with pytest.raises(ConflictError, match="shard add"):
        await catalog.ensure_tenant(layout.owner, "two")


def dsn_name(layout, shard):
    return psycopg.conninfo.conninfo_to_dict(layout.shards[shard][0])["dbname"]


async def test_a_scope_is_served_by_the_shard_of_its_bucket_and_by_no_other(layout):
    number = await catalog.ensure_tenant(layout.owner, "one")
    async with layout.serving() as servers:
        database = await servers.for_scope(Scope(number, "ada", "li"))
        assert await whereabouts(database) == dsn_name(layout, "north")
        await agents.fetch(database, Scope(number, "ada", "li"))
        [other] = [server.database for server in await servers.answering() if server.name != "north"]
        with pytest.raises(ScopeMovedError):
            await agents.fetch(other.used(placed=(3, 1)), Scope(number, "ada", "li"))


@pytest.mark.parametrize("writing", [False, True])
async def test_who_goes_by_an_old_map_is_refused_and_finds_the_new_place(layout, writing):
    number = await catalog.ensure_tenant(layout.owner, "one")
    async with layout.serving() as servers:
        stale = await servers.home(number)
        layout.move(number, "north", "south")
        with pytest.raises(ScopeMovedError):
            await touch(stale, number, writing=writing)
        await servers.read_anew(number)
        found = await servers.home(number)
        assert await whereabouts(found) == dsn_name(layout, "south")
        await touch(found, number, writing=writing)


async def touch(database, number, *, writing):
    scope = Scope(number, "ada")
    if not writing:
        await agents.fetch(database, scope)
        return
    async with database.transaction(number) as connection:
        await agents.store_agent(connection, scope, agents.Profile())


async def test_a_suspended_tenant_is_read_and_not_written(layout):
    number = await catalog.ensure_tenant(layout.owner, "one")
    async with layout.serving() as servers:
        home = await servers.home(number)
        with psycopg.connect(layout.shards["north"][1], autocommit=True) as owner:
            owner.execute("select suspend_writes(%s)", [number])
        await touch(home, number, writing=False)
        with pytest.raises(UnavailableError, match="suspended"):
            await touch(home, number, writing=True)


async def test_a_suspension_waits_for_the_writes_under_way(layout):
    number = await catalog.ensure_tenant(layout.owner, "one")
    async with layout.serving() as servers:
        home = await servers.home(number)
        with psycopg.connect(layout.shards["north"][1], autocommit=True) as owner:
            async with home.transaction(number, pipelined=False) as connection:
                await agents.store_agent(connection, Scope(number, "ada"), agents.Profile())
                owner.execute("set lock_timeout = '100ms'")
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    owner.execute("select suspend_writes(%s)", [number])
            owner.execute("select suspend_writes(%s)", [number])


async def test_a_tenant_that_came_later_is_found_and_one_that_never_came_is_not(layout):
    async with layout.serving() as servers:
        number = await catalog.ensure_tenant(layout.owner, "later")
        await touch(await servers.home(number), number, writing=True)
        with pytest.raises(UnauthenticatedError):
            await servers.home(number + 1)


async def test_the_map_outlives_the_catalog(layout, tmp_path):
    file = tmp_path / "map.json"
    number = await catalog.ensure_tenant(layout.owner, "one")
    async with layout.serving(file):
        pass
    assert file.stat().st_mode & 0o777 == 0o600
    kept = ShardMap(NOBODY, file)
    await kept.open()
    assert (await kept.find_tenant_placement(number)).home == 1
    with pytest.raises(UnavailableError, match="catalog"):
        await kept.read_anew(number)
    await kept.stop_following()
    with pytest.raises(SetupError, match="RECOLLECT_SHARDS__CATALOG_URL"):
        await ShardMap(NOBODY, tmp_path / "none.json").open()
