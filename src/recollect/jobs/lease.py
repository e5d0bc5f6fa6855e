"""Choose the next job of a worker, tenants in turn; a worker that lost a job cannot finish it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from functools import partial

from procrastinate import JobContext
from procrastinate.jobs import Job, JobInserted, Status
from procrastinate.manager import JobManager, NotificationCallback, get_channel_for_queues

from recollect.store.service.jobs import QUERIES, Lease

CHATTING = frozenset({"enrich", "reflect", "rederive"})
"""Jobs that ask the chat model (see `waits_for_chat`); they first read the text rules of their scope."""
HINT: JobInserted = {"type": "job_inserted", "job_id": 0}


def lease_of(context: JobContext) -> Lease:
    """Return the lease of the run that a task is called for."""
    return Lease(context.job.id or 0, context.job.attempts)


class GuardedJobManager(JobManager):
    """A job manager that takes jobs of tenants in turn, and ends a job only if its run still has it.

    The engine's manager takes the oldest job, and ends one even if another run has it.
    """

    taken_for = -1
    """The tenant of the last job; the next one has a higher number, or the lowest."""
    most_chats: int | None = None
    """Maximum number of jobs of one tenant that wait for the chat model at a time; None means no limit."""
    _look: Callable[[], Awaitable[None]] | None = None
    _found = True

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """Fetch the next job, of another tenant than the last one if others wait."""
        asked = {"worker_id": worker_id, "after": self.taken_for, "queues": None if queues is None else list(queues)}
        asked["most_chats"] = self.most_chats
        rows = await self.connector.execute_query_all_async(QUERIES["take"], **asked)
        self._found = bool(rows)
        for row in rows:
            self.taken_for = int(row.pop("tenant_id"))
            return Job.from_row(row)
        return None

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:  # noqa: FBT001 - the engine's call
        """Finish a job, unless another run has it."""
        await self.connector.execute_query_async(
            QUERIES["finish"], job_id=job.id, attempt=job.attempts, status=status.value, delete_job=delete_job
        )
        await self._look_again(job)

    async def retry_job(
        self,
        job: Job,
        retry_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        """Queue a job again, unless another run has it; send the time until its retry, as clocks may differ."""
        moved = {"priority": priority, "queue": queue, "lock": lock}
        seconds = (retry_at - datetime.now(UTC)).total_seconds() if retry_at else 0.0
        await self.connector.execute_query_async(
            QUERIES["retry_held"], job_id=job.id, attempt=job.attempts, seconds=seconds, **moved
        )
        await self._look_again(job)

    async def _look_again(self, ended: Job) -> None:
        """Have the worker look for jobs if it found none: one may have waited for the end of this one."""
        if self._look is not None and not self._found and ended.task_name in CHATTING:
            await self._look()

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        """Treat every notification only as a hint that there are jobs.

        Every role with access to the database can notify, with any text. The engine would end jobs because of it.
        """

        async def look(*, channel: str, payload: str) -> None:  # noqa: ARG001 - the driver's call
            await on_notification(channel=channel, notification=HINT)

        self._look = partial(look, channel="", payload="")
        await self.connector.listen_notify(on_notification=look, channels=get_channel_for_queues(queues=queues))
