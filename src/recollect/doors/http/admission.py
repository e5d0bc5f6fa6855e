"""Limit the requests that a process serves at a time; the others wait, or are refused with a time to retry."""

from __future__ import annotations

import asyncio
import math
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.doors.http.metrics import REFUSED
from recollect.doors.http.middleware import GUARDED, UPLOADS, has_body
from recollect.doors.http.problems import respond
from recollect.doors.http.rate_limit import delay_request
from recollect.doors.http.server.capacity import Capacity
from recollect.doors.http.server.fair_queue import Requester
from recollect.models.service import Caller
from recollect.settings import Settings

PATIENT = ("/mcp", "/dify/")
"""Whose clients do not retry: they wait up to half of the deadline instead."""

WAITING = (*GUARDED, "/console/session")
"""Paths whose requests wait for their turn: what needs a key, and what exchanges one."""


class AdmissionMiddleware:
    """Wrap the application. Bodies are read before, so that a slow client takes no place; routes read files."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http" or not scope["path"].startswith(WAITING):
            await self._app(scope, receive, send)
            return
        slot = Slot(scope)
        early = slot.time_left()
        if early and not await delay_request(scope, early):
            await refuse(scope, receive, send, math.ceil(early), closing=True)
            return
        small = has_body(dict(scope["headers"])) and scope["path"] not in UPLOADS
        body = await read_body(receive) if small else []
        seconds = await slot.acquire()
        if seconds is not None:
            await refuse(scope, receive, send, seconds)
            return

        async def replay() -> Message:
            return body.pop(0) if body else await receive()

        async def forward(message: Message) -> None:
            # The rest is to send it, and sending mostly waits for the reader.
            slot.free()
            await send(message)

        try:
            await self._app(scope, replay, forward)
        finally:
            slot.free()


async def refuse(scope: Scope, receive: Receive, send: Send, seconds: int, *, closing: bool = False) -> None:
    """Answer that there is no place, and when to retry; end the connection of one that does not wait."""
    REFUSED.inc()
    answer = respond(503, "busy", f"The service is busy; try again in {seconds} seconds.")
    answer.headers["Retry-After"] = str(seconds)
    if closing:
        answer.headers["Connection"] = "close"
    await answer(scope, receive, send)


async def read_body(receive: Receive) -> list[Message]:
    """Read a body to its end."""
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    return messages


class Slot:
    """The place of one request among those that are served at a time."""

    def __init__(self, scope: Scope) -> None:
        settings: Settings = scope["app"].state.recollect.settings
        self._capacity: Capacity = scope["app"].state.capacity
        caller: Caller | None = scope.get("caller")
        self._requester = Requester((scope["connection"], scope.get("secret")), caller.tenant_id if caller else None)
        self._most = settings.max_requests
        self._patience = settings.request_timeout_seconds / 2 if scope["path"].startswith(PATIENT) else 0.0
        self._loop, self._taken = asyncio.get_running_loop(), False
        # Called by routes that wait for a model.
        scope["free_slot"] = self.free

    def time_left(self) -> float:
        """Return the remaining seconds that the client was asked to wait."""
        return self._capacity.time_left(self._requester, self._loop.time())

    async def acquire(self) -> int | None:
        """Wait for a place; if none becomes free in time, return the seconds after which to retry."""
        begun = asyncio.Event()
        self._capacity.sample_cpu(time.thread_time(), self._loop.time())
        waiting = self._capacity.enter(self._requester, self._most, self._loop.time(), begun.set, self._patience)
        try:
            if waiting is not None:
                async with asyncio.timeout_at(waiting.until):
                    await begun.wait()
        except TimeoutError:
            if waiting is not None and not begun.is_set():
                return self._capacity.refuse(waiting, self._most, self._loop.time())
        except asyncio.CancelledError:
            # The deadline is over, or the process ends. The turn may have come at the same time.
            if begun.is_set():
                self._capacity.release(self._requester.tenant, self._loop.time())
            elif waiting is not None:
                self._capacity.drop(waiting)
            raise
        self._taken = True
        return None

    def free(self) -> None:
        """Start the next request."""
        if self._taken:
            self._taken = False
            self._capacity.release(self._requester.tenant, self._loop.time())
