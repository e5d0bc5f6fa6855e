"""Tell how far a job is while it runs: at most once a second, and not at all of a job that takes no longer."""

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
"""Count what is left to do; None where nobody knows."""


async def unknown() -> None:
    """Say that nobody knows how much is left."""


class Counter:
    """How much a job has done so far."""

    def __init__(self) -> None:
        self.done = 0
        self.told: int | None = None
        self.over = False

    def reach(self, done: int) -> None:
        """Note how much is done in all."""
        self.done = done

    def add(self, more: int) -> None:
        """Note that more is done."""
        self.done += more


@asynccontextmanager
async def reporting(database: Database, lease: Lease, remaining: Remaining = unknown) -> AsyncIterator[Counter]:
    """Give a job something to count with, and write down where it stands until it ends."""
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
    """Write down where a job stands, again whenever it has come further."""
    while not counter.over:
        await asyncio.sleep(SECONDS)
        if counter.done != counter.told:
            await write(database, lease, counter, remaining)


async def write(database: Database, lease: Lease, counter: Counter, remaining: Remaining) -> None:
    """Write down where a job stands; that it cannot be written is no reason to stop working."""
    with suppress(RecollectError):
        done, left = counter.done, await remaining()
        await jobs.note_progress(database, lease, done, None if left is None else done + left)
        counter.told = done
