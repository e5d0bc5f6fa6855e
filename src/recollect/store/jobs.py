"""Put work off in the transaction of the write that needs it: no commit, no job; and see what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from recollect.store.db import Connection, Database
from recollect.store.sql import load_queries

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Backlog:
    """Jobs of one task that wait, run or have failed for one reason."""

    task: str
    state: str
    jobs: int
    newest: int
    attempts: int
    reason: str
    """Why they failed the last time, if they did."""
    failed_at: datetime | None


async def defer(connection: Connection, task: str, lock: str, arguments: Mapping[str, int]) -> None:
    """Enqueue a job unless one with this lock is waiting already; jobs of one lock run one by one."""
    parameters = {"task": task, "lock": lock, "arguments": Jsonb(dict(arguments))}
    await connection.execute(QUERIES["defer"], parameters)


async def note_failure(database: Database, job_id: int, reason: str) -> None:
    """Keep why a job failed the last time."""
    async with database.transaction(None) as connection:
        await connection.execute(QUERIES["note_failure"], {"job_id": job_id, "reason": reason})


async def list_unfinished(database: Database) -> list[Backlog]:
    """List what waits, runs or has failed, by task and reason."""
    async with database.reading(None) as connection:
        rows = await (await connection.execute(QUERIES["unfinished"])).fetchall()
        return [Backlog(**row) for row in rows]


async def count_jobs(database: Database) -> list[tuple[str, str, int]]:
    """Count jobs by task and status."""
    async with database.reading(None) as connection:
        rows = await (await connection.execute(QUERIES["counts"])).fetchall()
        return [(row["task_name"], row["status"], row["jobs"]) for row in rows]
