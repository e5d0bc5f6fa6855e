"""Embedding spaces on a real PostgreSQL: every width, changed while serving, filled by jobs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import psycopg
import pytest
from procrastinate import RetryDecision

from conftest import addresses_of, execute
from recollect.errors import NotFoundError, SetupError
from recollect.jobs.worker import RetryPolicy, build_app
from recollect.llm.fake import FakeEmbedder
from recollect.models.memories import MemoryProgress, NewMemory
from recollect.models.recall import Cue
from recollect.settings import Settings
from recollect.store.memories.spaces import ensure_space
from recollect.wiring import connected, prepare
from support.database.clones import NUMBERS
from support.service.known_numbers import SPACE, VECTORS


async def with_model(recollect, embedder):
    """The same database served with another model configured."""
    return replace(recollect, parts=replace(recollect.parts, embedder=embedder))


@pytest.mark.parametrize(
    ("dimensions", "storage"),
    [(256, "covering"), (1280, "covering"), (1281, "plain"), (1536, "plain"), (4000, "plain"), (4096, "external")],
)
async def test_every_width_is_stored_and_searched(recollect, owner, dimensions, storage):
    changed = await with_model(recollect, FakeEmbedder(dimensions))
    await changed.operator.spaces.change(lambda _: None)
    mind = await changed.mind("wide")
    vectors = np.random.default_rng(1).standard_normal((30, dimensions))
    await mind.remember([NewMemory(f"m{n}", embedding=row.tolist()) for n, row in enumerate(vectors)])
    hit = (await mind.recall(Cue(embedding=vectors[17].tolist(), limit=1))).hits[0]
    assert hit.memory.content == "m17"
    row = owner.execute("select storage, id from embedding_spaces where state = 'active'").fetchone()
    assert row[0] == storage
    owner.execute("set enable_seqscan = off; set enable_bitmapscan = off")
    query = f"explain select id from vectors_{row[1]} where scope_id = 7 order by embedding <#> embedding limit 3"
    plan = "\n".join(line[0] for line in owner.execute(query))
    assert ("Index Only Scan" in plan) == (storage == "covering")


async def test_a_number_that_two_models_share_is_refused(recollect, addresses, owner):
    owner.execute("update embedding_spaces set model = 'other@1' where id = %s", [SPACE])
    with pytest.raises(SetupError, match=f"{SPACE} of fake-64@1 already belongs to other@1"):
        await ensure_space(addresses.owner, "fake-64@1", 64)
    assert owner.execute("select model from embedding_spaces").fetchall() == [("other@1",)]


@pytest.mark.promise("A model is replaced while serving")
async def test_a_model_is_replaced_while_serving(recollect, owner):
    minds = [await recollect.mind(f"agent-{number}", tenant=f"tenant-{number % 3}") for number in range(5)]
    for mind in minds:
        await mind.remember([NewMemory(f"note {number} of {mind.access.scope.agent}") for number in range(40)])
    changed = await with_model(recollect, FakeEmbedder(256))
    seen: list[int] = []
    written: list[str] = []

    async def keep_writing():
        for number in range(60):
            [receipt] = await minds[number % 5].remember(f"while changing {number}")
            written.append(str(receipt.id))
            assert (await minds[number % 5].recall("note")).hits
            await asyncio.sleep(0)

    writing = asyncio.create_task(keep_writing())
    space, _ = await changed.operator.spaces.change(seen.append)
    await writing
    await changed.work(until_empty=True)
    total = owner.execute("select count(*) from memories").fetchone()[0]
    assert total == 260
    assert owner.execute(f"select count(*) from vectors_{space.id}").fetchone()[0] == total
    assert [each.state for each, _ in await changed.operator.spaces.list()] == ["retired", "active"]
    answer = await (await changed.mind("agent-0", tenant="tenant-0")).recall("note 7 of agent-0")
    assert answer.methods["vector"] == "exact"
    assert answer.hits[0].memory.content == "note 7 of agent-0"
    assert seen


async def test_writes_of_the_old_model_wait_for_the_new_one(recollect, owner):
    changed = await with_model(recollect, FakeEmbedder(256))
    space, _ = await changed.operator.spaces.change(lambda _: None)
    [receipt] = await (await recollect.mind("old")).remember("written by a process that still has the old model")
    assert receipt.progress is MemoryProgress.STORED
    await changed.work(until_empty=True)
    assert owner.execute(f"select count(*) from vectors_{space.id}").fetchone() == (1,)


async def test_a_retired_space_can_be_dropped_and_an_active_one_can_not(recollect, owner):
    changed = await with_model(recollect, FakeEmbedder(256))
    space, _ = await changed.operator.spaces.change(lambda _: None)
    with pytest.raises(NotFoundError):
        await changed.operator.spaces.drop(space.id)
    await changed.operator.spaces.drop(SPACE)
    assert owner.execute(f"select to_regclass('{VECTORS}')").fetchone() == (None,)
    mind = await changed.mind("ada")
    [receipt] = await mind.remember("still works")
    await mind.forget([receipt.id])
    assert owner.execute(f"select count(*) from vectors_{space.id}").fetchone() == (0,)


async def test_spaces_are_listed_without_the_owner_who_alone_changes_them(recollect):
    served = replace(recollect, addresses=replace(recollect.addresses, owner=""))
    assert [space.state for space, _ in await served.operator.spaces.list()] == ["active"]
    with pytest.raises(SetupError, match="RECOLLECT_OWNER_DATABASE_URL"):
        await served.operator.spaces.compact(SPACE)


async def test_without_a_space_everything_but_vectors_works(cluster, addresses):
    async with connected(Settings(embedder="none"), addresses, None) as recollect:
        mind = await recollect.mind("ada")
        [receipt] = await mind.remember("green apples")
        assert receipt.progress is MemoryProgress.STORED
        assert (await mind.recall("apples")).hits[0].memory.content == "green apples"


@pytest.mark.promise("A text that the model refuses does not hold up the others")
async def test_a_text_that_the_model_refuses_does_not_hold_up_the_others(recollect, owner, monkeypatch):
    # On a slow machine the second try would be due before the worker has ended, and so on with each one after it.
    monkeypatch.setattr(RetryPolicy, "get_retry_decision", lambda *_, **__: RetryDecision(retry_in={"hours": 1}))
    mind = await recollect.mind("ada")
    refuse = "a text that the model cannot take"
    embed = FakeEmbedder.embed

    async def picky(self, texts):
        if any(refuse in text for text in texts):
            await asyncio.sleep(0)
            self.fail()
            try:
                return await embed(self, texts)
            finally:
                self.recover()
        return await embed(self, texts)

    monkeypatch.setattr(FakeEmbedder, "embed", picky)
    await mind.load([NewMemory(f"fine {number}") for number in range(30)] + [NewMemory(refuse)])
    await mind.load([NewMemory("later")])
    await recollect.work(until_empty=True)
    waiting = owner.execute("select content from pending_embeddings join memories using (scope_id, id)").fetchall()
    assert waiting == [(refuse,)]
    assert owner.execute(f"select count(*) from {VECTORS}").fetchone() == (31,)


async def test_ensuring_a_space_twice_makes_one(addresses):
    spaces = await asyncio.gather(*(ensure_space(addresses.owner, "model", 300) for _ in range(4)))
    assert len({space.id for space in spaces}) == 1


async def test_what_was_remembered_before_there_was_a_model_gets_its_vectors(cluster):
    name = f"modelless_{next(NUMBERS)}"
    execute(cluster, f"create database {name}")
    addresses = addresses_of(cluster, name)
    try:
        await prepare(addresses, None)
        async with connected(Settings(embedder="none"), addresses, None) as recollect:
            for tenant in ("one", "two"):
                mind = await recollect.mind("ada", tenant=tenant)
                await mind.remember([NewMemory(f"note {number}") for number in range(30)])
        embedder = FakeEmbedder()
        await prepare(addresses, embedder)
        async with connected(Settings(embedder="fake"), addresses, embedder) as recollect:
            await recollect.work(until_empty=True)
            answer = await (await recollect.mind("ada", tenant="two")).recall("note 7")
        assert answer.methods["vector"] == "exact"
        assert len([hit for hit in answer.hits if "vector" in hit.channels]) == 10
        with psycopg.connect(addresses.owner) as owner:
            assert owner.execute(f"select count(*) from {VECTORS}").fetchone() == (60,)
    finally:
        execute(cluster, f"drop database {name} with (force)")


async def test_a_sweep_revives_what_waits_without_a_job(recollect, owner, embedder):
    embedder.fail()
    await (await recollect.mind("ada")).remember("left behind")
    owner.execute("delete from procrastinate_jobs")
    embedder.recover()
    app = build_app(recollect.parts)
    async with app.open_async():
        await app.tasks["sweep"](None, 0)
    await recollect.work(until_empty=True)
    assert owner.execute("select count(*) from pending_embeddings").fetchone() == (0,)
    assert owner.execute(f"select count(*) from {VECTORS}").fetchone() == (1,)
