"""Run jobs from the same PostgreSQL: in order per lock, retried with growing pauses, resumed after a crash."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TypeAlias
from uuid import UUID

from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.middleware import AsyncCallNext, TaskMiddleware
from procrastinate.worker import Worker

from recollect.core.conversations.retention import RetentionRules
from recollect.core.knowledge.segments import USUAL
from recollect.core.service.numbers import bucket_of_number, tenant_of
from recollect.core.text.variants import NEWEST, folding_by
from recollect.errors import BudgetError, EmbedderError, LeaseLostError, MovedError, RecollectError, WakingError
from recollect.jobs.clock import USUAL_PULSE, Pulse, SteadyWorker, schedule
from recollect.jobs.cold import ColdDuties, ColdTasks
from recollect.jobs.derive import (
    Enriching,
    Rederiving,
    Reflecting,
    ReflectionJob,
    close_silent,
    embed_first,
    rederive_scope,
    reflect_scope,
)
from recollect.jobs.embed import active_space, embed_pending, fill_space
from recollect.jobs.lease import GuardedJobManager, lease_of
from recollect.jobs.mirror import CHECK, MirrorTasks
from recollect.jobs.progress import reporting
from recollect.jobs.upkeep import Pass, retain, sweep, sync_scope
from recollect.llm.embedder import Embedder, serves
from recollect.store.cold.tiers import defer_waking
from recollect.store.conversations import lifecycle
from recollect.store.database.calls import working_in
from recollect.store.database.pool import CONNECTION_TIMEOUTS, Database, commit_at_once
from recollect.store.database.translation import UNAVAILABLE, describe
from recollect.store.knowledge import segments
from recollect.store.memories import accesses, embeddings
from recollect.store.mirrors.mirror import Mirror
from recollect.store.service import jobs, upkeep
from recollect.store.service.scopes import read_text_version
from recollect.tracing import span

Erasing: TypeAlias = Callable[[int, UUID], Awaitable[None]]
LONGEST_WAIT_SECONDS = 30
SPREAD_SECONDS = 300
MOST_ATTEMPTS = 8
OUTLIVED = "Its workers died, one after the other."
RESTART_SECONDS = 1.0
STOP_SECONDS, DAY_SECONDS = 10.0, 86_400.0
FOLDING = frozenset({"enrich", "reflect", "rederive"})
"""Jobs that store texts: they begin by asking how their scope folds them."""
OF_TENANTS = frozenset({"erase", "mirror"})
"""Jobs for all that a server has of a tenant, or for more: they bear the first number that a scope of it could have."""
LOG = logging.getLogger("recollect.worker")


class RetryPolicy(BaseRetryStrategy):
    """Wait longer each time; give up only where a retry cannot help."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """Decide when a failed job runs again; an unavailable model or database is waited for without limit."""
        if isinstance(exception, asyncio.CancelledError):
            # The worker stops: that says nothing about the job, and another worker may take it at once.
            return RetryDecision(retry_in={"seconds": 0})
        if isinstance(exception, BudgetError):
            # Jobs that waited for the next day must not all begin in the same second.
            spread = timedelta(seconds=random.uniform(0, SPREAD_SECONDS))  # noqa: S311
            return RetryDecision(retry_at=exception.until + spread)
        unavailable = isinstance(exception, RecollectError) and exception.unavailable
        if not unavailable and job.attempts >= MOST_ATTEMPTS:
            return None
        longest = min(LONGEST_WAIT_SECONDS, 2 ** min(job.attempts, 10))
        return RetryDecision(retry_in={"seconds": max(1, round(longest * random.uniform(0.5, 1)))})  # noqa: S311


@dataclass(frozen=True, slots=True)
class Duties:
    """What a worker needs beyond its database and embedder: verbs that it cannot import itself, and rules."""

    reflecting: Reflecting | None = None
    rederiving: Rederiving | None = None
    rules: RetentionRules = field(default_factory=RetentionRules)
    pulse: Pulse = USUAL_PULSE
    fading_days: float = 0.0
    """Over how many days memories fade by default, if an agent's profile does not say; 0 is never."""
    enriching: Enriching | None = None
    mirrors: Mapping[str, Mirror] = field(default_factory=dict[str, Mirror])
    """The mirrors that this worker has an address of."""
    cold: ColdDuties | None = None
    """How scopes go to object storage and come back, if this worker knows where that is."""
    erasing: Erasing | None = None
    """Goes on with the erasure of a user, on all servers of the tenant."""


