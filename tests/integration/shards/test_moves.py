"""Moves between real servers while tenants are used: nothing is lost, and the source is in charge until the switch."""

import asyncio

import psycopg
import pytest

from recollect.core.service.numbers import bucket_of
from recollect.errors import ConflictError, NotFoundError, UnavailableError
from recollect.models.agents import Profile
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue
from recollect.verbs.service.moves import Moves
from shards import quiet

pytest_plugins = ("moving_shards",)


@pytest.fixture
def moves(layout):
    return Moves(layout.owner)


def held(layout, shard, tenant_id, table="memories"):
    with psycopg.connect(layout.shards[shard][1]) as connection:
        query = f"select count(*) from {table} where scope_id >> 40 = %s"
        return connection.execute(query, [tenant_id]).fetchone()[0]


async def test_a_tenant_moves_whole_and_is_used_there(many, layout, moves):
    mind = await many.mind("ada", "li", tenant="one")
    await mind.set_profile(Profile(names=("Ada",)))
    [first] = await mind.remember("Before the move.")
    tenant_id = mind.access.scope.tenant_id
    assert await moves.move("one", "south", quiet) == [(-1, 4095)]
    assert (await mind.get(first.id)).content == "Before the move."
    [second] = await mind.remember("After the move.")
    assert held(layout, "south", tenant_id) == 2
    assert held(layout, "north", tenant_id) == 1
    assert (await mind.profile()).names == ("Ada",)
    assert {hit.memory.id for hit in (await mind.recall(Cue("move"))).hits} == {first.id, second.id}


async def test_half_a_tenant_moves_and_both_halves_are_seen_as_one(many, layout, moves):
    users = [f"user-{number}" for number in range(10)]
    for user in users:
        await (await many.mind("ada", user, tenant="one")).remember(f"I am {user}.")
    caller = await many.operator.act_for("one")
    assert await moves.move("one", "south", quiet, (2048, 4095)) == [(2048, 4095)]
    high = [user for user in users if bucket_of("ada", user) >= 2048]
    assert 0 < len(high) < len(users)
    assert held(layout, "south", caller.tenant_id) == len(high)
    await many.parts.servers.read_anew(caller.tenant_id)
    listed = await many.tenant.scopes(caller, scope_query())
    assert sorted(each.user for each in listed.scopes) == users
    for user in users:
        [hit] = (await (await many.mind("ada", user, tenant="one")).recall(Cue("Who?"))).hits
        assert hit.memory.content == f"I am {user}."
    # And back again, past what was left behind there.
    assert await moves.move("one", "north", quiet) == [(2048, 4095)]
    await many.parts.servers.read_anew(caller.tenant_id)
    assert len((await many.tenant.scopes(caller, scope_query())).scopes) == len(users)
    assert held(layout, "north", caller.tenant_id) == len(users)


def scope_query():
    from recollect.models.service import ScopeQuery

    return ScopeQuery()


async def test_nothing_is_lost_of_what_is_written_meanwhile(many, layout, moves):
    minds = [await many.mind("ada", f"user-{number}", tenant="one") for number in range(4)]
    written, refused, stop = [], [], asyncio.Event()

    async def write(mind):
        while not stop.is_set():
            try:
                [receipt] = await mind.remember(f"Number {len(written)}.")
                written.append((mind, receipt.id))
            except UnavailableError as problem:
                refused.append(problem)

    writers = [asyncio.create_task(write(mind)) for mind in minds]
    await asyncio.sleep(0.3)
    await moves.move("one", "south", quiet)
    await asyncio.sleep(0.3)
    stop.set()
    await asyncio.gather(*writers)
    assert len(written) > 10
    for mind in minds:
        own = [memory_id for each, memory_id in written if each is mind]
        assert [(await mind.get(each)).id for each in own[::20]] == own[::20]
    assert held(layout, "south", minds[0].access.scope.tenant_id) == len(written)
    assert refused == []


