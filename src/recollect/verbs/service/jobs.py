"""Jobs: list queued ones, retry failed ones, and wait until none is left."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

from recollect.core.service.permissions import check_right, check_unbound
from recollect.core.text.checks import check_limit, check_scope
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.service import Caller, Job, JobPage, JobState, KeyBinding, Right, Scope
from recollect.store.service import jobs
from recollect.store.service.jobs import Backlog, JobQuery
from recollect.store.shards.servers import Servers
from recollect.store.shards.tenants import Tenants
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recovery import recovered

MISSING = "No such job. Finished jobs are deleted."
BETWEEN = "."
"""Separates the parts of a cursor, if a tenant is on several servers."""
FIRST_LOOK_SECONDS, MAX_POLL_SECONDS = 0.02, 0.5


@dataclass(frozen=True, slots=True)
class JobControl:
    """The jobs of a tenant; for operators, of all tenants."""

    parts: Dependencies
    tenants: Tenants

    @recovered
    async def page(
        self,
        caller: Caller,
        state: JobState | None = None,
        task: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        bounds: KeyBinding = KeyBinding(),  # noqa: B008 - a frozen value
    ) -> JobPage:
        """List unfinished jobs of the caller's tenant, newest first; of some scopes if bounds are given."""
        require(caller, Right.READ)
        check_limit(limit)
        if state is JobState.SUCCEEDED:
            raise InvalidInputError("state must be waiting, running or failed; finished jobs are not listed")
        wanted = JobQuery(task=task, state=state, bounds=check_scopes(bounds))
        rows = await self._list(caller.tenant_id, wanted, cursor, limit + 1)
        return JobPage(tuple(job for _, job in rows[:limit]), rows[limit - 1][0] if len(rows) > limit else None)

    async def _list(self, tenant_id: int, wanted: JobQuery, cursor: str | None, limit: int) -> list[tuple[str, Job]]:
        """List jobs by parts of the tenant, newest of each first, with the cursors after them."""
        databases = await self.parts.servers.each(tenant_id)
        place, before = read_place(cursor, len(databases))
        found: list[tuple[str, Job]] = []
        for number, database in enumerate(databases[place:], place):
            page = await jobs.find_jobs(database, tenant_id, wanted, before, limit - len(found))
            found += [(f"{number}{BETWEEN}{job.id}" if len(databases) > 1 else job.id, job) for job in page]
            if len(found) >= limit:
                break
            before = None
        return found

    @recovered
    async def read_job(self, caller: Caller, job_id: str) -> Job:
        """Read one job of the caller's tenant; jobs of other tenants are not found."""
        require(caller, Right.READ)
        return await self._find(caller.tenant_id, job_id)

    @recovered
    async def retry(self, caller: Caller, job_id: str) -> Job:
        """Retry a failed job of the caller's tenant; other jobs stay unchanged."""
        require(caller, Right.ADMIN)
        found = await self._find(caller.tenant_id, job_id)
        retried = await self._retry(caller.tenant_id, JobQuery(job_id))
        try:
            return await self._find(caller.tenant_id, job_id)
        except NotFoundError:
            if found.state is JobState.FAILED and not retried:
                raise
            # It has run since then, and was deleted.
            return replace(found, state=JobState.SUCCEEDED, reason="", lag_seconds=None)

    @recovered
    async def retry_many(self, caller: Caller, task: str | None = None, bounds: KeyBinding | None = None) -> int:
        """Retry failed jobs of the caller's tenant, of one task or of some scopes if named; return how many."""
        require(caller, Right.ADMIN)
        wanted = JobQuery(task=task, bounds=check_scopes(bounds or KeyBinding()))
        return len(await self._retry(caller.tenant_id, wanted))

    async def counts(self) -> list[tuple[str, str, int]]:
        """Count the jobs of all tenants by task and status, for an operator."""
        counted = Counter[tuple[str, str]]()
        for _, task, status, number in await self.counts_by_server():
            counted[task, status] += number
        return [(task, status, number) for (task, status), number in sorted(counted.items())]

    async def counts_by_server(self) -> list[tuple[str, str, str, int]]:
        """Count the jobs of all tenants by server, task and status, for an operator."""
        servers = await self.parts.servers.answering()
        return [(each.name, *counted) for each in servers for counted in await jobs.count_jobs(each.database)]

    async def unfinished(self) -> list[Backlog]:
        """List unfinished jobs of all tenants by task and reason, for an operator."""
        return [
            each
            for server in await self.parts.servers.answering()
            for each in await jobs.list_unfinished(server.database)
        ]

    async def find_job_anywhere(self, job_id: str) -> Job:
        """Read a job of any scope, for an operator."""
        for server in await self.parts.servers.answering():
            tenant_id = await jobs.find_tenant(server.database, job_id)
            if tenant_id is not None:
                return await self._find(tenant_id, job_id)
        raise NotFoundError(MISSING)

    async def retry_all(
        self, task: str | None = None, job_id: str | None = None, tenant: str | None = None
    ) -> list[str]:
        """Retry failed jobs, of all tenants unless one is named, for an operator; return their IDs."""
        tenant_id = None if tenant is None else await self.tenants.find_tenant_number(tenant)
        if tenant_id is not None:
            return await self._retry(tenant_id, JobQuery(job_id, task))
        servers = await self.parts.servers.answering()
        return [each for one in servers for each in await jobs.retry_failed(one.database, None, JobQuery(job_id, task))]

    async def _find(self, tenant_id: int, job_id: str) -> Job:
        for database in await self.parts.servers.each(tenant_id):
            for job in await jobs.find_jobs(database, tenant_id, JobQuery(job_id)):
                return job
        raise NotFoundError(MISSING)

    async def _retry(self, tenant_id: int, wanted: JobQuery) -> list[str]:
        databases = await self.parts.servers.each(tenant_id)
        return [each for one in databases for each in await jobs.retry_failed(one, tenant_id, wanted)]


