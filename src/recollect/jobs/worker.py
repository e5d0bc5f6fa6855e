"""Run jobs from the same PostgreSQL: in order per lock, retried with growing pauses, resumed after a crash."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.middleware import AsyncCallNext, TaskMiddleware
from procrastinate.worker import Worker

from recollect.core.conversations.retention import RetentionRules
from recollect.core.knowledge.segments import DEFAULT
from recollect.core.service.numbers import bucket_of_number, tenant_of
from recollect.errors import (
    BudgetError,
    EmbedderError,
    LeaseLostError,
    RecollectError,
    ScopeMovedError,
    ScopeRestoringError,
)
from recollect.jobs.clock import DEFAULT_HEARTBEAT, ClockSafeWorker, HeartbeatConfig, schedule
from recollect.jobs.cold import ColdTasks
from recollect.jobs.embed import active_space, embed_pending, fill_space
from recollect.jobs.enrich import ReflectionJob, close_silent, embed_first, rederive_scope, reflect_scope
from recollect.jobs.lease import GuardedJobManager, lease_of
from recollect.jobs.maintenance import RetentionPass, delete_expired, retain, sync_scope
from recollect.jobs.mirror import CHECK, MirrorTasks
from recollect.jobs.progress import reporting
from recollect.llm.embedder import Embedder, serves
from recollect.store.cold.tiers import defer_waking
from recollect.store.conversations import lifecycle
from recollect.store.database.calls import restrict_bucket
from recollect.store.database.errors import UNAVAILABLE, describe_database_error
from recollect.store.database.pool import CONNECTION_TIMEOUTS, Database, commit_at_once
from recollect.store.knowledge import segments
from recollect.store.memories import accesses, embeddings
from recollect.store.service import jobs, maintenance
from recollect.tracing import span
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.erase import defer_erasure
from recollect.verbs.knowledge.enrich import enrich

MAX_WAIT_SECONDS = 30
SPREAD_SECONDS = 300
MAX_ATTEMPTS = 8
WORKERS_CRASHED = "Every worker that ran this job crashed."
RESTART_SECONDS = 1.0
STOP_SECONDS, DAY_SECONDS = 10.0, 86_400.0
OF_TENANTS = frozenset({"erase", "mirror"})
"""Jobs for all data of a tenant on a server, or more: their scope is the first possible number of a scope there."""
LOG = logging.getLogger("recollect.worker")


class RetryPolicy(BaseRetryStrategy):
    """Wait longer each time; give up only if a retry cannot help."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """Decide when a failed job runs again; retries for an unavailable model or database have no limit."""
        if isinstance(exception, asyncio.CancelledError):
            # The worker stops, not because of the job: another worker may take it at once.
            return RetryDecision(retry_in={"seconds": 0})
        if isinstance(exception, BudgetError):
            # Jobs that waited for the next day must not all start in the same second.
            spread = timedelta(seconds=random.uniform(0, SPREAD_SECONDS))  # noqa: S311
            return RetryDecision(retry_at=exception.until + spread)
        unavailable = isinstance(exception, RecollectError) and exception.unavailable
        if not unavailable and job.attempts >= MAX_ATTEMPTS:
            return None
        longest = min(MAX_WAIT_SECONDS, 2 ** min(job.attempts, 10))
        return RetryDecision(retry_in={"seconds": max(1, round(longest * random.uniform(0.5, 1)))})  # noqa: S311


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of a worker."""

    rules: RetentionRules = field(default_factory=RetentionRules)
    pulse: HeartbeatConfig = DEFAULT_HEARTBEAT
    cold_after_days: float = 0.0
    """Days without use after which a scope moves to object storage; 0 = never."""


IDLE = WorkerOptions()


