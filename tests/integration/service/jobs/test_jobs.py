"""Jobs: only the run that holds the lease writes, what failed is seen and tried again, and tenants see their own."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from procrastinate.jobs import Status

from conftest import http_client, new_key
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.errors import ForbiddenError, InvalidInputError, LeaseLostError, NotFoundError
from recollect.jobs import lease, progress
from recollect.jobs.clock import ClockSafeDeferrer, HeartbeatConfig
from recollect.jobs.mirror import CHECK
from recollect.jobs.worker import MAX_ATTEMPTS, WorkerOptions, build_app
from recollect.llm.fake import FakeEmbedder
from recollect.models.memories import MemoryProgress
from recollect.models.service import JobState, Right
from recollect.settings import Settings
from recollect.store.service import jobs
from recollect.store.service.jobs import Lease, check_lease, claim_effect
from recollect.wiring import connected
from support.programs.waiting import WAIT_SECONDS, until, until_blocked
from support.service.made_settings import make_settings
from support.service.serving import serving

HOUR = timedelta(hours=1)


@pytest.fixture
async def database(recollect):
    return recollect.parts.database


async def enqueue(recollect, owner, tenant="default", agent="ada", task="embed", status="todo"):
    """Make a scope and a job of it that stands somewhere; return the scope and the job."""
    mind = await recollect.mind(agent, tenant=tenant)
    await mind.remember("Ann waters the plants")
    tenant_id = mind.access.scope.tenant_id
    scope_id = owner.execute(
        "select id from scopes where tenant_id = %s and agent = %s", [tenant_id, agent]
    ).fetchone()[0]
    async with recollect.parts.database.transaction(tenant_id) as connection:
        await jobs.defer(connection, task, f"{task}:{scope_id}", {"scope_id": scope_id})
    job_id = owner.execute("select max(id) from procrastinate_jobs").fetchone()[0]
    if status != "todo":
        owner.execute("update procrastinate_jobs set status = 'doing' where id = %s", [job_id])
    if status == "failed":
        owner.execute("select procrastinate_finish_job_v1(%s, 'failed', false)", [job_id])
        await jobs.record_job_failure(recollect.parts.database, job_id, "It would not.")
    return scope_id, str(job_id)


async def write(database, lease, scope_id, key):
    async with database.transaction(scope_id >> 40) as connection:
        return await claim_effect(connection, lease, scope_id, key)


@pytest.mark.promise("The effect of a job is written once, by whoever holds its lease")
async def test_an_effect_is_claimed_once_and_by_whoever_holds_the_lease(recollect, database, owner):
    scope_id, job_id = await enqueue(recollect, owner, status="doing")
    first, second = Lease(int(job_id), 0), Lease(int(job_id), 1)
    assert await write(database, first, scope_id, "a") is True
    assert await write(database, first, scope_id, "a") is False
    owner.execute("select procrastinate_retry_job_v2(%s, now(), null, null, null)", [job_id])
    with pytest.raises(LeaseLostError):
        await write(database, first, scope_id, "b")
    with pytest.raises(LeaseLostError):
        await write(database, second, scope_id, "b")  # nobody has taken it up yet
    owner.execute("update procrastinate_jobs set status = 'doing' where id = %s", [job_id])
    with pytest.raises(LeaseLostError):
        await write(database, first, scope_id, "b")
    assert await write(database, second, scope_id, "a") is False
    assert await write(database, second, scope_id, "b") is True


@pytest.mark.promise("No job begins before what was written for it can be seen, and none that has begun is relied on")
async def test_a_job_that_a_write_relies_on_is_not_begun_before_it_ends(recollect, database, owner, addresses):
    scope_id, job_id = await enqueue(recollect, owner)
    take = "select id from procrastinate_fetch_job_v2('{embed}', null)"
    waiting = "select count(*) from procrastinate_jobs where status = 'todo' and task_name = 'embed'"

    async def rely(then=lambda: None):
        async with database.transaction(scope_id >> 40) as connection:
            await jobs.defer(connection, "embed", f"embed:{scope_id}", {"scope_id": scope_id})
            await (await connection.execute("select")).fetchone()  # statements travel together, and this one waits
            then()

    taken = []
    await rely(lambda: taken.append(owner.execute(take).fetchone()))
    assert taken == [(None,)]
    with psycopg.connect(addresses.owner) as worker:
        assert worker.execute(take).fetchone() == (int(job_id),)
        relying = asyncio.create_task(rely())
        await until_blocked(owner, relying)
        worker.commit()
        await relying
    assert owner.execute(waiting).fetchone() == (1,)


async def test_an_effect_that_is_rolled_back_is_not_claimed(recollect, database, owner):
    scope_id, job_id = await enqueue(recollect, owner, status="doing")
    with pytest.raises(RuntimeError):
        async with database.transaction(scope_id >> 40) as connection:
            assert await claim_effect(connection, Lease(int(job_id), 0), scope_id, "a")
            raise RuntimeError
    assert await write(database, Lease(int(job_id), 0), scope_id, "a") is True


@pytest.mark.promise("Nobody takes a job over while its effect is being written")
async def test_nobody_takes_a_job_over_while_its_effect_is_being_written(recollect, database, owner):
    scope_id, job_id = await enqueue(recollect, owner, status="doing")
    async with database.transaction(scope_id >> 40) as connection:
        await check_lease(connection, Lease(int(job_id), 0))
        owner.execute("set lock_timeout = '200ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            owner.execute("select procrastinate_retry_job_v2(%s, now(), null, null, null)", [job_id])


async def test_effects_go_with_their_jobs_and_are_of_one_tenant(recollect, database, owner):
    scope_id, job_id = await enqueue(recollect, owner, status="doing")
    await write(database, Lease(int(job_id), 0), scope_id, "a")
    foreign, _ = await enqueue(recollect, owner, tenant="other")
    count = "select count(*) as notes from job_effects"
    async with database.reading(foreign >> 40) as connection:
        seen = await connection.execute(count)
    assert (await seen.fetchone())["notes"] == 0
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with database.transaction(foreign >> 40) as connection:
            await claim_effect(connection, Lease(int(job_id), 0), scope_id, "b")
    assert owner.execute(count).fetchone() == (1,)
    async with database.transaction(None) as connection:
        await connection.execute("delete from procrastinate_jobs where id = %s", [job_id])
    assert owner.execute(count).fetchone() == (0,)


@pytest.mark.promise("A run that lost its job can neither end it nor put it back")
async def test_a_run_that_lost_its_job_cannot_end_it(recollect, database, embedder, owner):
    _, job_id = await enqueue(recollect, owner)
    state = "select status, attempts from procrastinate_jobs where id = %s"
    app = build_app(recollect.parts)
    async with app.open_async():
        worker = await app.job_manager.register_worker()
        late = await app.job_manager.fetch_job(["embed"], worker)
        await app.job_manager.retry_job(late)
        owner.execute("update procrastinate_jobs set scheduled_at = null")
        current = await app.job_manager.fetch_job(["embed"], worker)
        assert (late.id, late.attempts, current.id, current.attempts) == (int(job_id), 0, int(job_id), 1)
        await app.job_manager.retry_job(late)
        await app.job_manager.finish_job(late, Status.FAILED, delete_job=False)
        assert owner.execute(state, [job_id]).fetchone() == ("doing", 1)
        await app.job_manager.finish_job(current, Status.SUCCEEDED, delete_job=False)
        assert owner.execute(state, [job_id]).fetchone() == ("succeeded", 2)


class AheadDatetime(datetime):
    """A clock that is an hour ahead."""

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + HOUR


async def test_a_job_is_put_back_by_the_clock_of_the_database(recollect, database, embedder, owner, monkeypatch):
    monkeypatch.setattr(lease, "datetime", AheadDatetime)
    await enqueue(recollect, owner)
    app = build_app(recollect.parts)
    async with app.open_async():
        worker = await app.job_manager.register_worker()
        job = await app.job_manager.fetch_job(["embed"], worker)
        await app.job_manager.retry_job(job, AheadDatetime.now(UTC) + timedelta(seconds=30))
        when = "from procrastinate_jobs where task_name = 'embed'"
        assert owner.execute(f"select scheduled_at <= now() + interval '30 s' {when}").fetchall() == [(True,)]
        owner.execute("update procrastinate_jobs set scheduled_at = null")
        await app.job_manager.retry_job(await app.job_manager.fetch_job(["embed"], worker))
        assert owner.execute(f"select scheduled_at {when}").fetchall() == [(None,)]


async def test_a_dead_worker_does_not_live_because_its_heartbeat_lies_ahead(recollect, database, embedder, owner):
    _, job_id = await enqueue(recollect, owner)
    duties = WorkerOptions(pulse=HeartbeatConfig(stalled_seconds=0))
    app = build_app(recollect.parts, duties)
    async with app.open_async():
        await app.job_manager.fetch_job(["embed"], await app.job_manager.register_worker())
        owner.execute("update procrastinate_workers set last_heartbeat = now() + interval '1 hour'")
        await app.tasks["resume_stalled"](None, timestamp=0)
    state = "select status, attempts from procrastinate_jobs where id = %s"
    assert owner.execute(state, [job_id]).fetchone() == ("todo", 1)


async def test_what_runs_by_the_clock_follows_one_that_is_set(recollect, database, embedder):
    app = build_app(recollect.parts)
    deferrer, then = ClockSafeDeferrer(app.periodic_registry), datetime(2026, 11, 18, 12, 5, tzinfo=UTC)

    def due(after, task="resume_stalled"):
        found = deferrer.get_previous_tasks((then + after).timestamp())
        return [datetime.fromtimestamp(timestamp, UTC) - then for each, timestamp in found if each.task.name == task]

    second = timedelta(seconds=1)
    assert due(1 * second) == [0 * second]
    assert due(9 * second) == []
    assert due(21 * second) == [10 * second, 20 * second]
    assert due(61 * second, CHECK) == [30 * second, 60 * second]
    assert due(second - HOUR) == [-HOUR]
    assert due(second + HOUR) == [HOUR]


@pytest.mark.parametrize("succeeds", [True, False])
async def test_failures_of_what_runs_by_the_clock_end_with_its_next_success(
    recollect, database, embedder, owner, succeeds
):
    owner.execute("delete from procrastinate_jobs")
    _, kept = await enqueue(recollect, owner, task="embed", status="failed")
    app = build_app(recollect.parts)
    async with app.open_async():
        worker = await app.job_manager.register_worker()
        ends = [*[("resume_stalled", Status.FAILED)] * 3, ("sweep", Status.FAILED), ("resume_stalled", None)]
        for name, end in ends:
            await app.tasks[name].defer_async(timestamp=0)
            job = await app.job_manager.fetch_job([name], worker)
            status = end or (Status.SUCCEEDED if succeeds else Status.FAILED)
            # As the worker does: what succeeded is deleted.
            await app.job_manager.finish_job(job, status, delete_job=status is Status.SUCCEEDED)
    left = owner.execute("select task_name, count(*) from procrastinate_jobs where status = 'failed' group by 1")
    assert dict(left.fetchall()) == {"embed": 1, "sweep": 1} | ({} if succeeds else {"resume_stalled": 4})
    assert owner.execute("select job_id::text from job_failures").fetchall() == [(kept,)]


async def test_a_tenant_lists_its_own_jobs_page_by_page(recollect, owner):
    owner.execute("delete from procrastinate_jobs")
    _, waiting = await enqueue(recollect, owner, agent="ada")
    _, running = await enqueue(recollect, owner, agent="bob", status="doing")
    _, failed = await enqueue(recollect, owner, agent="cid", status="failed")
    await enqueue(recollect, owner, tenant="other", agent="eve", status="failed")
    caller = await recollect.operator.act_for("default")
    page = await recollect.jobs.page(caller)
    assert [(job.id, job.agent, job.state) for job in page.jobs] == [
        (failed, "cid", JobState.FAILED),
        (running, "bob", JobState.RUNNING),
        (waiting, "ada", JobState.WAITING),
    ]
    assert [job.reason for job in page.jobs] == ["It would not.", "", ""]
    assert [job.lag_seconds is None for job in page.jobs] == [True, True, False]
    assert 0 <= page.jobs[2].lag_seconds < 60
    first = await recollect.jobs.page(caller, limit=2)
    assert (len(first.jobs), first.next_cursor) == (2, running)
    rest = await recollect.jobs.page(caller, cursor=first.next_cursor, limit=2)
    assert ([job.id for job in rest.jobs], rest.next_cursor) == ([waiting], None)
    assert [job.id for job in (await recollect.jobs.page(caller, JobState.FAILED)).jobs] == [failed]
    assert (await recollect.jobs.page(caller, task="sync_state")).jobs == ()
    with pytest.raises(InvalidInputError):
        await recollect.jobs.page(caller, JobState.SUCCEEDED)
    with pytest.raises(InvalidInputError, match="cursor"):
        await recollect.jobs.page(caller, cursor="no-job")


@pytest.mark.promise("No tenant sees or retries a job of another")
async def test_no_tenant_sees_or_retries_a_job_of_another(recollect, owner):
    _, foreign = await enqueue(recollect, owner, tenant="other", agent="eve", status="failed")
    _, nobodys = await enqueue(recollect, owner, agent="ada", status="failed")
    owner.execute("""update procrastinate_jobs set args = '{"space_id": 1}' where id = %s""", [nobodys])
    caller = await recollect.operator.act_for("default")
    assert foreign not in [job.id for job in (await recollect.jobs.page(caller)).jobs]
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        for job_id in (foreign, nobodys, 2**62, 2**70, "0", "01", "-1", "no-job"):
            for answer in (await http.get(f"/v1/jobs/{job_id}"), await http.post(f"/v1/jobs/{job_id}/retry")):
                assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert [job["agent"] for job in (await http.get("/v1/jobs")).json()["jobs"] if job["agent"] == "eve"] == []
    assert await jobs.retry_failed(recollect.parts.database, caller.tenant_id, jobs.JobQuery()) == []
    states = owner.execute(
        "select status from procrastinate_jobs where id = any (%s::bigint[])", [[foreign, nobodys]]
    ).fetchall()
    assert states == [("failed",), ("failed",)]


async def test_a_failed_job_is_retried_by_an_administrator_only(recollect, embedder, owner):
    owner.execute("delete from procrastinate_jobs")
    _, job_id = await enqueue(recollect, owner, status="failed")
    _, reader = await new_key(recollect, rights=(Right.READ, Right.WRITE))
    _, writer = await new_key(recollect, rights=(Right.WRITE,))
    async with http_client(recollect, reader) as http:
        assert (await http.post(f"/v1/jobs/{job_id}/retry")).status_code == 403
        told = (await http.get(f"/v1/jobs/{job_id}")).json()
        assert (told["id"], told["state"]) == (job_id, "failed")
    async with http_client(recollect, writer) as http:
        assert (await http.get("/v1/jobs")).status_code == 403
    _, secret = await new_key(recollect)
    async with serving(create_app(recollect=recollect)) as url, Client(url, secret) as client:
        [job] = (await client.jobs(JobState.FAILED, task="embed")).jobs
        assert (job.id, job.agent, job.attempts) == (job_id, "ada", 1)
        assert (await client.retry_job(job_id)).state is JobState.WAITING
        assert (await client.retry_job(job_id)).attempts == 2  # it waits: asking again changes nothing
        assert (await client.jobs(JobState.FAILED)).jobs == ()
        with pytest.raises(NotFoundError):
            await client.retry_job(f"{job_id}000")
    await recollect.work(until_empty=True)
    caller = await recollect.operator.act_for("default")
    with pytest.raises(NotFoundError, match="Finished jobs are deleted"):
        await recollect.jobs.read_job(caller, job_id)


async def test_an_operator_retries_by_task_number_and_tenant(recollect, owner):
    owner.execute("delete from procrastinate_jobs")
    _, ada = await enqueue(recollect, owner, agent="ada", status="failed")
    _, bob = await enqueue(recollect, owner, agent="bob", task="sync_state", status="failed")
    _, eve = await enqueue(recollect, owner, tenant="other", agent="eve", status="failed")
    with pytest.raises(NotFoundError):
        await recollect.jobs.retry_all(tenant="nobody")
    assert (await recollect.jobs.find_job_anywhere(eve)).agent == "eve"
    assert await recollect.jobs.retry_all(tenant="other") == [eve]
    assert await recollect.jobs.retry_all(job_id=bob) == [bob]
    assert await recollect.jobs.retry_all(task="sync_state") == []
    assert await recollect.jobs.retry_all() == [ada]
    with pytest.raises(NotFoundError):
        await recollect.jobs.find_job_anywhere(f"{eve}000")


@pytest.mark.promise("A job that outlives its workers is set aside, and says why")
async def test_a_job_that_outlived_its_workers_is_quarantined_with_the_reason(recollect, database, embedder, owner):
    owner.execute("delete from procrastinate_jobs")
    _, job_id = await enqueue(recollect, owner, status="doing")
    owner.execute("update procrastinate_jobs set attempts = %s", [MAX_ATTEMPTS])
    app = build_app(recollect.parts)
    async with app.open_async():
        await app.tasks["resume_stalled"](None, 0)
    job = await recollect.jobs.find_job_anywhere(job_id)
    assert (job.state, job.reason) == (JobState.FAILED, "Every worker that ran this job crashed.")


async def test_long_work_tells_how_far_it_is_and_short_work_does_not(recollect, embedder, database, owner, monkeypatch):
    owner.execute("delete from procrastinate_jobs")
    monkeypatch.setattr(progress, "SECONDS", 0.05)
    _, job_id = await enqueue(recollect, owner, status="doing")

    async def three():
        return 3

    async with progress.reporting(database, Lease(int(job_id), 0), three) as counter:
        counter.set_total(1)
        counter.count_more(1)
    assert owner.execute("select count(*) from job_progress").fetchone() == (0,)
    async with progress.reporting(database, Lease(int(job_id), 0), three) as counter:
        counter.set_total(4)
        await until(lambda: owner.execute("select done from job_progress").fetchone() == (4,))
        job = await recollect.jobs.find_job_anywhere(job_id)
        assert (job.done, job.total) == (4, 7)
        [backlog] = await recollect.jobs.unfinished()
        assert (backlog.state, backlog.done, backlog.total) == ("running", 4, 7)
        counter.count_more(3)
    assert (await recollect.jobs.find_job_anywhere(job_id)).done == 7
    await jobs.record_progress(database, Lease(int(job_id), 9), 1, None)
    assert (await recollect.jobs.find_job_anywhere(job_id)).done == 7


async def test_a_slow_embedding_shows_its_progress(addresses, owner, monkeypatch):
    owner.execute("delete from procrastinate_jobs")
    monkeypatch.setattr(progress, "SECONDS", 0.05)
    embedder, gate = FakeEmbedder(), asyncio.Event()
    embed = embedder.embed

    async def pause_at_the_third(texts):
        if "2 plants" in texts[0]:
            await gate.wait()
        return await embed(texts)

    monkeypatch.setattr(embedder, "embed", pause_at_the_third)
    async with connected(make_settings(embedder="fake", embedding__max_batch_size=1), addresses, embedder) as recollect:
        mind = await recollect.mind("ada")
        # More than one batch: the vectors are left to a job.
        await mind.remember([f"Ann waters {number} plants" for number in range(6)])
        working = asyncio.create_task(recollect.work(until_empty=True))
        await until(lambda: owner.execute("select done from job_progress").fetchone() == (2,))
        caller = await recollect.operator.act_for("default")
        # What comes by the clock may stand beside it, and have seen that something waits for a vector.
        [job] = [job for job in (await recollect.jobs.page(caller)).jobs if job.state is JobState.RUNNING]
        assert (job.done, job.total) == (2, 6)
        gate.set()
        await working
        with pytest.raises(NotFoundError, match="Finished jobs are deleted"):
            await recollect.jobs.find_job_anywhere(job.id)


async def test_the_rights_of_a_caller_are_checked_without_a_door_too(recollect, owner):
    caller = replace(await recollect.operator.act_for("default"), rights=frozenset({Right.READ}))
    with pytest.raises(ForbiddenError):
        await recollect.jobs.retry(caller, "1")


async def test_a_memory_says_how_far_it_has_come(addresses, owner):
    owner.execute("delete from procrastinate_jobs")
    embedder = FakeEmbedder()
    async with connected(Settings(embedder="fake"), addresses, embedder) as recollect:
        mind = await recollect.mind("ada")
        embedder.fail()
        [receipt] = await mind.remember("Ann waters the plants")
        embedder.recover()
        assert (await mind.get(receipt.id)).progress is MemoryProgress.STORED
        owner.execute("update procrastinate_jobs set status = 'failed' where task_name = 'embed'")
        assert (await mind.get(receipt.id)).progress is MemoryProgress.FAILED
        assert len(await recollect.jobs.retry_all()) == 1
        assert (await mind.get(receipt.id)).progress is MemoryProgress.STORED
        await recollect.work(until_empty=True)
        assert (await mind.get(receipt.id)).progress is MemoryProgress.EMBEDDED
        [hit] = (await mind.recall("plants")).hits
        assert hit.memory.progress is None
        _, secret = await new_key(recollect)
        async with http_client(recollect, secret) as http:
            answer = await http.get(f"/v1/memories/{receipt.id}", params={"agent": "ada"})
            assert answer.json()["progress"] == "embedded"


async def test_a_job_ends_although_its_progress_misses_a_cancellation(recollect, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS", 0.001)
    asked = asyncio.Event()

    async def deaf():
        if asked.is_set():
            return
        asked.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(10 * WAIT_SECONDS)

    async with asyncio.timeout(WAIT_SECONDS) as limit:
        async with progress.reporting(recollect.parts.database, Lease(1, 0), deaf) as counter:
            counter.count_more(1)
            await asked.wait()
    assert not limit.expired(), "its end was swallowed, too"


async def test_work_ends_before_a_job_that_waits_behind_a_deferred_one(recollect, owner):
    _, first = await enqueue(recollect, owner)
    owner.execute("update procrastinate_jobs set scheduled_at = now() + '1 hour' where id = %s", [first])
    owner.execute(
        "insert into procrastinate_jobs (queue_name, task_name, lock, args) "
        "select queue_name, task_name, lock, args from procrastinate_jobs where id = %s", [first]
    )  # fmt: skip
    async with asyncio.timeout(WAIT_SECONDS):
        await recollect.work(until_empty=True)
    waiting = owner.execute("select count(*) from procrastinate_jobs where status = 'todo' and lock like 'embed%'")
    assert waiting.fetchone() == (2,)
