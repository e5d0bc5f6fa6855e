"""Whole calls over several servers: each row lies where the map says, and a caller does not notice that it is moved."""

import asyncio

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from conftest import PATIENT, execute, http_client, new_key
from recollect.core.service.numbers import bucket_of
from recollect.errors import ScopeMovedError, SetupError
from recollect.jobs import running
from recollect.models.agents import Profile
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.models.recall import Cue
from recollect.wiring import connected
from support.programs.waiting import until
from support.service.made_settings import make_settings

pytest_plugins = ("support.shards.two_shards",)

TENANTS = ("one", "two", "three", "four")


def count(layout, table="memories"):
    """Count rows by shard and tenant."""
    return {place: number for name in layout.shards for place, number in count_in(layout, name, table).items()}


def count_in(layout, name, table):
    """Count rows of one shard by tenant."""
    with psycopg.connect(layout.shards[name][1]) as connection:
        rows = connection.execute(f"select scope_id >> 40, count(*) from {table} group by 1").fetchall()
    return {(name, tenant): number for tenant, number in rows}


async def test_tenants_are_spread_and_each_is_served_by_its_shard(many, layout):
    secrets = {tenant: (await new_key(many, tenant))[1] for tenant in TENANTS}
    for tenant, secret in secrets.items():
        async with http_client(many, secret) as http:
            body = {"agent": "ada", "content": f"The word of {tenant} is kept."}
            assert (await http.post("/v1/memories", json=body)).status_code == 201
    numbers = [(await many.operator.act_for(tenant)).tenant_id for tenant in TENANTS]
    assert count(layout) == {(("north", "south")[place % 2], number): 1 for place, number in enumerate(numbers)}
    for tenant, secret in secrets.items():
        async with http_client(many, secret) as http:
            answer = (await http.post("/v1/recall", json={"agent": "ada", "text": "Which word is kept?"})).json()
        assert [hit["memory"]["content"] for hit in answer["hits"]] == [f"The word of {tenant} is kept."]


async def test_a_tenant_is_split_by_buckets_and_its_keys_and_profiles_stay_at_home(many, layout):
    caller = await many.operator.act_for("one")
    layout.split(caller.tenant_id, "north", "south", 2048)
    await many.parts.servers.read_anew(caller.tenant_id)
    _, secret = await new_key(many, "one")
    users = [f"user-{number}" for number in range(12)]
    async with http_client(many, secret) as http:
        for user in users:
            body = {"agent": "ada", "user": user, "content": f"I am {user}."}
            assert (await http.post("/v1/memories", json=body)).status_code == 201
        for user in users:
            hits = (await http.post("/v1/recall", json={"agent": "ada", "user": user, "text": "Who?"})).json()["hits"]
            assert [hit["memory"]["content"] for hit in hits] == [f"I am {user}."]
    high = sum(bucket_of("ada", user) >= 2048 for user in users)
    assert 0 < high < len(users)
    assert count(layout) == {("north", caller.tenant_id): len(users) - high, ("south", caller.tenant_id): high}


@pytest.mark.parametrize("agent", ["ada", "bob"])
async def test_a_call_follows_its_tenant_and_is_answered_once(many, layout, agent):
    mind = await many.mind(agent, tenant="one")
    layout.move(mind.access.scope.tenant_id, "north", "south")
    [receipt] = await mind.remember("It was moved meanwhile.")
    assert (await mind.get(receipt.id)).content == "It was moved meanwhile."
    assert list(count(layout)) == [("south", mind.access.scope.tenant_id)]


async def test_a_key_follows_its_tenant(many, layout):
    caller = await many.operator.act_for("one")
    layout.move(caller.tenant_id, "north", "south")
    _, secret = await new_key(many, "one")
    async with connected_again(many, layout) as other:
        assert (await other.authenticate(secret, "http")).tenant_id == caller.tenant_id


def connected_again(many, layout):
    return connected(many.settings, layout.addresses, None)


