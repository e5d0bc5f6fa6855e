"""Run jobs from the same PostgreSQL: in order per lock, retried with patience, resumed after a crash."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping

from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.jobs import Job

from recollect.errors import EmbedderError, UnavailableError
from recollect.jobs.embed import embed_pending
from recollect.llm.embedder import Embedder
from recollect.store import memories, scopes
from recollect.store.db import PATIENCE, Database

HEARTBEAT_SECONDS = 5.0
STALLED_SECONDS = 20.0
LONGEST_WAIT_SECONDS = 30
MOST_ATTEMPTS = 8
KEYS_KEPT = "2 days"


class Patience(BaseRetryStrategy):
    """Wait longer each time; give up only on what trying again cannot mend."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """Decide when a failed job runs again; a model or database that is away is waited for without end."""
        away = isinstance(exception, UnavailableError) or (
            isinstance(exception, EmbedderError) and not exception.lasting
        )
        if not away and job.attempts >= MOST_ATTEMPTS:
            return None
        longest = min(LONGEST_WAIT_SECONDS, 2 ** min(job.attempts, 10))
        return RetryDecision(retry_in={"seconds": max(1, round(longest * random.uniform(0.5, 1)))})  # noqa: S311


def build_app(dsn: str, database: Database, embedder: Embedder | None, batch: int) -> App:
    """Join the job engine with the tasks it can run."""
    app = App(
        connector=PsycopgConnector(conninfo=dsn, kwargs={"prepare_threshold": None, **PATIENCE}, min_size=1, max_size=4)
    )

    async def embed(scope_id: int) -> None:
        if embedder is None:
            raise EmbedderError("This worker has no embedder; another worker may have one.")
        await embed_pending(database, embedder, batch, scope_id)

    async def resume_stalled(_context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - the engine's signature
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS):
            await app.job_manager.retry_job(job)

    async def sweep(_context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - the engine's signature
        for tenant_id in await scopes.list_tenants(database):
            await memories.forget_old_keys(database, tenant_id, KEYS_KEPT)
        await app.job_manager.delete_old_jobs(nb_hours=24)

    tasks: Mapping[str, Callable[..., Awaitable[None]]] = {"embed": embed}
    for name, task in tasks.items():
        app.task(name=name, queue=name, retry=Patience())(task)
    schedule(app, "resume_stalled", "*/10 * * * * *", resume_stalled)
    schedule(app, "sweep", "17 3 * * *", sweep)
    return app


def schedule(app: App, name: str, cron: str, task: Callable[..., Awaitable[None]]) -> None:
    """Register a task that runs by the clock, never twice at a time."""
    registered = app.task(name=name, queue=name, queueing_lock=name, pass_context=True)(task)
    app.periodic(cron=cron, periodic_id=name)(registered)


async def run_worker(app: App, concurrency: int, *, until_empty: bool = False) -> None:
    """Work until cancelled, or until nothing is left to do; a cancelled worker finishes what it began."""
    async with app.open_async():
        await app.run_worker_async(
            concurrency=concurrency,
            wait=not until_empty,
            install_signal_handlers=False,
            update_heartbeat_interval=HEARTBEAT_SECONDS,
            stalled_worker_timeout=STALLED_SECONDS,
            fetch_job_polling_interval=1.0,
            shutdown_graceful_timeout=10,
        )
