"""The catalog is compared with its servers, and made again from them after it was lost or restored from a backup."""

import asyncio
import json

import pytest

from conftest import addresses_of, http_client, new_key
from recollect.errors import ConflictError, SetupError, WrongServerError
from recollect.llm.fake import FakeEmbedder
from recollect.mind.operators.placements import TenantPlacements
from recollect.mind.operators.shards import Shards
from recollect.models.shards import ServerAddresses
from recollect.store.shards import catalog, repair
from recollect.store.shards.entry import add_shard
from recollect.wiring import connected
from support.programs.command_line import call, run
from support.service.made_settings import make_settings
from support.shards.shard_callers import count_rows
from support.shards.shards import query

pytest_plugins = ("support.shards.two_shards",)

SERVED = "select first_bucket, last_bucket, generation, state from placements order by 1"


async def differences(layout):
    return [f"{each.shard}: {each.found}" for each in await Shards(layout.owner).check()]


async def remember(running, secret, words):
    """Write over HTTP; return the statuses."""
    async with http_client(running, secret) as client:
        told = [{"agent": "ada", "user": f"u{number}", "content": word} for number, word in enumerate(words)]
        return [(await client.post("/v1/memories", json=each)).status_code for each in told]


def serving(layout, folder):
    settings = make_settings(embedder="fake", shards__map_file=folder / "map.json", request_timeout_seconds=60)
    return connected(settings, layout.addresses, FakeEmbedder())


async def empty_server(cluster, clones):
    found = addresses_of(cluster, clones.take())
    return ServerAddresses(found.service, found.owner)


def test_a_catalog_that_agrees_is_told_so_and_a_difference_ends_with_1(layout, tmp_path):
    settings = layout.settings(tmp_path)
    run("admin", "keys", "create", "first", "--tenant", "one", settings=settings)
    assert "agree" in run("admin", "shard", "check", settings=settings)
    query(layout.shards["north"][1], "update placements set generation = 5")
    ended = call("admin", "shard", "check", settings=settings)
    said = " ".join(ended.said.split())
    assert ended.code == 1
    assert "generation 5" in said
    assert "--repair" in said
    assert "need --repair" in run("admin", "shard", "check", "--without", "north", settings=settings, fails=True)


async def test_what_lies_on_the_servers_is_named_while_several_do_not_answer(layout, cluster, clones):
    for name in ("one", "two"):
        await catalog.ensure_tenant(layout.owner, name)
    south = layout.shards["south"][1]
    query(south, "update placements set state = 'closed'")
    query(south, "insert into scopes (id, tenant_id, agent, \"user\") values ((2::bigint << 40) + 1, 2, 'ada', '')")
    query(south, "delete from known_shards where name = 'north'")
    await add_shard(layout.owner, "west", await empty_server(cluster, clones))
    query(layout.owner, "update shards set owner_address = 'host=127.0.0.1 port=1' where name = 'west'")
    query(layout.owner, "insert into shards values (4, 'east', 'port=1', 'host=127.0.0.1 port=1')")
    found = await differences(layout)
    assert {"west", "east"} <= {each.partition(":")[0] for each in found}
    assert any("south: the catalog places two (2), buckets -1 to 4095" in each for each in found)
    assert any("1 scopes and keys of two are closed here" in each for each in found)


async def test_a_restored_catalog_loses_nothing(layout, tmp_path):
    """The order of commands that once deleted a tenant: dump, move, write, restore, and the repair."""
    async with serving(layout, tmp_path) as running:
        _, secret = await new_key(running, "one")
        dump = layout.dump()
        owner = layout.shards["north"][1]
        moving = TenantPlacements(running.addresses.tenants)
        await moving.suspend("one")
        keys = []
        await moving.export("one", keys.append)
        await moving.place("one", ["south"])
        await moving.import_lines("one", keys)
        await moving.resume("one")
        assert await remember(running, secret, ["after the move"] * 20) == [201] * 20
        layout.restore(dump)
        assert await remember(running, secret, ["with the older catalog"] * 5) == [201] * 5
        assert any("generation" in each for each in await differences(layout))
        await Shards(layout.owner).repair()
        assert await differences(layout) == ["north: 1 scopes and keys of one are closed here"]
        assert await remember(running, secret, ["after the repair"] * 5) == [201] * 5
    counted, twice = await asyncio.to_thread(count_rows, layout)
    assert (sum(counted.values()), twice) == (30, [])
    assert query(owner, SERVED) == [(-1, 4095, 1, "closed")]
    async with serving(layout, tmp_path / "another") as other:
        assert await remember(other, secret, ["by a new process"]) == [201]


async def test_a_wrong_address_makes_no_second_home(layout, cluster, clones, tmp_path):
    """A typing error in `shard add`, then a key for a tenant: nothing is written to the wrong database."""
    settings, wrong = layout.settings(tmp_path), await empty_server(cluster, clones)
    async with serving(layout, tmp_path) as running:
        _, secret = await new_key(running, "whale")
        north = ("--service", wrong.service, "--owner", wrong.owner)
        said = await asyncio.to_thread(run, "admin", "shard", "add", "north", *north, settings=settings, fails=True)
        assert "restore the backup of north" in " ".join(said.split())
        with pytest.raises(WrongServerError):
            await add_shard(layout.owner, "north", wrong)
        key = await asyncio.to_thread(run, "admin", "keys", "create", "second", "--tenant", "whale", settings=settings)
        assert key
        assert await remember(running, secret, ["told during the mistake"] * 12) == [201] * 12
    assert query(wrong.owner, "select * from tenants") == []
    assert sum((await asyncio.to_thread(count_rows, layout))[0].values()) == 12


