"""Record the progress of a running job: at most once a second, and not at all for a shorter one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

from recollect.errors import RecollectError
from recollect.store.database.pool import Database
from recollect.store.service import jobs
from recollect.store.service.jobs import Lease

SECONDS = 1.0
Remaining: TypeAlias = Callable[[], Awaitable[int | None]]
"""Count what is left to do; None where it is unknown."""


async def unknown() -> None:
    """Return None: how much is left is unknown."""


class Counter:
    """How much a job has done so far."""

    def __init__(self) -> None:
        self.done = 0
        self.told: int | None = None
        self.over = False

    def reach(self, done: int) -> None:
        """Note how much is done in total."""
        self.done = done

    def add(self, more: int) -> None:
        """Note that more is done."""
        self.done += more


@asynccontextmanager
async def reporting(database: Database, lease: Lease, remaining: Remaining = unknown) -> AsyncIterator[Counter]:
    """Give a job a counter, and store its progress until it ends."""
    counter = Counter()
    writing = asyncio.create_task(write_on(database, lease, counter, remaining))
    try:
        yield counter
    finally:
        # Cancelled and told: a cancellation that comes together with a connection of the pool is lost in Python 3.11.
        counter.over = True
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
        if counter.told is not None:
            await write(database, lease, counter, remaining)


async def write_on(database: Database, lease: Lease, counter: Counter, remaining: Remaining) -> None:
    """Store the progress of a job whenever it has changed."""
    while not counter.over:
        await asyncio.sleep(SECONDS)
        if counter.done != counter.told:
            await write(database, lease, counter, remaining)


async def write(database: Database, lease: Lease, counter: Counter, remaining: Remaining) -> None:
    """Store the progress of a job; a failure to do so does not stop the work."""
    with suppress(RecollectError):
        done, left = counter.done, await remaining()
        await jobs.note_progress(database, lease, done, None if left is None else done + left)
        counter.told = done
