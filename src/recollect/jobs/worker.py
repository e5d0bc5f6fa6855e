"""Run jobs from the same PostgreSQL: in order per lock, retried with patience, resumed after a crash."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status

from recollect.errors import EmbedderError, UnavailableError
from recollect.jobs.embed import active_space, embed_pending, fill_space
from recollect.llm.embedder import Embedder, serves
from recollect.store import memories, scopes, spaces
from recollect.store.db import AWAY, PATIENCE, Database

HEARTBEAT_SECONDS = 5.0
STALLED_SECONDS = 20.0
LONGEST_WAIT_SECONDS = 30
MOST_ATTEMPTS = 8
KEYS_KEPT = "2 days"
RESTART_SECONDS = 1.0
LOG = logging.getLogger("recollect.worker")


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


@dataclass(frozen=True, slots=True)
class Tasks:
    """What the worker can do, each by its name."""

    app: App
    database: Database
    embedder: Embedder | None
    batch: int

    async def embed(self, scope_id: int) -> None:
        """Give a scope's memories the vectors they wait for."""
        await embed_pending(self.database, self._embedder(), self.batch, scope_id)

    async def fill(self, space_id: int) -> None:
        """Fill the active space with what was remembered before it."""
        space = await active_space(self.database)
        if space is not None and space.id == space_id and serves(self._embedder(), space):
            await fill_space(self.database, self._embedder(), self.batch, space)

    async def resume_stalled(self, _context: JobContext, timestamp: int) -> None:  # noqa: ARG002 - the engine's call
        """Take up jobs whose worker died; one that outlived too many workers is given up."""
        for job in await self.app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS):
            if job.attempts >= MOST_ATTEMPTS:
                await self.app.job_manager.finish_job(job, Status.FAILED, delete_job=False)
            else:
                await self.app.job_manager.retry_job(job)

    async def sweep(self, _context: JobContext, timestamp: int) -> None:  # noqa: ARG002 - the engine's call
        """Forget what is kept for a time only, and see that nothing waits without a job."""
        for tenant_id in await scopes.list_tenants(self.database):
            await memories.forget_old_keys(self.database, tenant_id, KEYS_KEPT)
            await spaces.revive_pending(self.database, tenant_id)
        await self.app.job_manager.delete_old_jobs(nb_hours=24)

    def _embedder(self) -> Embedder:
        if self.embedder is None:
            raise EmbedderError("This worker has no embedder; another worker may have one.")
        return self.embedder


def build_app(dsn: str, database: Database, embedder: Embedder | None, batch: int) -> App:
    """Join the job engine with the tasks it can run."""
    kwargs = {"prepare_threshold": None, **PATIENCE}
    app = App(connector=PsycopgConnector(conninfo=dsn, kwargs=kwargs, min_size=1, max_size=4))
    tasks = Tasks(app, database, embedder, batch)
    app.task(name="embed", queue="embed", retry=Patience())(tasks.embed)
    app.task(name="fill", queue="fill", retry=Patience())(tasks.fill)
    schedule(app, "resume_stalled", "*/10 * * * * *", tasks.resume_stalled)
    schedule(app, "sweep", "17 * * * *", tasks.sweep)
    return app


def schedule(app: App, name: str, cron: str, task: Callable[..., Awaitable[None]]) -> None:
    """Register a task that runs by the clock, never twice at a time."""
    registered = app.task(name=name, queue=name, queueing_lock=name, pass_context=True)(task)
    app.periodic(cron=cron, periodic_id=name)(registered)


async def run_worker(make_app: Callable[[], App], concurrency: int, *, until_empty: bool = False) -> None:
    """Work until cancelled, or until nothing is left to do; a cancelled worker finishes what it began.

    The engine stops without a word when its connection breaks, so it is started again.
    """
    while True:
        with suppress(ConnectorException, *AWAY):
            app = make_app()
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
            if until_empty:
                return
        LOG.warning(json.dumps({"event": "worker_restarts"}))
        await asyncio.sleep(RESTART_SECONDS)
