"""Record the progress of a running job: at most once a second, and not for shorter jobs."""

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
"""Counts the remaining work; None if unknown."""


async def unknown() -> None:
    """Return None: the remaining work is unknown."""


class Counter:
    """The progress of a job."""

    def __init__(self) -> None:
        self.done = 0
        self.told: int | None = None
        self.over = False

    def set_total(self, done: int) -> None:
        """Set the total amount of finished work."""
        self.done = done

    def count_more(self, more: int) -> None:
        """Add to the amount of finished work."""
        self.done += more


@asynccontextmanager
async def reporting(database: Database, lease: Lease, remaining: Remaining = unknown) -> AsyncIterator[Counter]:
    """Provide a counter for a job, and store its progress until the job ends."""
    counter = Counter()
    writing = asyncio.create_task(save_progress(database, lease, counter, remaining))
    try:
        yield counter
    finally:
        # A flag in addition: Python 3.11 loses a cancellation that arrives together with a connection of the pool.
        counter.over = True
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
        if counter.told is not None:
            await store_progress(database, lease, counter, remaining)


async def save_progress(database: Database, lease: Lease, counter: Counter, remaining: Remaining) -> None:
    """Store the progress of a job when it has changed."""
    while not counter.over:
        await asyncio.sleep(SECONDS)
        if counter.done != counter.told:
            await store_progress(database, lease, counter, remaining)


async def store_progress(database: Database, lease: Lease, counter: Counter, remaining: Remaining) -> None:
    """Store the progress of a job; an error here does not stop the job."""
    with suppress(RecollectError):
        done, left = counter.done, await remaining()
        await jobs.record_progress(database, lease, done, None if left is None else done + left)
        counter.told = done
