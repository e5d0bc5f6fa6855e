"""Mirrors that are slow, dead, restarted with an older state, asked twice or answer in part: the record goes on."""

from __future__ import annotations

import asyncio
import random
import shutil
from contextlib import suppress

import pytest

from recollect.core.mirrors.rows import MirroredTable
from recollect.errors import MirrorError
from recollect.jobs.mirror import check
from recollect.models.knowledge import NewFact
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue, Status
from support.engines.engine_proxy import EngineProxy
from support.engines.mirrored import feed_of, follow, held_ids, mirrored, scope_of, search_settings
from support.measuring.sizes import CHOSEN, Sizes
from support.service.purge_receipts import receipts_of

pytestmark = pytest.mark.engines
SEARCH, GRAPH = "opensearch", "neo4j"
MEMORIES = Sizes("memories", ci=300, long=100_000)
RESTARTS = Sizes("restarts", ci=1, long=10)


def silently(_):
    """Report nothing."""


@pytest.fixture
async def proxy(search_server):
    async with EngineProxy(search_server.port) as standing:
        yield standing


@pytest.fixture
async def recollect(addresses, embedder, proxy):
    settings = search_settings(f"http://127.0.0.1:{proxy.port}", mirrors__timeout_seconds=5)
    async with mirrored(addresses, embedder, **settings, recall__channel_timeout_seconds=1) as running:
        yield running
        proxy.refusing, proxy.falsify, proxy.delay_seconds, proxy.cut_answers, proxy.twice = (
            False,
            None,
            0,
            False,
            False,
        )


@pytest.fixture
async def mind(recollect):
    opened = await recollect.mind("ada", "li")
    await opened.remember("Li walks along the harbour.")
    await recollect.operator.mirrors.build(SEARCH, silently)
    return opened


async def ask(mind, channels=("text", SEARCH), text="harbour"):
    return await mind.recall(Cue(text, channels=channels))


async def differing(recollect, name=SEARCH):
    return (await recollect.operator.mirrors.verify(name, silently)).differing


@pytest.mark.promise("A recall goes on without a mirror that is slow, dead or answers in part, and says so")
async def test_a_recall_goes_on_without_the_mirror(recollect, mind, proxy):
    assert (await ask(mind)).methods == {"text": "exact", SEARCH: "mirror"}
    proxy.delay_seconds = 3
    slow = await ask(mind)
    assert slow.methods[SEARCH].startswith("skipped: it did not answer within") and len(slow.hits) == 1
    proxy.delay_seconds, proxy.refusing = 0, True
    proxy.cut()
    dead = await ask(mind)
    assert "skipped: The mirror opensearch is not available" in dead.methods[SEARCH] and len(dead.hits) == 1
    assert (await ask(mind, (SEARCH,))).status is Status.ERROR
    proxy.refusing = False
    for lie in (lose_a_shard, run_out_of_time, leave_out_a_shard):
        proxy.falsify = lie
        assert "returned a partial result" in (await ask(mind)).methods[SEARCH]
    proxy.falsify, proxy.cut_answers = None, True
    assert "skipped: The mirror opensearch is not available" in (await ask(mind)).methods[SEARCH]
    proxy.cut_answers = False
    assert (await ask(mind)).methods[SEARCH] == "mirror"


def each_answer(answer):
    return answer.get("responses") or [answer]


def lose_a_shard(answer):
    for each in each_answer(answer):
        each["_shards"] = {"total": 2, "successful": 1, "failed": 1}
        each["hits"] = {"hits": []}
    return answer


def leave_out_a_shard(answer):
    for each in each_answer(answer):
        each["_shards"] = {"total": 2, "successful": 1, "failed": 0}
    return answer


def run_out_of_time(answer):
    for each in each_answer(answer):
        each["timed_out"] = True
    return answer


@pytest.mark.promise("A write is not delayed by a mirror that is dead, and comes to it when it is back")
async def test_writes_do_not_wait_for_a_dead_mirror(recollect, mind, proxy):
    proxy.refusing = True
    proxy.cut()
    [rice] = await mind.remember("Bo brings the rice.")
    await recollect.work(until_empty=True)
    [status] = await recollect.operator.mirrors.status()
    assert (status.answers, status.behind) == (False, 1)
    waiting = [each for each in await recollect.jobs.unfinished() if each.task == "mirror"]
    # Another one may wait beside it: what runs by the clock looks after mirrors twice a minute.
    assert {each.state for each in waiting} == {"waiting"} and any("not available" in each.reason for each in waiting)
    proxy.refusing = False
    await follow(recollect)
    assert rice.id in await held_ids(recollect, SEARCH, mind) and await differing(recollect) == 0