async def test_a_difference_leaves_the_source_in_charge(many, layout, moves):
    mind = await many.mind("ada", tenant="one")
    [receipt] = await mind.remember("It stays.")
    tenant_id = mind.access.scope.tenant_id

    def spoil(step, done, total):
        if step == "tables copied" and done == total:
            with psycopg.connect(layout.shards["south"][1], autocommit=True) as connection:
                connection.execute("set session_replication_role = replica")
                connection.execute("update memories set content = 'Other.' where scope_id >> 40 = %s", [tenant_id])

    with pytest.raises(ConflictError, match="memories"):
        await moves.move("one", "south", spoil)
    assert (await mind.get(receipt.id)).content == "It stays."
    await mind.remember("It goes on.")
    assert held(layout, "south", tenant_id) == 0
    # It may be tried again.
    assert await moves.move("one", "south", quiet) == [(-1, 4095)]
    assert held(layout, "south", tenant_id) == 2


@pytest.mark.parametrize("step", ["tables copied", "tables compared", "switched", "jobs moved"])
async def test_a_move_that_was_broken_off_is_taken_up_again(many, layout, moves, step):
    mind = await many.mind("ada", tenant="one")
    [receipt] = await mind.remember("Before.")

    def break_off(told, done, total):
        if told == step:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        await moves.move("one", "south", break_off)
    if step not in {"switched", "jobs moved"}:
        await mind.remember("Meanwhile.")
    await moves.move("one", "south", quiet)
    await mind.remember("Afterwards.")
    assert (await mind.get(receipt.id)).content == "Before."
    expected = 2 if step in {"switched", "jobs moved"} else 3
    assert held(layout, "south", mind.access.scope.tenant_id) == expected


async def test_a_move_is_stopped_and_leaves_nothing(many, layout, moves):
    mind = await many.mind("ada", tenant="one")
    await mind.remember("It stays.")

    def break_off(told, done, total):
        if told == "tables compared":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        await moves.move("one", "south", break_off)
    await moves.stop("one")
    tenant_id = mind.access.scope.tenant_id
    assert (held(layout, "north", tenant_id), held(layout, "south", tenant_id)) == (1, 0)
    for _, owner in layout.shards.values():
        with psycopg.connect(owner) as connection:
            left = "select (select count(*) from pg_replication_slots) + (select count(*) from pg_subscription)"
            assert connection.execute(left).fetchone() == (0,)
    await mind.remember("It goes on.")


async def test_waiting_jobs_go_along_and_are_known_by_their_old_ids(many, layout, moves):
    mind = await many.mind("ada", tenant="one")
    many.parts.embedder.fail()
    await mind.remember("It waits for a vector.")
    many.parts.embedder.recover()
    caller = await many.operator.act_for("one")
    [job] = (await many.jobs.page(caller)).jobs
    await moves.move("one", "south", quiet)
    await many.parts.servers.read_anew(caller.tenant_id)
    moved = await many.jobs.read(caller, job.id)
    assert (moved.task, moved.state) == (job.task, job.state)
    assert moved.id.partition("-")[0] != job.id.partition("-")[0]
    await many.work(until_empty=True)
    assert held(layout, "south", caller.tenant_id, "pending_embeddings") == 0
    with pytest.raises(NotFoundError):
        await many.jobs.read(caller, job.id)


async def test_what_was_left_behind_is_removed_after_its_time(many, layout, moves):
    mind = await many.mind("ada", tenant="one")
    await mind.load([NewMemory("One."), NewMemory("Two.")])
    await moves.move("one", "south", quiet)
    tenant_id = mind.access.scope.tenant_id
    assert await moves.clean() == 0
    assert held(layout, "north", tenant_id) == 2
    assert await moves.clean(hours=0) == 1
    assert (held(layout, "north", tenant_id), held(layout, "south", tenant_id)) == (0, 2)
