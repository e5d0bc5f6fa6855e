"""Keep workers running: beside a program, and for every server, also for one that answers only later."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager

from recollect.jobs.worker import LOG, RESTART_SECONDS
from recollect.store.shards.servers import OpenServer

SHORT_STOP_SECONDS, LEAVE_SECONDS = 1.0, 2.0
"""How long jobs of a worker in a program may go on when it ends, and when the program ends in any case."""
LOOK_SECONDS = 10.0


async def work_everywhere(
    find: Callable[[], Awaitable[Sequence[OpenServer]]], work: Callable[[OpenServer], Coroutine[None, None, None]]
) -> None:
    """Work for each server until cancelled, and look for others meanwhile; what ends one ends all."""
    working: dict[OpenServer, asyncio.Task[None]] = {}
    try:
        while True:
            found = await find()
            await leave([working.pop(each) for each in [*working] if each not in found])
            working |= {each: asyncio.create_task(work(each)) for each in found if each not in working}
            ended, _ = await asyncio.wait(working.values(), timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if ended:
                return ended.pop().result()
    finally:
        await leave([*working.values()])


async def leave(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel work, and wait until it has ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


@asynccontextmanager
async def working_beside(work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Keep a worker running in the background; when the context ends, stop it, and wait for that only so long."""
    worker = asyncio.create_task(keep_working(work))
    try:
        yield
    finally:
        worker.cancel()
        await asyncio.wait([worker], timeout=LEAVE_SECONDS)


async def keep_working(work: Callable[[], Awaitable[None]]) -> None:
    """Work until cancelled; nobody watches a worker in a program, so it begins again after every error."""
    while True:
        try:
            await work()
        except Exception as problem:
            LOG.warning(json.dumps({"event": "worker_restarts", "error": type(problem).__name__}))
        await asyncio.sleep(RESTART_SECONDS)