def cuts_segments(parts: Dependencies) -> bool:
    """Return whether conversations are cut into segments here."""
    return "segment" in parts.steps


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of the worker, each by its name."""

    app: App
    parts: Dependencies
    duties: WorkerOptions

    async def embed(self, context: JobContext, scope_id: int) -> None:
        """Embed a scope's memories that wait for a vector."""
        remaining = partial(embeddings.count_pending, self.parts.database, scope_id)
        async with reporting(self.parts.database, lease_of(context), remaining) as counter:
            await embed_pending(
                self.parts.database, self._embedder(), self.parts.options.embed_batch, scope_id, counter.set_total
            )

    async def enrich(self, context: JobContext, scope_id: int) -> None:
        """Cut a scope's conversations into segments, and extract knowledge from closed ones."""
        if not cuts_segments(self.parts):
            return
        await embed_first(self.parts, scope_id)
        remaining = partial(segments.count_closed, self.parts.database, scope_id)
        async with reporting(self.parts.database, lease_of(context), remaining) as counter:
            await enrich(self.parts, scope_id, lease_of(context), counter.set_total)

    async def close_silent(self, _context: JobContext, timestamp: int) -> None:  # noqa: ARG002 - the engine's call
        """Find silent conversations, and segments that wait without a job."""
        if cuts_segments(self.parts):
            await close_silent(self.parts.database, DEFAULT.idle_minutes)

    async def fill(self, context: JobContext, space_id: int) -> None:
        """Fill the active space with vectors of memories that are older than it."""
        space = await active_space(self.parts.database)
        if space is not None and space.id == space_id and serves(self._embedder(), space):
            async with reporting(self.parts.database, lease_of(context)) as counter:
                await fill_space(
                    self.parts.database, self._embedder(), self.parts.options.embed_batch, space, counter.set_total
                )

    async def fold(self, scope_id: int) -> None:
        """Fold a scope's log of accesses into one row per memory."""
        await accesses.fold(self.parts.database, [scope_id])

    async def reflect(self, context: JobContext, scope_id: int, count: int, now: str | None = None) -> None:
        """Reflect on the newest memories of a scope."""
        job = ReflectionJob(context.job.id or 0, scope_id, count, datetime.fromisoformat(now) if now else None)
        await reflect_scope(self.parts, job)

    async def sync_state(self, context: JobContext, scope_id: int) -> None:
        """Update the memories of a scope to the states of its conversations."""
        rederive = self.parts.chat is not None
        remaining = partial(lifecycle.count_unsynced, self.parts.database, scope_id)
        async with reporting(self.parts.database, lease_of(context), remaining) as counter:
            await sync_scope(self.parts.database, scope_id, rederive=rederive, report=counter.count_more)

    async def rederive(self, scope_id: int) -> None:
        """Derive again memories of a scope that lost some of their evidence."""
        await rederive_scope(self.parts, scope_id)

    async def fade(self, context: JobContext, scope_id: int) -> None:
        """Fade memories of a scope."""
        await RetentionPass(self.parts.database, scope_id).run(self.parts.options.fading_days, lease_of(context))

    async def fade_daily(self, _context: JobContext, timestamp: int) -> None:  # noqa: ARG002 - the engine's call
        """Queue a job once a day for each scope whose agent lets memories fade."""
        await maintenance.defer_due(self.parts.database, "fade", usual=self.parts.options.fading_days)

    async def retain(self, _context: JobContext, timestamp: int) -> None:  # noqa: ARG002 - the engine's call
        """Change the state of conversations that were not used for long."""
        await retain(self.parts.database, self.duties.rules)

    async def resume_stalled(self, _context: JobContext, timestamp: int) -> None:  # noqa: ARG002 - the engine's call
        """Restart jobs of dead workers; give up a job after too many dead workers."""
        limit = self.duties.pulse.stalled_seconds
        await jobs.fix_heartbeats(self.parts.database)
        for job in await self.app.job_manager.get_stalled_jobs(seconds_since_heartbeat=limit):
            if job.queueing_lock is not None:
                # A periodic task is queued again later, and may be waiting already.
                await self.app.job_manager.finish_job(job, Status.FAILED, delete_job=True)
            elif job.attempts >= MAX_ATTEMPTS:
                await jobs.record_job_failure(self.parts.database, job.id or 0, WORKERS_CRASHED)
                await self.app.job_manager.finish_job(job, Status.FAILED, delete_job=False)
            else:
                await self.app.job_manager.retry_job(job)

    async def delete_expired(self, _context: JobContext, timestamp: int) -> None:  # noqa: ARG002 - the engine's call
        """Delete data after its time limit, and queue jobs for all waiting work."""
        await delete_expired(self.parts.database, rederive=self.parts.chat is not None)

    async def erase(self, scope_id: int, receipt: str) -> None:
        """Resume the erasure of a user; the number is the first possible one of the tenant's scopes."""
        await defer_erasure(self.parts, tenant_of(scope_id), UUID(receipt))

    def _embedder(self) -> Embedder:
        if self.parts.embedder is None:
            raise EmbedderError("This worker has no embedder; another worker may have one.")
        return self.parts.embedder


async def record_failure(database: Database, call_next: AsyncCallNext, context: JobContext, _worker: Worker) -> None:
    """Run a job, and store why it failed; only our own error messages never quote content."""
    try:
        with (
            span("job", f"job {context.job.task_name}") as traced,
            restrict_bucket(find_bucket(context.job)),
        ):
            traced.note(job_id=context.job.id or 0, attempt=context.job.attempts)
            await call_next()
    except ScopeMovedError:
        return  # Its data has moved to another server, which has a separate job for it.
    except LeaseLostError:
        raise  # The job and its outcome belong to another run now.
    except ScopeRestoringError as met:
        await defer_waking(database, met.scope_id)
        raise
    except Exception as problem:
        reason = str(problem).partition("\n")[0] if isinstance(problem, RecollectError) else type(problem).__name__
        with suppress(RecollectError):
            await jobs.record_job_failure(database, context.job.id or 0, reason)
        raise


