"""Wait for what happens, never for time to pass: a busy machine takes its own."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import replace

from recollect.store.database.pool import Database

WAIT_SECONDS = 60
"""No test is about this limit; it only ends one that would wait for ever."""
BLOCKED = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


async def until(happened):
    """Wait for what tells nobody when it has happened."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not happened():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.005)


def blocked(owner):
    """Count who waits for a lock in the owner's database."""
    return owner.execute(BLOCKED).fetchone()[0]


async def until_blocked(owner, task):
    """Wait until a task has come to where it waits for a lock."""
    await until(lambda: task.done() or blocked(owner))
    assert not task.done(), "it did not wait"


def hurry(recollect, seconds):
    """Give the same service with so little time for a request; what comes before or after may take its own."""
    database = recollect.parts.database
    parts = replace(recollect.parts, database=Database(database._pool, seconds, database._preparing))
    return replace(
        recollect, parts=parts, settings=recollect.settings.model_copy(update={"request_timeout_seconds": seconds})
    )


@asynccontextmanager
async def heartbeat():
    """Gather how much the event loop worked between two moments in which it could serve others.

    It is the work of its own thread, in seconds: a clock would count what else the machine does, too.
    """
    gaps = [0.0]

    async def beat():
        while True:
            worked = time.thread_time()
            await asyncio.sleep(0.001)
            gaps.append(time.thread_time() - worked)

    beating = asyncio.create_task(beat())
    await asyncio.sleep(0.002)
    yield gaps
    await asyncio.sleep(0.002)
    beating.cancel()
