"""Workers take turns by tenant: however many jobs one tenant has waiting, another one's first job is next."""

from __future__ import annotations

import asyncio

import pytest
from procrastinate.jobs import Status

from conftest import PATIENT
from recollect.jobs.lease import CHATTING
from recollect.jobs.worker import build_app
from recollect.wiring import connected
from support.measuring.sizes import Sizes
from support.models.fake_chat import FakeChatModel
from support.programs.waiting import until
from support.service.made_settings import make_settings

WAITING = Sizes("jobs", ci=20_000, long=100_000)
LOUD, QUIET, OTHER = 5, 9, 3
MOST_BLOCKS = 100
"""How much of the tables and indexes the next job may take to find: without an index it would be all of it."""


def put(owner, tenant, count, scheduled="null", lock="embed"):
    """Let so many jobs of a tenant wait."""
    owner.execute(
        f"""insert into procrastinate_jobs (queue_name, task_name, lock, args, scheduled_at)
        select %(lock)s::text, %(lock)s::text, %(lock)s::text || %(tenant)s::text || '.' || number,
               jsonb_build_object('scope_id', (%(tenant)s::text::bigint << 40) + number), {scheduled}
        from generate_series(1, %(count)s) number""",
        {"tenant": tenant, "count": count, "lock": lock},
    )


@pytest.fixture
async def engine(recollect, owner):
    """The job engine of a worker."""
    owner.execute("truncate procrastinate_jobs cascade")
    owner.execute("alter table procrastinate_jobs disable trigger user")
    parts = recollect.parts
    app = build_app(parts)
    async with app.open_async():
        yield app.job_manager


async def register(engine):
    return await engine.register_worker()


async def take(engine, worker, count):
    """Take so many jobs; return whose they are."""
    taken = [await engine.fetch_job(None, worker) for _ in range(count)]
    return [job.task_kwargs.get("scope_id", 0) >> 40 for job in taken if job]


def count_blocks(owner, worker, most_chats=None):
    """Count the blocks that are read to find the next job."""
    for _ in range(2):  # the first call also reads the function
        plan = owner.execute(
            "explain (analyze, buffers, format json) select * from take_job(%s, %s, null, %s)",
            [worker, LOUD, most_chats],
        )
        read = plan.fetchone()[0][0]["Plan"]
    return read["Shared Hit Blocks"] + read["Shared Read Blocks"]


@pytest.mark.promise("However many jobs a tenant has waiting, another tenant's first job is begun next", WAITING)
async def test_tenants_take_turns(engine, owner, figure):
    put(owner, LOUD, WAITING.now)
    worker = await register(engine)
    assert await take(engine, worker, 2) == [LOUD, LOUD]
    put(owner, QUIET, 2)
    put(owner, OTHER, 2)
    assert await take(engine, worker, 6) == [QUIET, OTHER, LOUD, QUIET, OTHER, LOUD]
    owner.execute("analyze procrastinate_jobs")
    blocks = count_blocks(owner, worker)
    figure(f"the next job is found in {blocks} blocks")
    assert blocks < MOST_BLOCKS