IDLE = Duties()


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of the worker, each by its name."""

    app: App
    database: Database
    embedder: Embedder | None
    batch: int
    duties: Duties

    async def embed(self, context: JobContext, scope_id: int) -> None:
        """Embed a scope's memories that wait for a vector."""
        remaining = partial(embeddings.count_pending, self.database, scope_id)
        async with reporting(self.database, lease_of(context), remaining) as counter:
            await embed_pending(self.database, self._embedder(), self.batch, scope_id, counter.reach)

    async def enrich(self, context: JobContext, scope_id: int) -> None:
        """Cut a scope's conversations into segments, and learn from those that have closed."""
        if self.duties.enriching is None:
            return
        await embed_first(self.database, self.embedder, self.batch, scope_id)
        remaining = partial(segments.count_closed, self.database, scope_id)
        async with reporting(self.database, lease_of(context), remaining) as counter:
            await self.duties.enriching(scope_id, lease_of(context), counter.reach)

    async def close_silent(self, _context: JobContext, timestamp: int) -> None:  # noqa: ARG002 - the engine's call
        """Find conversations that have become silent, and segments that wait without a job."""
        if self.duties.enriching is not None:
            await close_silent(self.database, USUAL.idle_minutes)

    async def fill(self, context: JobContext, space_id: int) -> None:
        """Fill the active space with what was remembered before it."""
        space = await active_space(self.database)
        if space is not None and space.id == space_id and serves(self._embedder(), space):
            async with reporting(self.database, lease_of(context)) as counter:
                await fill_space(self.database, self._embedder(), self.batch, space, counter.reach)

    async def fold(self, scope_id: int) -> None:
        """Fold a scope's log of accesses into one row per memory."""
        await accesses.fold(self.database, [scope_id])

    async def reflect(self, context: JobContext, scope_id: int, count: int, now: str | None = None) -> None:
        """Let an agent reflect on what has gathered in a scope."""
        job = ReflectionJob(context.job.id or 0, scope_id, count, datetime.fromisoformat(now) if now else None)
        await reflect_scope(self.database, self.duties.reflecting, job)

    async def sync_state(self, context: JobContext, scope_id: int) -> None:
        """Bring the memories of a scope in line with the states of its conversations."""
        rederive = self.duties.rederiving is not None
        remaining = partial(lifecycle.count_unsynced, self.database, scope_id)
        async with reporting(self.database, lease_of(context), remaining) as counter:
            await sync_scope(self.database, scope_id, rederive=rederive, report=counter.add)

    async def rederive(self, scope_id: int) -> None:
        """Derive again what lost some of its evidence in a scope."""
        await rederive_scope(self.duties.rederiving, scope_id)

    async def fade(self, context: JobContext, scope_id: int) -> None:
        """Let memories of a scope fade."""
        await Pass(self.database, scope_id).run(self.duties.fading_days, lease_of(context))

    async def fade_daily(self, _context: JobContext, timestamp: int) -> None:  # noqa: ARG002 - the engine's call
        """Look once a day into every scope whose agent lets memories fade."""
        await upkeep.defer_due(self.database, "fade", usual=self.duties.fading_days)

    async def retain(self, _context: JobContext, timestamp: int) -> None:  # noqa: ARG002 - the engine's call
        """Change the state of conversations that nobody used for long."""
        await retain(self.database, self.duties.rules)

    async def resume_stalled(self, _context: JobContext, timestamp: int) -> None:  # noqa: ARG002 - the engine's call
        """Take over jobs of dead workers; one that outlived too many workers is given up."""
        limit = self.duties.pulse.stalled_seconds
        await jobs.mend_heartbeats(self.database)
        for job in await self.app.job_manager.get_stalled_jobs(seconds_since_heartbeat=limit):
            if job.queueing_lock is not None:
                # What runs by the clock comes again by itself, and may be waiting already.
                await self.app.job_manager.finish_job(job, Status.FAILED, delete_job=True)
            elif job.attempts >= MOST_ATTEMPTS:
                await jobs.note_failure(self.database, job.id or 0, OUTLIVED)
                await self.app.job_manager.finish_job(job, Status.FAILED, delete_job=False)
            else:
                await self.app.job_manager.retry_job(job)

    async def sweep(self, _context: JobContext, timestamp: int) -> None:  # noqa: ARG002 - the engine's call
        """Delete what is kept for a time only, and see that nothing waits without a job."""
        await sweep(self.database, rederive=self.duties.rederiving is not None)

    async def erase(self, scope_id: int, receipt: str) -> None:
        """Go on with the erasure of a user; the number is the first that a scope of the tenant could have."""
        if self.duties.erasing is not None:
            await self.duties.erasing(tenant_of(scope_id), UUID(receipt))

    def _embedder(self) -> Embedder:
        if self.embedder is None:
            raise EmbedderError("This worker has no embedder; another worker may have one.")
        return self.embedder


