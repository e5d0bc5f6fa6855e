"""Reads by replicas, with a real primary and a real standby: own writes are found, whatever the standby does."""

import asyncio
import time
from contextlib import asynccontextmanager
from uuid import uuid4

import httpx
import psycopg
import pytest

from conftest import PATIENT, QUICK, addresses_of, http_client, new_key
from folders import find_memory, open_folder
from proxy import Proxy
from recollect import sync
from recollect.client import Client
from recollect.client.transport import Transport
from recollect.core.service.positions import read_positions
from recollect.doors.http.app import create_app
from recollect.errors import NotFoundError, UnavailableError
from recollect.llm.fake import FakeEmbedder
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import NewFact
from recollect.models.memories import Role, Triple
from recollect.models.recall import Cue
from recollect.models.shards import Position, ServerAddresses
from recollect.settings import Settings
from recollect.store.database import replicas
from recollect.store.database.calls import CallPositions, serving
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster
from recollect.store.shards import catalog
from recollect.wiring import connected, prepare
from serving import serving as serving_app
from shards import lay_out
from sizes import Sizes
from standby import ask, catch_up, replicated

PAIRS = Sizes("pairs", ci=60, long=100_000)
SERVICE = "recollect_service"
# A replica that is late still finds the log that it lacks.
KEEPING = QUICK | {"wal_keep_size": "256MB"}
NOBODY = "host=127.0.0.1 port=1 dbname=none user=none"
WAIT_SECONDS = 30
"""Where nothing comes for so long, nothing will."""


@pytest.fixture(scope="module")
def pair():
    """A server with an empty schema to clone, and its replica."""
    with open_folder("replicas", find_memory()) as folder, Cluster(folder / "primary", settings=KEEPING) as primary:
        with asyncio.Runner() as runner:
            runner.run(ensure_database(primary.dsn(), "empty"))
            runner.run(prepare(addresses_of(primary, "empty"), FakeEmbedder()))
        with replicated(primary, folder / "standby", QUICK) as standby:
            yield primary, standby


