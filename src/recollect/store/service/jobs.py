"""Jobs in the database: queue, list, retry, and the leases of running ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import DictRow
from psycopg.sql import SQL
from psycopg.types.json import Jsonb

from recollect.errors import InvalidInputError, LeaseLostError
from recollect.models.service import Job, JobState, KeyBinding, Scope, TaskStatus
from recollect.store.database.pool import Connection, Database, load_queries

QUERIES = load_queries(__file__, of_scopes=SQL(load_queries(__file__)["of_scopes"]))
STATUSES = {JobState.WAITING: "todo", JobState.RUNNING: "doing", JobState.FAILED: "failed"}

EVERYWHERE = KeyBinding()
ID = re.compile(r"(?:([1-9][0-9]{0,4})-)?([1-9][0-9]{0,18})", re.ASCII)
MAX_INT, LAST_SHARD = 2**63 - 1, 2**15 - 1


@dataclass(frozen=True, slots=True)
class Lease:
    """A run of a job: another worker that takes the job over has another attempt."""

    job_id: int
    attempt: int


async def check_lease(connection: Connection, lease: Lease) -> None:
    """Check that a run still has its job, and lock it until the transaction ends; else raise LeaseLostError."""
    found = await connection.execute(QUERIES["hold"], {"job_id": lease.job_id, "attempt": lease.attempt})
    if await found.fetchone() is None:
        raise LeaseLostError("Another worker has taken over this job; this run wrote nothing.")


async def claim_effect(connection: Connection, lease: Lease, scope_id: int, key: str) -> bool:
    """Check the lease, and record an effect before it is written; False if it was written before."""
    await check_lease(connection, lease)
    parameters = {"scope_id": scope_id, "key": key, "job_id": lease.job_id}
    return await (await connection.execute(QUERIES["claim"], parameters)).fetchone() is not None


@dataclass(frozen=True, slots=True)
class Backlog:
    """Jobs of one task that wait, run or have failed for the same reason."""

    task: str
    state: str
    jobs: int
    newest: str
    attempts: int
    reason: str
    """The reason of their last failure, if they failed."""
    failed_at: datetime | None
    lag_seconds: float | None = None
    """How long the oldest one has been waiting."""
    done: int | None = None
    """The progress of jobs that take longer than a second."""
    total: int | None = None


@dataclass(frozen=True, slots=True)
class JobQuery:
    """Which jobs to find; None means any."""

    id: str | None = None
    task: str | None = None
    state: JobState | None = None
    bounds: KeyBinding = EVERYWHERE
    """Only jobs of the scopes of an agent, or of one user of it."""

    @property
    def of(self) -> dict[str, str | None]:
        """Return the parameters that name the scopes."""
        return {"agent": self.bounds.agent, "user": self.bounds.user}


def write_id(database: Database, number: int) -> str:
    """Return the public ID of a job: its number, after its server's if there are several servers."""
    return f"{database.shard}-{number}" if database.shard else str(number)


def read_id(job_id: str) -> tuple[int, int]:
    """Parse the server and number in a job's ID; invalid IDs return numbers that no job has."""
    parts = ID.fullmatch(job_id)
    if parts is None or int(parts[2]) > MAX_INT or int(parts[1] or 0) > LAST_SHARD:
        return 0, 0
    return int(parts[1] or 0), int(parts[2])


def name_job(database: Database, job_id: str | None) -> dict[str, int | None]:
    """Return the parameters with which a query finds one job; any job without an ID."""
    shard, number = read_id(job_id) if job_id is not None else (0, None)
    return {"shard": shard, "own": database.shard, "id": number}


async def defer(connection: Connection, task: str, lock: str, arguments: Mapping[str, int]) -> None:
    """Queue a job unless one with this lock is waiting already; jobs with the same lock run one at a time."""
    parameters = {"task": task, "lock": lock, "arguments": Jsonb(dict(arguments))}
    await connection.execute(QUERIES["defer"], parameters)


async def record_job_failure(database: Database, job_id: int, reason: str) -> None:
    """Store the reason of a job's last failure."""
    async with database.transaction(None) as connection:
        await connection.execute(QUERIES["record_job_failure"], {"job_id": job_id, "reason": reason})