async def keep_reason(database: Database, call_next: AsyncCallNext, context: JobContext, _worker: Worker) -> None:
    """Run a job, and store why it failed; only messages of our own errors certainly quote no content."""
    try:
        with (
            span("job", f"job {context.job.task_name}") as traced,
            working_in(find_bucket(context.job)),
            folding_by(await find_version(database, context.job)),
        ):
            traced.note(job_id=context.job.id or 0, attempt=context.job.attempts)
            await call_next()
    except MovedError:
        return  # What it was for has gone to another server, which has a job of its own for it.
    except LeaseLostError:
        raise  # The job belongs to another run now, and so does its outcome.
    except WakingError as met:
        await defer_waking(database, met.scope_id)
        raise
    except Exception as problem:
        reason = str(problem).partition("\n")[0] if isinstance(problem, RecollectError) else type(problem).__name__
        with suppress(RecollectError):
            await jobs.note_failure(database, context.job.id or 0, reason)
        raise


def find_bucket(job: Job) -> int | None:
    """Find out for which bucket a job is; None if it is for all that a server has, of a tenant or of all."""
    scope_id = job.task_kwargs.get("scope_id")
    return bucket_of_number(scope_id) if isinstance(scope_id, int) and job.task_name not in OF_TENANTS else None


async def find_version(database: Database, job: Job) -> int:
    """Find out how the scope of a job folds texts, if the job stores any."""
    scope_id = job.task_kwargs.get("scope_id")
    if job.task_name not in FOLDING or not isinstance(scope_id, int):
        return NEWEST
    return await read_text_version(database, scope_id)


