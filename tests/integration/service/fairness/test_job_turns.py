"""Workers take turns by tenant: however many jobs one tenant has waiting, another one's first job is next."""

from __future__ import annotations

import pytest
from procrastinate.jobs import Status

from recollect.jobs.worker import build_app
from sizes import Sizes

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
    app = build_app(recollect.addresses.service, parts.database, parts.embedder, 8)
    async with app.open_async():
        yield app.job_manager


async def register(engine):
    return await engine.register_worker()


async def take(engine, worker, count):
    """Take so many jobs; return whose they are."""
    taken = [await engine.fetch_job(None, worker) for _ in range(count)]
    return [job.task_kwargs.get("scope_id", 0) >> 40 for job in taken if job]


@pytest.mark.promise("However many jobs a tenant has waiting, another tenant's first job is begun next", WAITING)
async def test_tenants_take_turns(engine, owner, figure):
    put(owner, LOUD, WAITING.now)
    worker = await register(engine)
    assert await take(engine, worker, 2) == [LOUD, LOUD]
    put(owner, QUIET, 2)
    put(owner, OTHER, 2)
    assert await take(engine, worker, 6) == [QUIET, OTHER, LOUD, QUIET, OTHER, LOUD]
    owner.execute("analyze procrastinate_jobs")
    for _ in range(2):  # the first call also reads the function
        plan = owner.execute(
            "explain (analyze, buffers, format json) select * from take_job(%s, %s, null)", [worker, LOUD]
        )
        read = plan.fetchone()[0][0]["Plan"]
    blocks = read["Shared Hit Blocks"] + read["Shared Read Blocks"]
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
