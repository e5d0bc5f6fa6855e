"""Cold scopes of a tenant on two shards: the keys are stored on its home shard."""

from __future__ import annotations

import base64

import psycopg
import pytest

from recollect.core.service.numbers import bucket_of
from recollect.llm.fake import FakeEmbedder
from recollect.models.outside import StorageTier
from recollect.store.cold.tiers import defer_waking
from support.memories.cold_scopes import chilly, objects_in, send_out
from support.shards.shards import NAMES

pytest_plugins = ("support.shards.two_shards",)

USERS = [f"user-{number}" for number in range(6)]
KEY, LATER = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))


@pytest.fixture
def opening(layout, tmp_path):
    """Open a Recollect with an object storage, all of which have the same one."""

    def opened(**more):
        given = {"shards__map_file": tmp_path / "map.json", "cold__key": KEY, **more}
        return chilly(layout.addresses, FakeEmbedder(), f"file://{tmp_path / 'objects'}", **given)

    return opened


@pytest.fixture
async def many(opening):
    async with opening() as running:
        yield running


async def filled(many, layout):
    """A tenant on two shards, and its minds."""
    caller = await many.operator.act_for("one")
    layout.split(caller.tenant_id, "north", "south", 2048)
    await many.parts.servers.read_anew(caller.tenant_id)
    minds = {user: await many.mind("ada", user, tenant="one") for user in USERS}
    for user, mind in minds.items():
        await mind.remember(f"I am {user}.")
    return minds


def count(layout, shard, query):
    with psycopg.connect(layout.shards[shard][1]) as connection:
        return connection.execute(query).fetchone()[0]


async def contents(minds):
    return {user: [each.content for each in (await mind.list()).memories] for user, mind in minds.items()}


async def test_scopes_of_two_shards_leave_and_come_back_by_keys_of_the_home(many, opening, layout, tmp_path):
    minds = await filled(many, layout)
    high = sum(bucket_of("ada", user) >= 2048 for user in USERS)
    assert 0 < high < len(USERS)
    expected = await contents(minds)
    moved = await send_out(many, user=None, tenant="one")
    assert (moved.moved, len(objects_in(tmp_path / "objects"))) == (len(USERS), len(USERS))
    caller = await many.operator.act_for("one")
    assert [each.tier for each in await many.operator.cold.list(caller)] == [StorageTier.COLD] * len(USERS)
    assert (await many.operator.cold.stats()).cold == len(USERS)
    keys = {shard: count(layout, shard, "select count(*) from tenant_keys") for shard in NAMES[:2]}
    assert keys == {"north": 1, "south": 0}
    async with opening(cold__key=LATER, cold__previous_key=KEY) as other:
        assert await other.operator.cold.rewrap() == 1
    async with opening(cold__key=LATER) as other:
        again = {user: await other.mind("ada", user, tenant="one") for user in USERS[:3]}
        assert await contents(again) == {user: expected[user] for user in USERS[:3]}, "they come back when asked for"
        assert (await other.operator.cold.back(caller, "ada")).moved == len(USERS) - 3
        assert await other.operator.cold.remove_unused() == 0
    assert await contents(minds) == expected
    assert objects_in(tmp_path / "objects") == []


async def test_a_worker_wakes_scopes_where_it_works(many, layout, tmp_path):
    minds = await filled(many, layout)
    await send_out(many, user=None, tenant="one")
    for mind in minds.values():
        scope_id = await scope_number(layout, mind)
        database = await many.parts.servers.by_scope_id(scope_id)
        await defer_waking(database, scope_id)
    await many.work(until_empty=True)
    assert (await many.operator.cold.stats()).cold == 0
    assert objects_in(tmp_path / "objects") == []


async def scope_number(layout, mind):
    for _, owner in layout.shards.values():
        with psycopg.connect(owner) as connection:
            query = 'select id from scopes where "user" = %s and is_served(id)'
            if found := connection.execute(query, [mind.access.scope.user]).fetchone():
                return found[0]
    raise AssertionError("no shard serves it")