async def fix_heartbeats(database: Database) -> None:
    """Correct heartbeats in the future, so that no dead worker seems alive after the clock was set back."""
    async with database.transaction(None) as connection:
        await connection.execute(QUERIES["fix_heartbeats"])


async def list_unfinished(database: Database) -> list[Backlog]:
    """List unfinished jobs by task and reason."""
    async with database.reading(None) as connection:
        rows = await (await connection.execute(QUERIES["unfinished"])).fetchall()
        for row in rows:
            row["newest"] = write_id(database, row["newest"])
        return [Backlog(**row) for row in rows]


async def find_jobs(
    database: Database, tenant_id: int, wanted: JobQuery, cursor: str | None = None, limit: int = 1
) -> list[Job]:
    """Find jobs of one tenant, newest first, before a cursor."""
    before = read_id(cursor)[1] if cursor is not None else None
    if before == 0:
        raise InvalidInputError("cursor must be the next_cursor of an earlier page")
    parameters: dict[str, object] = {"task": wanted.task, "cursor": before, "limit": limit}
    parameters |= {"status": STATUSES[wanted.state] if wanted.state else None, **wanted.of}
    parameters |= name_job(database, wanted.id)
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(QUERIES["find"], parameters)
    return [to_job(database, row) for row in await found.fetchall()]


def to_job(database: Database, row: DictRow) -> Job:
    """Convert a row of `find` to a job."""
    row["id"], row["state"] = write_id(database, row["id"]), JobState(row["state"])
    return Job(**row)


async def find_tenant(database: Database, job_id: str) -> int | None:
    """Return the tenant of a job; None if the job is unknown or has no tenant."""
    async with database.reading(None) as connection:
        found = await connection.execute(QUERIES["tenant"], name_job(database, job_id))
    row = await found.fetchone()
    return row["tenant_id"] if row else None


async def retry_failed(database: Database, tenant_id: int | None, wanted: JobQuery) -> list[str]:
    """Retry failed jobs of a tenant, or of all if none is named; return their IDs."""
    parameters = {"tenant_id": tenant_id, "task": wanted.task, **wanted.of, **name_job(database, wanted.id)}
    async with database.transaction(tenant_id) as connection:
        found = await connection.execute(QUERIES["retry"], parameters)
        return [write_id(database, row["id"]) for row in await found.fetchall()]


async def record_progress(database: Database, lease: Lease, done: int, total: int | None) -> None:
    """Store the progress of a run while it has its job."""
    parameters = {"job_id": lease.job_id, "attempt": lease.attempt, "done": done, "total": total}
    async with database.transaction(None) as connection:
        await connection.execute(QUERIES["record_progress"], parameters)


async def count_jobs(database: Database) -> list[tuple[str, str, int]]:
    """Count unfinished jobs by task and status."""
    async with database.reading(None) as connection:
        rows = await (await connection.execute(QUERIES["counts"])).fetchall()
        return [(row["task_name"], row["status"], row["jobs"]) for row in rows]


async def nothing_ready(database: Database) -> bool:
    """Return whether no job could start now."""
    async with database.reading(None) as connection:
        row = await (await connection.execute(QUERIES["ready"])).fetchone()
    return not (row and row["ready"])


async def any_busy(database: Database, scopes: Sequence[Scope]) -> bool:
    """Return whether a job of one of these scopes of one tenant runs, or could start now."""
    named = {"agents": [scope.agent for scope in scopes], "users": [scope.user for scope in scopes]}
    async with database.listing(scopes[0].tenant_id) as connection:
        row = await (await connection.execute(QUERIES["busy"], named)).fetchone()
    return bool(row and row["busy"])


async def defer_enrichment(connection: Connection, scope_id: int) -> None:
    """Queue the enrichment of a scope, unless a job for it is waiting already."""
    await defer(connection, "enrich", f"enrich:{scope_id}", {"scope_id": scope_id})


async def count_by_task(database: Database, tenant_id: int, bounds: KeyBinding) -> list[TaskStatus]:
    """Count the unfinished jobs of a tenant by task, within bounds."""
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(QUERIES["by_task"], JobQuery(bounds=bounds).of)
    return [TaskStatus(**row) for row in await found.fetchall()]