def read_place(cursor: str | None, parts: int) -> tuple[int, str | None]:
    """Decode the part of a tenant, and the job, at which a page of jobs starts."""
    if cursor is None or parts == 1:
        return 0, cursor
    place, between, before = cursor.partition(BETWEEN)
    if not between or place not in map(str, range(parts)):
        raise InvalidInputError("cursor must be the next_cursor of an earlier page")
    return int(place), before


def check_scopes(bounds: KeyBinding) -> KeyBinding:
    """Refuse invalid names of scopes, and a user without an agent."""
    if bounds.agent is not None:
        check_scope(bounds.agent, bounds.user or "")
    elif bounds.user is not None:
        raise InvalidInputError("user requires agent")
    return bounds


def require(caller: Caller, right: Right) -> None:
    """Raise ForbiddenError unless a caller has a right for the whole tenant."""
    check_unbound(caller)
    check_right(caller, right)


async def wait_for_jobs(servers: Servers, scopes: Collection[Scope], timeout_seconds: float | None) -> bool:
    """Poll until no job of these scopes is ready or runs; False if the time limit is reached first."""
    pause = FIRST_LOOK_SECONDS
    try:
        async with asyncio.timeout(timeout_seconds):
            while await any_busy(servers, scopes):
                await asyncio.sleep(pause)
                pause = min(2 * pause, MAX_POLL_SECONDS)
    except TimeoutError:
        return False
    return True


async def any_busy(servers: Servers, scopes: Collection[Scope]) -> bool:
    """Return whether a job of one of these scopes runs, or could start now."""
    for tenant_id in {scope.tenant_id for scope in scopes}:
        own = [scope for scope in scopes if scope.tenant_id == tenant_id]
        if any([await jobs.any_busy(each, own) for each in await servers.each(tenant_id)]):
            return True
    return False
