"""Jobs: list what was queued, retry what failed, and wait until nothing is left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, replace

from recollect.core.service.rights import check_right, check_unbound
from recollect.core.text.checks import check_limit, check_scope
from recollect.errors import InvalidInputError, NotFoundError, SetupError
from recollect.models.service import Bounds, Caller, Job, Jobs, JobState, Right, Scope
from recollect.store.database import ownership
from recollect.store.database.pool import Database
from recollect.store.service import jobs
from recollect.store.service.jobs import Backlog, JobQuery

MISSING = "There is no such job that waits, runs or has failed; one that has succeeded is deleted."
FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.02, 0.5


@dataclass(frozen=True, slots=True)
class JobControl:
    """Where a tenant sees its own jobs, and an operator all of them."""

    database: Database
    owner: str
    """The DSN of the owner of the tables: tenants' names are for operators only."""

    async def page(
        self,
        caller: Caller,
        state: JobState | None = None,
        task: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        bounds: Bounds = Bounds(),  # noqa: B008 - a frozen value
    ) -> Jobs:
        """List the jobs of the caller's tenant that wait, run or have failed, the newest first; of some scopes."""
        require(caller, Right.READ)
        check_limit(limit)
        if state is JobState.SUCCEEDED:
            raise InvalidInputError("state must be waiting, running or failed: what has succeeded is not listed")
        wanted = JobQuery(task=task, state=state, bounds=check_scopes(bounds))
        rows = await jobs.find_jobs(self.database, caller.tenant_id, wanted, cursor, limit + 1)
        return Jobs(tuple(rows[:limit]), rows[limit - 1].id if len(rows) > limit else None)

    async def read(self, caller: Caller, job_id: str) -> Job:
        """Read one job of the caller's tenant; one of another tenant is not found."""
        require(caller, Right.READ)
        return await self._find(caller.tenant_id, job_id)

    async def retry(self, caller: Caller, job_id: str) -> Job:
        """Retry a failed job of the caller's tenant; one that has not failed is left as it is."""
        require(caller, Right.ADMIN)
        found = await self._find(caller.tenant_id, job_id)
        retried = await jobs.retry_failed(self.database, caller.tenant_id, JobQuery(job_id))
        try:
            return await self._find(caller.tenant_id, job_id)
        except NotFoundError:
            if found.state is JobState.FAILED and not retried:
                raise
            # It ran meanwhile, and was deleted.
            return replace(found, state=JobState.SUCCEEDED, reason="", lag_seconds=None)

    async def retry_many(self, caller: Caller, task: str | None = None, bounds: Bounds | None = None) -> int:
        """Retry the failed jobs of the caller's tenant, of one task or of some scopes if named; return how many."""
        require(caller, Right.ADMIN)
        wanted = JobQuery(task=task, bounds=check_scopes(bounds or Bounds()))
        return len(await jobs.retry_failed(self.database, caller.tenant_id, wanted))

    async def counts(self) -> list[tuple[str, str, int]]:
        """Count the jobs of all tenants by task and status, as an operator."""
        return await jobs.count_jobs(self.database)

    async def unfinished(self) -> list[Backlog]:
        """List the jobs of all tenants that wait, run or have failed, by task and reason, as an operator."""
        return await jobs.list_unfinished(self.database)

    async def show(self, job_id: str) -> Job:
        """Read a job of any scope, as an operator."""
        tenant_id = await jobs.find_tenant(self.database, job_id)
        if tenant_id is None:
            raise NotFoundError(MISSING)
        return await self._find(tenant_id, job_id)

    async def retry_all(
        self, task: str | None = None, job_id: str | None = None, tenant: str | None = None
    ) -> list[str]:
        """Retry failed jobs, of all tenants unless one is named, for an operator; return their ids."""
        tenant_id = None if tenant is None else await self._number(tenant)
        return await jobs.retry_failed(self.database, tenant_id, JobQuery(job_id, task))

    async def _number(self, tenant: str) -> int:
        if not self.owner:
            raise SetupError("Set RECOLLECT_OWNER_DATABASE_URL: only the owner of the tables knows tenants by name.")
        number = await ownership.find_tenant(self.owner, tenant)
        if number is None:
            raise NotFoundError("There is no tenant of this name.")
        return number

    async def _find(self, tenant_id: int, job_id: str) -> Job:
        found = await jobs.find_jobs(self.database, tenant_id, JobQuery(job_id))
        if not found:
            raise NotFoundError(MISSING)
        return found[0]


def check_scopes(bounds: Bounds) -> Bounds:
    """Refuse names that no scope has, and a user without an agent."""
    if bounds.agent is not None:
        check_scope(bounds.agent, bounds.user or "")
    elif bounds.user is not None:
        raise InvalidInputError("name the agent, too: a user alone is no scope")
    return bounds


def require(caller: Caller, right: Right) -> None:
    """Raise ForbiddenError unless a caller has a right, and has it for the whole tenant."""
    check_unbound(caller)
    check_right(caller, right)


async def wait_for_jobs(database: Database, scopes: Collection[Scope], timeout_seconds: float | None) -> bool:
    """Look again and again until no job of these scopes is ready or runs; False if the time is over first."""
    pause = FIRST_LOOK_SECONDS
    try:
        async with asyncio.timeout(timeout_seconds):
            while await jobs.any_busy(database, scopes):
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_LOOK_SECONDS)
    except TimeoutError:
        return False
    return True