def build_app(dsn: str, database: Database, embedder: Embedder | None, batch: int, duties: Duties = IDLE) -> App:
    """Build the job engine with the tasks it can run."""
    # Unprepared: nobody handles the error of a statement that a pooler has lost inside the engine.
    kwargs = {"prepare_threshold": None, **CONNECTION_TIMEOUTS}
    connector = PsycopgConnector(conninfo=dsn, kwargs=kwargs, configure=commit_at_once, min_size=1, max_size=4)
    app = App(connector=connector)
    app.job_manager = GuardedJobManager(connector)
    tasks, mirroring = Tasks(app, database, embedder, batch, duties), MirrorTasks(database, duties.mirrors)
    retry = RetryPolicy()
    around: list[TaskMiddleware] = [partial(keep_reason, database)]
    leased: dict[str, Callable[..., Awaitable[None]]] = {
        "embed": tasks.embed,
        "enrich": tasks.enrich,
        "fade": tasks.fade,
        "fill": tasks.fill,
        "reflect": tasks.reflect,
        "sync_state": tasks.sync_state,
    }
    for name, task in leased.items():
        app.task(name=name, queue=name, retry=retry, task_middleware=around, pass_context=True)(task)
    app.task(name="erase", queue="erase", retry=retry, task_middleware=around)(tasks.erase)
    app.task(name="fold", queue="fold", retry=retry, task_middleware=around)(tasks.fold)
    app.task(name="mirror", queue="mirror", retry=retry, task_middleware=around)(mirroring.follow)
    app.task(name="rederive", queue="rederive", retry=retry, task_middleware=around)(tasks.rederive)
    moving = ColdTasks(database, duties.cold, duties.rules)
    app.task(name="freeze", queue="freeze", retry=retry, task_middleware=around)(moving.freeze)
    app.task(name="wake", queue="wake", retry=retry, task_middleware=around)(moving.wake)
    schedule(app, "freeze_daily", "7 4 * * *", moving.freeze_daily)
    schedule(app, "resume_stalled", duties.pulse.look_at, tasks.resume_stalled)
    schedule(app, CHECK, "* * * * * */30", mirroring.check, lock=CHECK)
    schedule(app, "sweep", "17 * * * *", tasks.sweep)
    schedule(app, "retain", "41 * * * *", tasks.retain)
    schedule(app, "close_silent", "*/5 * * * *", tasks.close_silent)
    schedule(app, "fade_daily", "23 3 * * *", tasks.fade_daily)
    return app


async def run_worker(
    make_app: Callable[[], App],
    concurrency: int,
    *,
    until: Callable[[], Awaitable[bool]] | None = None,
    pulse: Pulse = USUAL_PULSE,
    stop_seconds: float = STOP_SECONDS,
) -> None:
    """Work until cancelled, or through what is there until told to stop; a cancelled worker finishes what it began.

    The engine stops without a word when its connection breaks, and one that does not wait passes by what was enqueued
    behind a running job: so it is started again.
    """
    while True:
        reason = "ended"
        try:
            app = make_app()
            worker = SteadyWorker(
                app,
                concurrency=concurrency,
                wait=until is None,
                install_signal_handlers=False,
                update_heartbeat_interval=pulse.heartbeat_seconds,
                stalled_worker_timeout=pulse.stalled_seconds,
                fetch_job_polling_interval=1.0,
                # A finished job is recorded by what it wrote; its row would only slow down queries for others.
                delete_jobs="successful",
                # A worker that stops when nothing is left to begin must not cancel what it has begun.
                shutdown_graceful_timeout=stop_seconds if until is None else DAY_SECONDS,
            )
            await run_to_end(worker, asyncio.create_task(run_engine(app, worker)))
            if until is not None:
                if await until():
                    return
                continue
        except (ConnectorException, *UNAVAILABLE) as problem:
            cause = problem.__cause__
            reason = describe(cause if isinstance(cause, Exception) else problem)
        LOG.warning(json.dumps({"event": "worker_restarts", "error": reason}))
        await asyncio.sleep(RESTART_SECONDS)


async def run_engine(app: App, worker: Worker) -> None:
    """Run the engine on connections of its own, which are closed however it ends."""
    try:
        await app.open_async()
        await worker.run()  # type: ignore[no-untyped-call]
    finally:
        await app.close_async()


async def run_to_end(worker: Worker, engine: asyncio.Task[None]) -> None:
    """Wait for the engine; if we are cancelled, stop it and wait until it has ended.

    It may miss a cancellation: `asyncio.wait_for` of Python 3.11 drops one that comes together with what it waits for,
    and the driver uses it. So the engine is told to stop, again and again, because its start forgets it once.
    """
    try:
        await asyncio.wait([engine])
    except asyncio.CancelledError:
        engine.cancel()
        while not engine.done():
            worker.stop()  # type: ignore[no-untyped-call]
            await asyncio.wait([engine], timeout=RESTART_SECONDS)
        if not engine.cancelled():
            engine.exception()  # If the database is unavailable, it ends so; nobody waits for it any more.
        raise
    engine.result()
