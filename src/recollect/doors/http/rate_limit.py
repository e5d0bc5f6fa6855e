"""Hold keys and tenants to their limits, and let those wait who ask again before their time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.doors.http.metrics import HELD, LIMITED
from recollect.doors.http.problems import respond
from recollect.doors.http.server.capacity import MAX_DELAYED_REQUESTS, MAX_RETRY_AFTER_SECONDS, Capacity
from recollect.doors.http.server.limits import Limiter, largest_body
from recollect.errors import RateLimitError
from recollect.models.service import DEFAULT_STREAMS, Caller, CountedLimits, Limits

STREAMS = ("/v1/changes", "/dify/v1/changes")
TOO_MUCH = "This is more than the limit allows"
TOO_MANY_STREAMS = "This key has as many streams of changes open as it may: close one, or ask your operator for more"
STREAM_SECONDS = 5
"""After which a stream that was refused may be opened again."""


class RateLimitMiddleware:
    """Wrap the application: requests of keys without a limit pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        caller: Caller | None = scope.get("caller")
        following = caller is not None and scope["path"].startswith(STREAMS)
        if caller is None or not (caller.counted or following):
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
        if not following:
            await self._app(scope, charged, send)
            return
        streams = limits_of_streams(caller)
        if limiter.open_stream(streams):
            try:
                await self._app(scope, charged, send)
            finally:
                limiter.close_stream(streams)
        else:
            await refuse(scope, receive, send, STREAM_SECONDS, TOO_MANY_STREAMS)

    async def _wait(self, scope: Scope, limiter: Limiter, counted: Sequence[CountedLimits]) -> int:
        """Return 0 if there is room, or the seconds until a retry. A client that retries too early is delayed."""
        now = asyncio.get_running_loop().time
        wait = limiter.admit(counted, now())
        early = limiter.time_left(counted, now()) if wait else 0.0
        if early and await delay_request(scope, min(early, MAX_RETRY_AFTER_SECONDS)):
            wait = limiter.admit(counted, now())
        seconds = math.ceil(wait)
        if seconds:
            limiter.record_wait(counted, seconds, now())
        return seconds


def limits_of_streams(caller: Caller) -> Sequence[CountedLimits]:
    """Return the limits of a caller's streams: those of its key or tenant, or the default for each key."""
    if any(each.limits.change_streams is not None for each in caller.counted):
        return caller.counted
    return (CountedLimits(f"key {caller.key_id}", Limits(change_streams=DEFAULT_STREAMS)),)


async def refuse(scope: Scope, receive: Receive, send: Send, seconds: int, what: str = TOO_MUCH) -> None:
    """Answer that the limit is reached, and when there will be room."""
    LIMITED.inc()
    answer = respond(429, RateLimitError.code, f"{what}; try again in {seconds} seconds.")
    answer.headers["Retry-After"] = str(seconds)
    await answer(scope, receive, send)


def count_bytes(limiter: Limiter, counted: Sequence[CountedLimits], receive: Receive) -> Receive:
    """Count the bytes of a body as they come."""

    async def receive_counted() -> Message:
        message = await receive()
        if size := len(message.get("body", b"")):
            limiter.charge(counted, size, asyncio.get_running_loop().time())
        return message

    return receive_counted


async def delay_request(scope: Scope, seconds: float) -> bool:
    """Delay a request that came before its time; return False if too many are delayed already."""
    capacity: Capacity = scope["app"].state.capacity
    if capacity.held >= MAX_DELAYED_REQUESTS:
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