async def test_a_partial_acknowledgement_moves_no_position(recollect, mind, proxy, owner):
    before = owner.execute("select position from mirror_positions").fetchone()
    await mind.remember("Bo brings the rice.")

    def lose_items(answer):
        return {**answer, "items": answer["items"][1:]} if "items" in answer else answer

    def refuse_items(answer):
        for item in answer.get("items", ()):
            next(iter(item.values()))["status"] = 429
        return answer

    for lie in (lose_items, refuse_items):
        proxy.falsify = lie
        with pytest.raises(MirrorError, match="did not accept all changes"):
            await follow(recollect)
        assert owner.execute("select position from mirror_positions").fetchone() == before
    proxy.falsify = None
    await follow(recollect)
    assert await differing(recollect) == 0


async def test_requests_that_are_delivered_twice_do_no_harm(recollect, mind, proxy):
    proxy.twice = True
    made = [each.id for each in await mind.remember([NewMemory(f"note {number}") for number in range(20)])]
    await follow(recollect)
    await mind.update(made[0], content="another note")
    await mind.forget(made[10:])
    await follow(recollect)
    assert await differing(recollect) == 0 and not set(made[10:]) & await held_ids(recollect, SEARCH, mind)


async def test_no_count_of_shards_that_are_not_open_leads_to_mending(recollect, mind, proxy):
    """A node answers before its shards are open, as if they were empty."""
    proxy.falsify = lose_a_shard
    for call in (
        recollect.operator.mirrors.verify(SEARCH, silently, mend=True),
        recollect.operator.mirrors.rebuild(SEARCH, silently),
    ):
        with pytest.raises(MirrorError):
            await call
    proxy.falsify = None
    assert await differing(recollect) == 0


async def until_asked(mind):
    """Ask until the engine has read its queries once, which takes a while on a busy machine."""
    for _ in range(60):
        if (await ask(mind, ("text", GRAPH), "Li")).methods[GRAPH] == "mirror":
            return
    raise AssertionError("neo4j does not answer in time")


async def test_a_slow_graph_is_given_up_and_a_dead_one_waited_for(addresses, embedder, graph_server):
    async with EngineProxy(graph_server.port, http=False) as proxy:
        settings = {
            "neo4j__url": f"bolt://127.0.0.1:{proxy.port}",
            "recall__channel_timeout_seconds": 1,
            "mirrors__timeout_seconds": 5,
        }
        async with mirrored(addresses, embedder, **settings) as recollect:
            mind = await recollect.mind("ada", "li")
            await mind.knowledge.add(NewFact("Li", "lives in", "Wells"))
            await recollect.operator.mirrors.build(GRAPH, silently)
            await until_asked(mind)
            proxy.delay_seconds = 3
            assert "did not answer within" in (await ask(mind, ("text", GRAPH), "Li")).methods[GRAPH]
            proxy.delay_seconds, proxy.refusing = 0, True
            proxy.cut()
            # It keeps trying for a while, longer than a recall waits.
            assert (await ask(mind, ("text", GRAPH), "Li")).methods[GRAPH].startswith("skipped: ")
            await mind.knowledge.add(NewFact("Bo", "owns", "a boat"))
            with pytest.raises(MirrorError, match="neo4j is not available"):
                await follow(recollect)
            proxy.refusing = False
            await follow(recollect)
            assert await differing(recollect, GRAPH) == 0


def put_back(server, kept):
    """Let a server go on from an older state of its data."""
    server.kill()
    shutil.rmtree(server.folder / "data")
    shutil.copytree(kept, server.folder / "data")
    server.start()


async def wait_open(recollect, name):
    """Wait until an engine answers again."""
    for _ in range(300):
        with suppress(MirrorError):
            feed = await feed_of(recollect, name)
            await feed.mirror.create(feed.generation)
            return
        await asyncio.sleep(0.2)
    raise AssertionError(f"{name} does not answer")


@pytest.mark.promise("A mirror that was restarted with an older state is noticed, not asked, and mended")
@pytest.mark.parametrize("name", [SEARCH, GRAPH] if CHOSEN == "long" else [SEARCH])
async def test_an_older_state_is_noticed_and_mended(request, addresses, embedder, tmp_path, name):
    server = request.getfixturevalue("search_server" if name == SEARCH else "graph_server")
    settings = search_settings(server.url) if name == SEARCH else {"neo4j__url": server.url}
    async with mirrored(addresses, embedder, **settings) as recollect:
        mind, quiet = await recollect.mind("ada", "li"), await recollect.mind("ada", "bo")
        for each in (mind, quiet):
            await each.knowledge.add([NewFact("Li", "lives in", "Wells"), NewFact("Li", "owns", "a boat")])
        await recollect.operator.mirrors.build(name, silently)
        server.kill()
        shutil.copytree(server.folder / "data", tmp_path / "older")
        server.start()
        await wait_open(recollect, name)
        gone = next(each.id for each in (await mind.list()).memories if "boat" in each.content)
        await mind.forget([gone])
        await quiet.knowledge.add(NewFact("Li", "plays", "chess"))
        await follow(recollect)
        assert await differing(recollect, name) == 0
        put_back(server, tmp_path / "older")
        await wait_open(recollect, name)
        table = MirroredTable.FACTS if name == GRAPH else MirroredTable.MEMORIES
        assert gone in await held_ids(recollect, name, mind, table)
        found = await ask(mind, ("text", name), "Li boat")
        assert "lost acknowledged changes" in found.methods[name] and gone not in [hit.memory.id for hit in found.hits]
        # Another scope is written to first: the trace of the loss stays.
        await quiet.knowledge.add(NewFact("Li", "reads", "novels"))
        await follow(recollect)
        await check(recollect.parts.database, recollect.parts.mirrors)
        assert gone not in await held_ids(recollect, name, mind, table)
        assert await differing(recollect, name) == 0
        assert (await ask(mind, ("text", name), "Li boat")).methods[name] == "mirror"