async def test_a_lost_catalog_is_made_again_while_a_process_serves(layout, tmp_path):
    async with serving(layout, tmp_path) as running:
        keys = {name: (await new_key(running, name))[1] for name in ("one", "two", "three")}
        before = layout.dump()
        query(layout.owner, "drop schema public cascade")
        query(layout.owner, "create schema public")
        query(layout.owner, "grant usage on schema public to public")
        with pytest.raises(SetupError, match="--from"):
            await Shards(layout.owner).repair()
        for secret in keys.values():
            assert await remember(running, secret, ["without a catalog"]) == [201]
        await Shards(layout.owner).repair(start=layout.shards["south"][1])
        now = layout.dump()
        assert {**now, "tenants": b""} == {**before, "tenants": b""}
        assert query(layout.owner, "select id, name from tenants") == [(1, "one"), (2, "two"), (3, "three")]
        assert await differences(layout) == []
        fourth = await catalog.ensure_tenant(layout.owner, "four")
        assert fourth == 4
        for secret in keys.values():
            assert await remember(running, secret, ["with the new catalog"]) == [201]


async def test_a_repair_that_is_killed_anywhere_is_completed_by_the_next(layout, monkeypatch):
    number = await catalog.ensure_tenant(layout.owner, "one")
    south = layout.shards["south"][1]
    query(south, "insert into tenants (id, name) values (%s, 'one')", number)
    query(south, "insert into placements values (%s, 100, 4095, 3)", number)
    for step in ("cut_claim", "publish_shards"):
        place = repair if step == "cut_claim" else repair.entry
        done = getattr(place, step)

        async def killed(*given, done=done):
            await done(*given)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(place, step, killed)
            await Shards(layout.owner).repair()
    await Shards(layout.owner).repair()
    assert await differences(layout) == []
    assert query(layout.shards["north"][1], SERVED) == [(-1, 99, 1, "open"), (100, 4095, 1, "closed")]
    placed = await catalog.find_placed(layout.owner, number)
    assert [(each.first_bucket, each.shard_id, each.generation) for each in placed.placements] == [
        (-1, 1, 1),
        (100, 2, 3),
    ]


async def test_swapped_addresses_are_put_right(layout):
    one = await catalog.ensure_tenant(layout.owner, "one")
    before = await catalog.list_addresses(layout.owner)
    query(layout.owner, "update shards set service_address = 'x', owner_address = 'x'")
    for number, other in ((1, 2), (2, 1)):
        asked = (before[other].service, before[other].owner, number)
        query(layout.owner, "update shards set service_address = %s, owner_address = %s where id = %s", *asked)
    assert any("server 2 of the catalog" in each for each in await differences(layout))
    south = layout.shards["south"][1]
    await Shards(layout.owner).repair(start=south)
    assert await catalog.list_addresses(layout.owner) == before
    assert await differences(layout) == []
    assert await catalog.ensure_tenant(layout.owner, "one") == one


async def test_two_claims_of_one_generation_are_refused_and_nothing_is_changed(layout):
    number = await catalog.ensure_tenant(layout.owner, "one")
    south, dump = layout.shards["south"][1], layout.dump()
    query(south, "insert into tenants (id, name) values (%s, 'one')", number)
    query(south, "insert into placements values (%s, -1, 4095, 1)", number)
    with pytest.raises(ConflictError, match="one: servers 1 and 2 serve the buckets -1 to 4095"):
        await Shards(layout.owner).repair()
    assert layout.dump() == dump
    assert query(south, SERVED) == [(-1, 4095, 1, "open")]


async def test_without_a_server_its_tenants_wait_for_it(layout, tmp_path):
    for name in ("one", "two"):
        await catalog.ensure_tenant(layout.owner, name)
    query(layout.owner, "update shards set owner_address = 'port=1', service_address = 'port=1' where name = 'south'")
    for _, owner in layout.shards.values():
        query(
            owner, "update known_shards set owner_address = 'port=1', service_address = 'port=1' where name = 'south'"
        )
    settings = layout.settings(tmp_path)
    assert "south: --owner" in " ".join(
        (await asyncio.to_thread(run, "admin", "shard", "check", "--repair", settings=settings, fails=True)).split()
    )
    dump = layout.dump()
    words = ("admin", "shard", "check", "--repair", "--without", "south")
    assert "two gets no place" in (await asyncio.to_thread(call, *words, settings=settings)).said
    assert layout.dump() == dump
    query(layout.owner, "truncate placements, tenants, shards")
    words += ("--from", layout.shards["north"][1])
    await asyncio.to_thread(call, *words, settings=settings)
    assert query(layout.owner, "select name from tenants") == [("one",)]
    found = await asyncio.to_thread(call, "admin", "keys", "create", "k", "--tenant", "two", settings=settings)
    assert "south does not" in " ".join(found.said.split())


def test_the_doctor_has_a_line_for_each_shard(layout, tmp_path, cluster):
    settings = layout.settings(tmp_path)
    run("admin", "keys", "create", "first", "--tenant", "one", settings=settings)
    query(layout.owner, "update shards set service_address = 'host=127.0.0.1 port=1' where name = 'south'")
    found = {each["check"]: each for each in json.loads(run("doctor", "--json", settings=settings))}
    assert found["shard north"]["state"] == "ok"
    assert "1 tenants, its identity is right" in found["shard north"]["found"]
    assert found["shard south"]["state"] == "failed"
    assert "shard check" in found["shard south"]["advice"]
