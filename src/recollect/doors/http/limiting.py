"""Hold keys and tenants to their limits, and let those wait who ask again before their time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.doors.http.metrics import HELD, LIMITED
from recollect.doors.http.problems import respond
from recollect.doors.http.server.capacity import LONGEST_SECONDS, MOST_HELD, Capacity
from recollect.doors.http.server.limits import Limiter, largest_body
from recollect.errors import RateLimitError
from recollect.models.service import Caller, Counted

STREAMS = ("/v1/changes", "/dify/v1/changes")
STREAM_SECONDS = 5
"""After which a stream that was refused may be opened again."""


class Limiting:
    """Wrap the application: requests of keys without a limit pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        caller: Caller | None = scope.get("caller")
        if caller is None or not caller.counted:
            await self._app(scope, receive, send)
            return
        limiter: Limiter = scope["app"].state.limiter
        if size := largest_body(caller.counted):
            restrict: Callable[[int], None] = scope["restrict_size"]
            restrict(size)
        if seconds := await self._wait(scope, limiter, caller.counted):
            await refuse(scope, receive, send, seconds)
            return
        charged = count_bytes(limiter, caller.counted, receive)
        if not scope["path"].startswith(STREAMS):
            await self._app(scope, charged, send)
        elif limiter.open_stream(caller.counted):
            try:
                await self._app(scope, charged, send)
            finally:
                limiter.close_stream(caller.counted)
        else:
            await refuse(scope, receive, send, STREAM_SECONDS)

    async def _wait(self, scope: Scope, limiter: Limiter, counted: Sequence[Counted]) -> int:
        """Return 0 if there is room, or the seconds after which to retry; who was told so before is held back."""
        now = asyncio.get_running_loop().time
        wait = limiter.admit(counted, now())
        early = limiter.time_left(counted, now()) if wait else 0.0
        if early and await hold_back(scope, min(early, LONGEST_SECONDS)):
            wait = limiter.admit(counted, now())
        seconds = math.ceil(wait)
        if seconds:
            limiter.tell(counted, seconds, now())
        return seconds


async def refuse(scope: Scope, receive: Receive, send: Send, seconds: int) -> None:
    """Answer that the limit is reached, and when there will be room."""
    LIMITED.inc()
    answer = respond(429, RateLimitError.code, f"This is more than the limit allows; try again in {seconds} seconds.")
    answer.headers["Retry-After"] = str(seconds)
    await answer(scope, receive, send)


def count_bytes(limiter: Limiter, counted: Sequence[Counted], receive: Receive) -> Receive:
    """Count the bytes of a body as they come."""

    async def receive_counted() -> Message:
        message = await receive()
        if size := len(message.get("body", b"")):
            limiter.charge(counted, size, asyncio.get_running_loop().time())
        return message

    return receive_counted


async def hold_back(scope: Scope, seconds: float) -> bool:
    """Let a request wait that came before its time; False if too many wait so already."""
    capacity: Capacity = scope["app"].state.capacity
    if capacity.held >= MOST_HELD:
        return False
    allow: Callable[[float], None] = scope["allow_seconds"]
    allow(seconds)
    capacity.held += 1
    HELD.inc()
    try:
        await asyncio.sleep(seconds)
    finally:
        capacity.held -= 1
        HELD.dec()
    return True