async def test_what_is_scheduled_for_later_is_passed_by(engine, owner):
    put(owner, LOUD, WAITING.now // 10, scheduled="now() + interval '1 day'")
    put(owner, QUIET, 1)
    worker = await register(engine)
    assert await take(engine, worker, 3) == [QUIET]


async def test_of_one_tenant_the_oldest_job_that_is_due_goes_first(engine, owner):
    put(owner, LOUD, 1, scheduled="now() - interval '1 second'", lock="retried")
    put(owner, LOUD, 2, lock="fresh")
    put(owner, LOUD, 1, scheduled="now() - interval '1 hour'", lock="later")
    worker = await register(engine)
    taken = [(await engine.fetch_job(None, worker)).lock.partition("5")[0] for _ in range(4)]
    assert taken == ["fresh", "fresh", "later", "retried"]


async def test_jobs_of_one_lock_run_one_by_one(engine, owner):
    owner.execute(
        """insert into procrastinate_jobs (queue_name, task_name, lock, args)
        select 'embed', 'embed', 'same', jsonb_build_object('scope_id', 5::bigint << 40) from generate_series(1, 3)"""
    )
    worker = await register(engine)
    first = await engine.fetch_job(None, worker)
    assert await engine.fetch_job(None, worker) is None
    await engine.finish_job(first, Status.SUCCEEDED, delete_job=True)
    assert (await engine.fetch_job(None, worker)).id == first.id + 1


async def test_what_is_for_no_tenant_has_a_turn_of_its_own(engine, owner):
    put(owner, LOUD, 5)
    owner.execute(
        "insert into procrastinate_jobs (queue_name, task_name, args) values ('sweep', 'sweep', '{\"timestamp\": 1}')"
    )
    worker = await register(engine)
    assert await take(engine, worker, 6) == [0, LOUD, LOUD, LOUD, LOUD, LOUD]


@pytest.mark.promise("A tenant's jobs that wait for the chat model leave a place of each worker to others", WAITING)
async def test_jobs_that_wait_for_the_chat_model_leave_a_place(engine, owner, monkeypatch):
    for task in CHATTING:
        assert owner.execute("select waits_for_chat(%s)", [task]).fetchone() == (True,)
    assert owner.execute("select waits_for_chat('embed')").fetchone() == (False,)
    put(owner, LOUD, WAITING.now, lock="reflect")
    put(owner, LOUD, 1, lock="enrich")
    engine.most_chats = 3
    worker, other = await register(engine), await register(engine)
    hanging = [await engine.fetch_job(None, worker) for _ in range(3)]
    assert await take(engine, worker, 1) == [], "this worker has as many of them as it may"
    owner.execute("analyze procrastinate_jobs")
    assert count_blocks(owner, worker, 3) < MOST_BLOCKS
    put(owner, LOUD, 1)
    put(owner, QUIET, 4, lock="reflect")
    assert await take(engine, worker, 5) == [QUIET, LOUD, QUIET, QUIET]
    assert await take(engine, other, 1) == [LOUD], "another worker has places of its own"
    looked = []

    async def look():
        looked.append(len(looked))

    monkeypatch.setattr(engine, "_look", look)
    assert await take(engine, worker, 1) == []
    await engine.retry_job(hanging[0])
    assert looked == [0], "the worker looks for jobs at once"
    assert await take(engine, worker, 2) == [LOUD]


class Hanging(FakeChatModel):
    """A chat model that never answers, and notes whom it was asked about."""

    def __init__(self):
        super().__init__({})
        self.asked = []

    async def complete(self, prompt, answer):
        self.asked += [name for name in ("loud", "quiet") if f"{name} likes" in prompt]
        await asyncio.Event().wait()


@pytest.mark.parametrize("places", [1, 3])
async def test_a_worker_with_a_hanging_chat_model_serves_others(addresses, embedder, places):
    chat = Hanging()
    async with connected(make_settings(embedder="fake", **PATIENT), addresses, embedder, chat) as recollect:

        async def reflect(tenant, agent):
            mind = await recollect.mind(agent, tenant=tenant)
            await mind.remember(f"{tenant} likes tea")
            await mind.reflect_later()

        for number in range(4):
            await reflect("loud", f"agent{number}")
        worker = asyncio.create_task(recollect.work(places, stop_seconds=0))
        try:
            few = max(1, places - 1)
            await until(lambda: len(chat.asked) == few)
            if places > 1:
                await reflect("quiet", "ada")
                await until(lambda: len(chat.asked) > few)
            assert chat.asked == ["loud"] * few + ["quiet"] * (places > 1)
        finally:
            worker.cancel()
            await asyncio.wait([worker])


@pytest.mark.promise("The test of turns of jobs notices an engine that takes the oldest job first")
async def test_the_engines_own_order_would_let_others_wait(engine, owner):
    put(owner, LOUD, 10)
    put(owner, QUIET, 1)
    worker = await register(engine)
    found = owner.execute(
        "select (args ->> 'scope_id')::bigint >> 40 from procrastinate_fetch_job_v2(null, %s)", [worker]
    )
    owner.execute("update procrastinate_jobs set status = 'todo'")
    assert found.fetchone()[0] == LOUD
    engine.taken_for = LOUD
    assert await take(engine, worker, 1) == [QUIET]
