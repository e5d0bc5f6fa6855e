"""Which job a worker takes next, by turns of tenants; and a worker that lost a job cannot end it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from procrastinate import JobContext
from procrastinate.jobs import Job, JobInserted, Status
from procrastinate.manager import JobManager, NotificationCallback, get_channel_for_queues

from recollect.store.service.jobs import QUERIES, Lease

HINT: JobInserted = {"type": "job_inserted", "job_id": 0}


def lease_of(context: JobContext) -> Lease:
    """Return the lease of the run that a task is called for."""
    return Lease(context.job.id or 0, context.job.attempts)


class GuardedJobManager(JobManager):
    """The engine's job manager, which otherwise takes the oldest job, and ends one even if another run has it."""

    taken_for = -1
    """The tenant whose job was taken last; that of the next one has a higher number, or the lowest."""

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """Take the next job, of another tenant than the last one if others wait."""
        asked = {"worker_id": worker_id, "after": self.taken_for, "queues": None if queues is None else list(queues)}
        rows = await self.connector.execute_query_all_async(QUERIES["take"], **asked)
        for row in rows:
            self.taken_for = int(row.pop("tenant_id"))
            return Job.from_row(row)
        return None

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:  # noqa: FBT001 - the engine's call
        """End a job, unless another run has it."""
        await self.connector.execute_query_async(
            QUERIES["finish"], job_id=job.id, attempt=job.attempts, status=status.value, delete_job=delete_job
        )

    async def retry_job(
        self,
        job: Job,
        retry_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        """Put a job back, unless another run has it; the time until its retry is sent, as clocks may differ."""
        moved = {"priority": priority, "queue": queue, "lock": lock}
        seconds = (retry_at - datetime.now(UTC)).total_seconds() if retry_at else 0.0
        await self.connector.execute_query_async(
            QUERIES["retry_held"], job_id=job.id, attempt=job.attempts, seconds=seconds, **moved
        )

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        """Take every notification for a hint that there are jobs, and for nothing else.

        Whoever may log in to the database can notify, with any text. The engine would end jobs by it.
        """

        async def look(*, channel: str, payload: str) -> None:  # noqa: ARG001 - the driver's call
            await on_notification(channel=channel, notification=HINT)

        await self.connector.listen_notify(on_notification=look, channels=get_channel_for_queues(queues=queues))