def find_bucket(job: Job) -> int | None:
    """Find the bucket of a job; None if it is for all data of a tenant, or of a server."""
    scope_id = job.task_kwargs.get("scope_id")
    return bucket_of_number(scope_id) if isinstance(scope_id, int) and job.task_name not in OF_TENANTS else None


def build_app(parts: Dependencies, duties: WorkerOptions = IDLE) -> App:
    """Build the job engine with the tasks that it can run."""
    # Not prepared: nothing handles the error if a pooler loses a statement inside the engine.
    kwargs = {"prepare_threshold": None, **CONNECTION_TIMEOUTS}
    database = parts.database
    configure = partial(commit_at_once, database.server)
    connector = PsycopgConnector(conninfo=database.direct, kwargs=kwargs, configure=configure, min_size=1, max_size=4)
    app = App(connector=connector)
    app.job_manager = GuardedJobManager(connector)
    tasks, mirroring = Tasks(app, parts, duties), MirrorTasks(database, parts.mirrors)
    moving = ColdTasks(parts, duties.cold_after_days, duties.rules)
    around: list[TaskMiddleware] = [partial(record_failure, database)]
    retry = RetryPolicy()
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
    plain: dict[str, Callable[..., Awaitable[None]]] = {
        "erase": tasks.erase,
        "fold": tasks.fold,
        "freeze": moving.freeze,
        "mirror": mirroring.feed_mirrors,
        "rederive": tasks.rederive,
        "wake": moving.wake,
    }
    for name, run in plain.items():
        app.task(name=name, queue=name, retry=retry, task_middleware=around)(run)
    schedule(app, "freeze_daily", "7 4 * * *", moving.freeze_daily)
    schedule(app, "resume_stalled", duties.pulse.look_at, tasks.resume_stalled)
    schedule(app, CHECK, "* * * * * */30", mirroring.check, lock=CHECK)
    schedule(app, "sweep", "17 * * * *", tasks.delete_expired)
    schedule(app, "retain", "41 * * * *", tasks.retain)
    schedule(app, "close_silent", "*/5 * * * *", tasks.close_silent)
    schedule(app, "fade_daily", "23 3 * * *", tasks.fade_daily)
    return app


async def run_worker(
    make_app: Callable[[], App],
    concurrency: int,
    *,
    until: Callable[[], Awaitable[bool]] | None = None,
    pulse: HeartbeatConfig = DEFAULT_HEARTBEAT,
    stop_seconds: float = STOP_SECONDS,
) -> None:
    """Work until cancelled, or until no job is ready if `until` is given; a cancelled worker finishes running jobs.

    The engine stops silently when its connection breaks. Without waiting for new jobs, it misses jobs that were queued
    behind a running one. So it is started again.
    """
    while True:
        reason = "ended"
        try:
            app = make_app()
            if until is None and isinstance(app.job_manager, GuardedJobManager):
                # The chat model may hang: other tenants have a slot left, unless there is only one.
                app.job_manager.most_chats = max(1, concurrency - 1)
            worker = ClockSafeWorker(
                app,
                concurrency=concurrency,
                wait=until is None,
                install_signal_handlers=False,
                update_heartbeat_interval=pulse.heartbeat_seconds,
                stalled_worker_timeout=pulse.stalled_seconds,
                fetch_job_polling_interval=1.0,
                # The effects of a finished job record it; its row would only slow down other queries.
                delete_jobs="successful",
                # A worker that stops when no job can start must not cancel running jobs.
                shutdown_graceful_timeout=stop_seconds if until is None else DAY_SECONDS,
            )
            await run_to_end(worker, asyncio.create_task(run_engine(app, worker)))
            if until is not None:
                if await until():
                    return
                continue
        except (ConnectorException, *UNAVAILABLE) as problem:
            cause = problem.__cause__
            reason = describe_database_error(cause if isinstance(cause, Exception) else problem)
        LOG.warning(json.dumps({"event": "worker_restarted", "error": reason}))
        await asyncio.sleep(RESTART_SECONDS)


async def run_engine(app: App, worker: Worker) -> None:
    """Run the engine on separate connections, and close them when it ends."""
    try:
        await app.open_async()
        await worker.run()  # type: ignore[no-untyped-call]
    finally:
        await app.close_async()


async def run_to_end(worker: Worker, engine: asyncio.Task[None]) -> None:
    """Wait for the engine; if we are cancelled, stop it and wait until it has ended.

    It may miss a cancellation: `asyncio.wait_for` of Python 3.11 drops one that arrives together with the awaited
    result, and the driver uses it. So the engine is stopped repeatedly, because its start resets the first stop.
    """
    try:
        await asyncio.wait([engine])
    except asyncio.CancelledError:
        engine.cancel()
        while not engine.done():
            worker.stop()  # type: ignore[no-untyped-call]
            await asyncio.wait([engine], timeout=RESTART_SECONDS)
        if not engine.cancelled():
            engine.exception()  # It ends with this error if the database is unavailable; nobody reads it.
        raise
    engine.result()