@pytest.fixture
def named(pair):
    """The name of a database of its own, which both have."""
    primary, standby = pair
    name = f"test_{uuid4().hex[:8]}"
    with psycopg.connect(primary.dsn(), autocommit=True) as connection:
        connection.execute(f"create database {name} template empty")
    catch_up(primary, standby)
    yield name
    with psycopg.connect(primary.dsn(), autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A busy machine takes its time to replay."""
    monkeypatch.setattr(replicas, "WAIT_SECONDS", WAIT_SECONDS)
    monkeypatch.setattr(replicas, "REACH_SECONDS", WAIT_SECONDS)


@asynccontextmanager
async def opened(pair, name, replica=None):
    settings = Settings(embedder="fake", replica_urls=replica or pair[1].dsn(name, SERVICE), **PATIENT)
    async with connected(settings, addresses_of(pair[0], name), FakeEmbedder()) as running:
        yield running


@pytest.fixture
async def near(pair, named):
    """A Recollect that has reached its replica."""
    async with opened(pair, named) as running:
        await reach(running)
        yield running


async def reach(running):
    """Wait until the replica is used; the first who need one do not wait for its connections."""
    mind = await running.mind("nobody", max_staleness=3600)

    async def read_there():
        await mind.remember("Something is to be replayed.")
        return await asked(mind.overview(), max_staleness=3600) == "replica"

    await until(read_there)


async def until(condition):
    """Wait until something is so."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not await condition():  # noqa: ASYNC110 - a replica tells nobody
            await asyncio.sleep(0.02)


async def asked(reading, **positions):
    """Say who has read for a call from outside."""
    call = CallPositions(**positions)
    with serving(call):
        await reading
    return call.served_by


class TurnAbout(Transport):
    """Sends what is written to one server, and all else to another."""

    def __init__(self, url, key, timeout_seconds):
        self.one, self.other = url.split()
        super().__init__(self.one, key, timeout_seconds)

    async def _request(self, method, path, **content):
        server = self.one if path == "/v1/memories" and method == "POST" else self.other
        return await super()._request(method, server + path, **content)


@pytest.mark.promise("Who writes and then reads through replicas finds what it wrote", PAIRS)
async def test_the_sdk_finds_what_it_wrote_through_another_process(pair, named, figure):
    async with opened(pair, named) as one, opened(pair, named) as other:
        await reach(other)
        _, secret = await new_key(one)
        async with (
            serving_app(create_app(recollect=one)) as first,
            serving_app(create_app(recollect=other)) as second,
            Client(f"{first} {second}", secret, transport=TurnAbout, timeout_seconds=60) as client,
        ):
            before, found = await count_reads(second), await write_and_recall(client)
            after = await count_reads(second)
    served = {name: after.get(name, 0) - before.get(name, 0) for name in ("replica", "primary")}
    figure(f"{found} found, {served['replica']} by the replica")
    assert found == PAIRS.now
    assert served == {"replica": PAIRS.now, "primary": 0}


async def test_the_blocking_client_keeps_positions_hands_them_on_and_allows_staleness(near):
    _, secret = await new_key(near)

    def work(url):
        with sync.connect(url, secret, timeout_seconds=60) as one, sync.connect(url, secret) as other:
            [receipt] = one.mind("ada").remember("Li is allergic to peanuts.")
            assert one.position == receipt.position
            assert other.position == ""
            other.see(one.position)
            found = [each.mind("ada").recall("peanuts").hits[0].memory.id for each in (one, other)]
        with sync.connect(url, secret, timeout_seconds=60) as new:
            stale = new.mind("ada", max_staleness=3600).recall("peanuts")
            fresh = new.mind("ada").recall("peanuts")
        return receipt.id, [*found, stale.hits[0].memory.id, fresh.hits[0].memory.id]

    async with serving_app(create_app(recollect=near)) as url:
        before = await count_reads(url)
        stored, found = await asyncio.to_thread(work, url)
        after = await count_reads(url)
    assert found == [stored] * 4
    assert {name: after[name] - before.get(name, 0) for name in after} == {"replica": 3, "primary": 1}


async def write_and_recall(client):
    """Count how often what was written is found by the next recall, in scopes that stay small."""
    found = 0
    for number in range(PAIRS.now):
        mind = await client.mind("ada", f"user-{number // 50}")
        words = f"word{number} stands alone in note{number}"
        [receipt] = await mind.remember(words)
        found += receipt.id in {hit.memory.id for hit in (await mind.recall(Cue(words, limit=3))).hits}
    return found


async def count_reads(url):
    """Read from the metrics how many recalls each has served."""
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        page = (await http.get(f"{url}/metrics")).text
    lines = [line for line in page.splitlines() if line.startswith('recollect_reads_total{route="/v1/recall"')]
    return {line.split('server="')[1].split('"')[0]: float(line.split()[-1]) for line in lines}


async def test_a_write_says_how_far_the_log_came(near, pair, named):
    _, secret = await new_key(near)
    async with http_client(near, secret) as http:
        scope = {"agent": "ada", "user": "li"}
        stored = await http.post("/v1/memories", json=scope | {"memories": [{"content": "Li eats no peanuts."}]})
        position = stored.headers["Recollect-Position"]
        assert [each["position"] for each in stored.json()["memories"]] == [position]
        [known] = read_positions(position).values()
        assert (known.shard, known.timeline) == (0, 1)
        turn = {"conversation": "c", "messages": [{"role": "user", "content": "Good morning."}]}
        appended = await http.post("/v1/messages", json=scope | turn)
        [message] = appended.json()["messages"]
        assert read_positions(message["position"])[0].lsn > known.lsn
        pinned = await http.post("/v1/pin", json=scope | {"ids": [stored.json()["memories"][0]["id"]]})
        assert read_positions(pinned.headers["Recollect-Position"])[0].lsn > known.lsn
        read = await http.get("/v1/memories", params=scope, headers={"Recollect-Position": position})
        assert len(read.json()["memories"]) == 2
        assert "Recollect-Position" not in read.headers
        for header in ({"Recollect-Position": "yesterday"}, {"Recollect-Max-Staleness": "-1"}):
            refused = await http.get("/v1/memories", params=scope, headers=header)
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")


async def test_writes_that_share_a_transaction_are_all_told(near):
    _, secret = await new_key(near)
    async with http_client(near, secret) as http:
        bodies = [{"agent": "ada", "memories": [{"content": f"Note {number}."}]} for number in range(20)]
        answers = await asyncio.gather(*(http.post("/v1/memories", json=body) for body in bodies))
    assert [each.status_code for each in answers] == [201] * 20
    assert all(each.headers["Recollect-Position"] and each.json()["memories"][0]["position"] for each in answers)


async def test_without_replicas_there_is_no_position(recollect):
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        stored = await http.post(
            "/v1/memories", json={"agent": "ada", "memories": [{"content": "Li eats no peanuts."}]}
        )
        assert "Recollect-Position" not in stored.headers
        assert stored.json()["memories"][0]["position"] == ""
    call = CallPositions({0: Position(0, 1, 1)}, 3600)
    with serving(call):
        await (await recollect.mind("ada")).recall("peanuts")
    assert call.served_by == ""


async def test_every_plain_read_can_be_a_replicas(near):
    mind = await near.mind("ada", "li")
    [stored] = await mind.remember("Li is allergic to peanuts.")
    talk = mind.conversation("dinner")
    await talk.append([NewMessage(Role.USER, "Shall we cook?"), NewMessage(Role.ASSISTANT, "Gladly.")])
    [fact] = await mind.knowledge.add([NewFact("Li", "likes", "rice")])
    entity = fact.subject
    await mind.topics.link("food", [stored.id])
    seen = {0: near.parts.database.log.newest}
    reads = {
        "recall": lambda: mind.recall("peanuts"),
        "every channel": lambda: mind.recall(
            Cue("peanuts", channels=("vector", "text", "stream", "graph", "keyword", "topic", "date", "recent"))
        ),
        "block": lambda: mind.blocks.show("peanuts", conversation="dinner"),
        "context": lambda: talk.context("May peanuts go in?"),
        "history": talk.history,
        "messages": talk.messages,
        "leaves": talk.leaves,
        "segments": talk.segments,
        "conversation": talk.read,
        "conversations": mind.conversations,
        "get": lambda: mind.get(stored.id),
        "get_many": lambda: mind.get_many([stored.id]),
        "versions": lambda: mind.versions(stored.id),
        "browse": lambda: mind.browse(words="peanuts"),
        "faded": mind.fading.faded,
        "explain": lambda: mind.fading.explain([stored.id]),
        "associate": lambda: mind.associate([Triple("Li", "likes", "rice")]),
        "last chat": lambda: mind.last_chat("Bo"),
        "overview": mind.overview,
        "activity": mind.activity,
        "profile": mind.profile,
        "facts": mind.knowledge.facts,
        "entities": mind.knowledge.entities,
        "entity": lambda: mind.knowledge.entity(entity),
        "neighbours": lambda: mind.knowledge.neighbours(entity),
        "timeline": lambda: mind.knowledge.timeline(entity),
        "topics": mind.topics.tree,
        "recalls": mind.recalls.list,
    }
    served = {name: await asked(read(), seen=seen) for name, read in reads.items()}
    assert served == dict.fromkeys(reads, "replica")
    writes = {
        "kept": lambda: mind.recall(Cue("peanuts", keep=True)),
        "in turn": lambda: mind.recall_each(["peanuts", "rice"]),
        "evidence": lambda: mind.evidence(stored.id),
    }
    assert {name: await asked(read(), seen=seen) for name, read in writes.items()} == dict.fromkeys(writes, "primary")


async def test_a_call_that_has_seen_nothing_goes_to_the_primary_unless_it_allows_staleness(near, pair):
    mind = await near.mind("ada", "li")
    await mind.remember("Before.")
    other = {0: Position(0, 9, 1)}
    assert await asked(mind.overview()) == "primary"
    assert await asked(mind.overview(), seen=other) == "primary"
    assert await asked(mind.overview(), max_staleness=3600) == "replica"
    assert await asked(mind.overview(), seen=other, max_staleness=3600) == "replica"
    with paused(pair):
        await mind.remember("After.")
        assert await asked(mind.overview(), max_staleness=0.0) == "primary"
        call = CallPositions(max_staleness=3600)
        with serving(call):
            stale = await mind.browse()
        assert ([each.content for each in stale.memories], call.served_by) == (["Before."], "replica")


async def test_nobody_is_taken_for_this_process_who_comes_with_a_key(near):
    _, secret = await new_key(near)
    await (await near.mind("ada", "li")).remember("The process has seen this.")
    assert (await near.mind("ada", "li")).access.choose_replica() is not None
    assert (await near.authorize(secret, "http", "ada", "li")).access.choose_replica() is None


def paused(pair):
    """Let the replica replay nothing."""

    class Paused:
        def __enter__(self):
            ask(pair[1], "select pg_wal_replay_pause() is null")

        def __exit__(self, *_):
            ask(pair[1], "select pg_wal_replay_resume() is null")

    return Paused()


async def test_a_replica_that_is_behind_costs_nothing_but_speed(near, pair, monkeypatch):
    monkeypatch.setattr(replicas, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(replicas, "BEHIND_SECONDS", 0.0)
    mind = await near.mind("ada", "li")
    with paused(pair):
        for number in range(12):
            [stored] = await mind.remember(f"Note {number} of apples.")
            call = CallPositions({0: near.parts.database.log.newest})
            with serving(call):
                hits = (await mind.recall(f"Note {number} of apples.")).hits
            assert (stored.id in {hit.memory.id for hit in hits}, call.served_by) == (True, "primary")
    catch_up(*pair)
    assert await asked(mind.recall("apples"), seen={0: near.parts.database.log.newest}) == "replica"


async def test_one_that_is_behind_again_and_again_is_left_alone(near, pair, monkeypatch):
    monkeypatch.setattr(replicas, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(replicas, "BEHIND_SECONDS", 3600)
    mind = await near.mind("ada", "li")
    with paused(pair):
        await mind.remember("Note of apples.")
        seen = {0: near.parts.database.log.newest}
        for _ in range(replicas.MOST_BEHIND):
            assert near.parts.servers.choose_replica(near.parts.database, 0.0) is not None
            assert await asked(mind.overview(), seen=seen) == "primary"
        assert near.parts.servers.choose_replica(near.parts.database, 0.0) is None


async def test_what_somebody_else_has_just_written_is_not_missing(near, pair):
    mind = await near.mind("ada", "li")
    await mind.remember("Before.")
    seen = {0: near.parts.database.log.newest}
    catch_up(*pair)
    with paused(pair):
        [stored] = await mind.remember("After.")
        assert await asked(mind.get(stored.id), seen=seen) == "primary"
        with serving(CallPositions(seen)), pytest.raises(NotFoundError):
            await mind.get(uuid4())


async def test_an_access_is_noted_behind_the_answer(near, pair, named):
    mind = await near.mind("ada", "li")
    [stored] = await mind.remember("Li is allergic to peanuts.")
    call = CallPositions({0: near.parts.database.log.newest})
    with serving(call):
        made = await mind.recall("peanuts")
    assert (made.accessed, call.served_by, call.written) == ((stored.id,), "replica", {})

    async def noted():
        return ask(pair[0], "select count(*) from access_log", named) == 1

    await until(noted)
    assert ask(pair[0], "select ids::text from access_log", named) == f"{{{stored.id}}}"


async def test_nobody_waits_for_a_replica_that_is_not_there(pair, named):
    async with opened(pair, named, NOBODY) as running:
        mind = await running.mind("ada", "li")
        [stored] = await mind.remember("Li is allergic to peanuts.")
        seen = {0: running.parts.database.log.newest}
        for _ in range(5):
            assert await asked(mind.get(stored.id), seen=seen) == "primary"
            await asyncio.sleep(0.02)


@pytest.mark.promise("A replica that dies costs nothing but speed")
async def test_a_replica_may_die_and_come_back(near, pair, monkeypatch):
    monkeypatch.setattr(replicas, "LONGEST_REST_SECONDS", 0.05)
    mind = await near.mind("ada", "li")
    [first] = await mind.remember("Li is allergic to peanuts.")
    seen = {0: near.parts.database.log.newest}
    assert await asked(mind.get(first.id), seen=seen) == "replica"
    pair[1].kill()
    try:
        for number in range(20):
            [stored] = await mind.remember(f"Note {number}.")
            seen = {0: near.parts.database.log.newest}
            assert await asked(mind.get(stored.id), seen=seen) == "primary"
    finally:
        pair[1].start()
    catch_up(*pair)

    async def read_there():
        return await asked(mind.get(stored.id), seen=seen) == "replica"

    await until(read_there)


async def test_one_that_became_a_primary_is_none_any_more(pair, named):
    with open_folder("promoted", find_memory()) as folder, replicated(pair[0], folder / "standby", QUICK) as other:
        async with opened(pair, named, other.dsn(named, SERVICE)) as running:
            await reach(running)
            mind = await running.mind("ada", "li")
            assert ask(other, "select pg_promote()")
            [stored] = await mind.remember("Only the primary has this.")
            seen = {0: running.parts.database.log.newest}
            assert await asked(mind.get(stored.id), seen=seen) == "primary"
            assert await asked(mind.overview(), max_staleness=3600) == "primary"
        await check_after_promotion(other, named, folder / "next")


async def check_after_promotion(primary, named, folder):
    """See that the new primary and a replica of it go on under another timeline."""
    with replicated(primary, folder, QUICK) as standby:
        async with opened((primary, standby), named) as running:
            await reach(running)
            mind = await running.mind("ada", "li")
            [stored] = await mind.remember("Only the new primary has this.")
            [position] = read_positions(stored.position).values()
            assert position.timeline == 2
            assert await asked(mind.get(stored.id), seen={0: position}) == "replica"
            assert await asked(mind.get(stored.id), seen={0: Position(0, 1, 1)}) == "primary"


async def test_a_replica_that_has_fallen_silent_is_given_up_once(pair, named):
    async with Proxy(pair[1].dsn(named, SERVICE)) as proxy:
        settings = Settings(embedder="fake", replica_urls=proxy.dsn, deadline_seconds=8)
        async with connected(settings, addresses_of(pair[0], named), FakeEmbedder()) as running:
            await reach(running)
            mind = await running.mind("ada", "li")
            [stored] = await mind.remember("Li is allergic to peanuts.")
            seen = {0: running.parts.database.log.newest}
            assert await asked(mind.get(stored.id), seen=seen) == "replica"
            proxy.darken()
            assert await asked(mind.get(stored.id), seen=seen) == "primary"
            proxy.lighten()

            async def read_there():
                return await asked(mind.get(stored.id), seen=seen) == "replica"

            await until(read_there)


def test_after_a_failure_one_call_tries_and_the_others_wait_to_hear():
    replica = replicas.Replica(NOBODY)
    replica.begin(now := time.monotonic())
    assert replica.rests_until <= now
    replica.note(UnavailableError("gone"))
    assert replica.rests_until > now
    replica.begin(later := replica.rests_until)
    assert replica.rests_until > later
    replica.note(None)
    replica.begin(later)
    assert replica.rests_until <= later


async def test_shards_have_replicas_of_their_own(cluster, clones, pair, named, tmp_path):
    layout = await lay_out(cluster, clones, 1)
    primary, standby = pair
    addresses = ServerAddresses(
        primary.dsn(named, SERVICE), primary.dsn(named), replicas=(standby.dsn(named, SERVICE),)
    )
    await catalog.add_shard(layout.owner, "south", addresses)
    with psycopg.connect(layout.owner, autocommit=True) as connection:
        connection.execute("update shards set state = 'draining' where name = 'north'")
    file = tmp_path / "map.json"
    settings = Settings(embedder="fake", map_file=file, **PATIENT)
    async with connected(settings, layout.addresses, FakeEmbedder()) as running:
        mind = await running.mind("ada", "li", tenant="one")
        [stored] = await mind.remember("Li is allergic to peanuts.")
        [position] = read_positions(stored.position).values()
        assert position.shard == 2

        async def read_there():
            return await asked(mind.get(stored.id), seen={2: position}) == "replica"

        await until(read_there)
        assert await asked(mind.get(stored.id), seen={1: position}) == "primary"
    async with layout.serving(file) as servers:
        kept = servers._map.shards
    servers._map.shards = {}
    assert servers._map._load()
    assert servers._map.shards == kept
    assert kept[2].replicas == addresses.replicas
