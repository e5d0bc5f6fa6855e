"""Put work off in the transaction of the write that needs it: no commit, no job."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg.types.json import Jsonb

from recollect.store.db import Connection, Database
from recollect.store.sql import load_queries

QUERIES = load_queries(__file__)


async def defer(connection: Connection, task: str, lock: str, arguments: Mapping[str, int]) -> None:
    """Enqueue a job unless one with this lock is waiting already; jobs of one lock run one by one."""
    parameters = {"task": task, "lock": lock, "arguments": Jsonb(dict(arguments))}
    await connection.execute(QUERIES["defer"], parameters)


async def count_jobs(database: Database) -> list[tuple[str, str, int]]:
    """Count jobs by task and status."""
    async with database.reading(None) as connection:
        rows = await (await connection.execute(QUERIES["counts"])).fetchall()
        return [(row["task_name"], row["status"], row["jobs"]) for row in rows]