class Life:
    """What is written while mirrors are killed: memories, corrections, forgets and purges."""

    def __init__(self, minds, seed):
        self.minds, self.random = minds, random.Random(seed)
        self.alive = {number: [] for number in range(len(minds))}
        self.purged, self.talks = [], 0

    async def write(self, count):
        for _ in range(max(1, count // 100)):
            number = self.random.randrange(len(self.minds))
            mind, alive = self.minds[number], self.alive[number]
            texts = [
                f"note {self.random.randrange(10**9)} of the {word}"
                for word in self.random.choices(["harbour", "tea", "rice", "海港", "茶"], k=100)
            ]
            alive += [each.id for each in await mind.remember([NewMemory(text) for text in texts])]
            await mind.knowledge.add(NewFact(f"Person {self.talks}", "knows", f"Person {self.talks + 1}"))
            for _ in range(5):
                place = self.random.randrange(len(alive))
                alive[place] = (await mind.update(alive[place], content=f"corrected {self.random.random()}")).id
            await mind.forget([alive.pop(self.random.randrange(len(alive))) for _ in range(10)])
            conversation = mind.conversation(f"talk-{self.talks}")
            self.talks += 1
            said = [each.id for each in await conversation.append([f"said {number}" for number in range(5)])]
            await conversation.purge()
            self.purged.append((conversation, number, said))


@pytest.mark.promise(
    "A mirror that is killed again and again is equal to the record afterwards, without what receipts say is gone",
    MEMORIES,
    RESTARTS,
)
async def test_mirrors_that_are_killed_are_equal_to_the_record(
    addresses, embedder, search_server, graph_server, rounds, figure
):
    settings = search_settings(search_server.url, neo4j__url=graph_server.url, mirrors__timeout_seconds=30)
    async with mirrored(addresses, embedder, **settings) as recollect:
        minds = [await recollect.mind("ada", f"user {number}") for number in range(4)]
        life = Life(minds, 7)
        for mind in minds:
            await mind.remember("the first")
            life.alive[minds.index(mind)] = [
                each.id for each in await mind.remember([NewMemory("a"), NewMemory("b")] * 10)
            ]
        for name in (SEARCH, GRAPH):
            await recollect.operator.mirrors.build(name, silently)
        worker = asyncio.create_task(recollect.work())
        checked = 0
        try:
            for _ in rounds(RESTARTS):
                for server in (search_server, graph_server):
                    await life.write(MEMORIES.now // RESTARTS.now // 4)
                    server.kill()
                    await life.write(MEMORIES.now // RESTARTS.now // 4)
                    server.start()
                    checked += await look_at_receipts(recollect, life)
            for name in (SEARCH, GRAPH):
                await wait_open(recollect, name)
            await asyncio.wait_for(caught_up(recollect), 300)
            checked += await look_at_receipts(recollect, life)
        finally:
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker
        assert [each for each in life.purged if (await receipts_of(each[0]))[0].finished_at is None] == []
        for name in (SEARCH, GRAPH):
            assert await differing(recollect, name) == 0
        held = sum(map(len, life.alive.values()))
        figure(f"{held:,} memories held, {checked:,} receipts looked at, 0 rows of them found, 0 rows differing")


async def look_at_receipts(recollect, life):
    """See that no mirror that answers has anything of what a finished receipt says is gone."""
    gone = {number: set() for number in range(len(life.minds))}
    looked = 0
    for conversation, number, said in life.purged:
        [receipt] = await receipts_of(conversation)
        if receipt.finished_at is not None:
            looked += 1
            gone[number] |= set(said)
    for number, mind in enumerate(life.minds):
        for name in (SEARCH, GRAPH):
            with suppress(MirrorError):
                assert not await held_ids(recollect, name, mind) & gone[number]
    return looked


async def caught_up(recollect):
    """Wait until no mirror lacks anything."""
    while any(each.behind for each in await recollect.operator.mirrors.status(probe=False)):  # noqa: ASYNC110
        await asyncio.sleep(0.2)


async def test_scopes_of_several_tenants_are_fed_apart(recollect, mind):
    other = await recollect.mind("ada", "li", tenant="other")
    [theirs] = await other.remember("Somebody else's harbour.")
    await follow(recollect)
    assert theirs.id in await held_ids(recollect, SEARCH, other)
    assert theirs.id not in await held_ids(recollect, SEARCH, mind)
    assert await scope_of(mind) >> 40 != await scope_of(other) >> 40
