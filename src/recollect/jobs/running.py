"""Keep workers running, in a program or for several servers, including servers that start later."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager

from recollect.jobs.worker import LOG, RESTART_SECONDS
from recollect.store.shards.servers import OpenServer

SHORT_STOP_SECONDS, LEAVE_SECONDS = 1.0, 2.0
"""Seconds that jobs of a worker in a program may continue when it ends, and seconds until it ends anyway."""
LOOK_SECONDS = 10.0


async def run_on_all_servers(
    find: Callable[[], Awaitable[Sequence[OpenServer]]], work: Callable[[OpenServer], Coroutine[None, None, None]]
) -> None:
    """Work for each server until cancelled, and look for new servers; one that ends, ends all."""
    working: dict[OpenServer, asyncio.Task[None]] = {}
    try:
        while True:
            found = await find()
            await cancel_and_wait([working.pop(each) for each in [*working] if each not in found])
            working |= {each: asyncio.create_task(work(each)) for each in found if each not in working}
            ended, _ = await asyncio.wait(working.values(), timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if ended:
                return ended.pop().result()
    finally:
        await cancel_and_wait([*working.values()])


async def cancel_and_wait(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


@asynccontextmanager
async def worker_running(work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run a worker in the background; when the context ends, stop it, and wait at most `LEAVE_SECONDS`."""
    worker = asyncio.create_task(run_worker_forever(work))
    try:
        yield
    finally:
        worker.cancel()
        await asyncio.wait([worker], timeout=LEAVE_SECONDS)


async def run_worker_forever(work: Callable[[], Awaitable[None]]) -> None:
    """Work until cancelled; restart after every error, because nobody watches a worker in a program."""
    while True:
        try:
            await work()
        except Exception as problem:
            LOG.warning(json.dumps({"event": "worker_restarted", "error": type(problem).__name__}))
        await asyncio.sleep(RESTART_SECONDS)