async def test_what_has_been_written_in_part_is_not_written_again(many, layout, monkeypatch):
    mind = await many.mind("ada", tenant="one")
    [receipt] = await mind.remember("First.")
    moved = asyncio.Event()
    from recollect.mind import memories

    async def write_twice(parts, caller, scope, asked, changes):
        await update(parts, caller, scope, asked, changes)
        moved.set()
        raise ScopeMovedError("gone")

    update = memories.update_memory
    monkeypatch.setattr(memories, "update_memory", write_twice)
    with pytest.raises(ScopeMovedError):
        await mind.update(receipt.id, pinned=True)
    assert moved.is_set()


async def test_jobs_run_beside_their_rows(many, layout, embedder):
    minds = [await many.mind("ada", tenant=tenant) for tenant in TENANTS[:2]]
    embedder.fail()
    for mind in minds:
        await mind.remember("It waits for a vector.")
    embedder.recover()
    assert len(count(layout, "pending_embeddings")) == 2
    await many.work(until_empty=True)
    assert count(layout, "pending_embeddings") == {}


async def test_a_worker_works_for_a_shard_that_answers_later(many, layout, embedder, cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "LOOK_SECONDS", 0.05)
    minds = [await many.mind("ada", tenant=tenant) for tenant in TENANTS[:2]]
    embedder.fail()
    for mind in minds:
        await mind.remember("It waits for a vector.")
    embedder.recover()
    south = conninfo_to_dict(layout.shards["south"][0])["dbname"]
    execute(cluster, f"alter database {south} allow_connections false")
    settings = make_settings(embedder="fake", shards__map_file=tmp_path / "other.json", **PATIENT)
    async with connected(settings, layout.addresses, embedder) as other:
        work = asyncio.create_task(other.work())
        await until(lambda: not count_in(layout, "north", "pending_embeddings"))
        execute(cluster, f"alter database {south} allow_connections true")
        await until(lambda: not count(layout, "pending_embeddings"))
        work.cancel()
        await asyncio.wait([work])


async def test_a_job_does_not_write_where_its_bucket_is_closed(many, layout, embedder):
    mind = await many.mind("ada", tenant="one")
    embedder.fail()
    await mind.remember("It waits for a vector.")
    embedder.recover()
    waiting = count(layout, "pending_embeddings")
    assert list(waiting) == [("north", mind.access.scope.tenant_id)]
    layout.move(mind.access.scope.tenant_id, "north", "south")
    work = asyncio.create_task(many.work())
    await asyncio.sleep(2)
    work.cancel()
    await asyncio.wait([work])
    assert count(layout, "pending_embeddings") == waiting


async def test_what_is_asked_of_no_scope_is_refused_by_name(many):
    with pytest.raises(SetupError, match="needs one server"):
        async with many.parts.database.reading(1):
            pass


async def test_conversations_and_profiles_work_over_shards(many, layout):
    caller = await many.operator.act_for("one")
    layout.split(caller.tenant_id, "north", "south", 2048)
    await many.parts.servers.read_anew(caller.tenant_id)
    users = [f"user-{number}" for number in range(8)]
    await (await many.mind("ada", tenant="one")).set_profile(Profile(names=("Ada",)))
    for user in users:
        mind = await many.mind("ada", user, tenant="one")
        await mind.conversation("c").append([NewMessage(Role.USER, "Shall we cook?")])
        made = await mind.conversation("c").context(Cue("cook"), 500)
        assert "Shall we cook?" in str(made)
        assert (await mind.profile()).names == ("Ada",)


async def test_a_prompt_reads_and_notes_scopes_beside_the_own_one_where_they_lie(many, layout):
    caller = await many.operator.act_for("one")
    layout.split(caller.tenant_id, "north", "south", 2048)
    await many.parts.servers.read_anew(caller.tenant_id)
    users = [f"user-{number}" for number in range(8)]
    low, high = (next(user for user in users if (bucket_of("ada", user) >= 2048) is above) for above in (False, True))
    own, other = [await many.mind("ada", user, tenant="one") for user in (low, high)]
    await own.remember("I cook on Mondays.")
    [told] = await other.remember("We cook noodles.")
    made = await own.conversation("c").context(Cue("cook", also=(f"ada/{high}",)), 500)
    assert "noodles" in str(made)
    assert count(layout, "access_log") == {("north", caller.tenant_id): 1, ("south", caller.tenant_id): 1}
    assert (await other.get(told.id)).last_accessed_at is not None
