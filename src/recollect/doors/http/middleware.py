"""What happens to every request: an id, a size limit, a measured time, one line in the log."""

from __future__ import annotations

import json
import logging
import re
import time
from uuid import uuid4

from prometheus_client import Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.doors.http.problems import respond

LARGEST_BODY = 16 * 1024 * 1024
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
LOG = logging.getLogger("recollect.http")
REQUESTS = Counter("recollect_http_requests_total", "Requests answered.", ["method", "route", "status"])
SECONDS = Histogram(
    "recollect_http_request_seconds",
    "Time from the first byte in to the last byte out.",
    ["method", "route"],
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
)
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


class TooLargeError(Exception):
    """The body grew beyond the limit while it was read."""


class Observed:
    """Wrap the application; written as plain ASGI because it stands in the way of every request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = Call(scope, receive, send)
        try:
            call.check_size(call.announced_size())
            await self._app(scope, call.receive, call.send)
        except TooLargeError:
            detail = f"A request may have at most {LARGEST_BODY} bytes."
            await respond(413, "too_large", detail)(scope, receive, call.send)
        finally:
            call.finish()


class Call:
    """One request under way: what it brought, what it was answered, how long it took."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._headers = dict(scope["headers"])
        offered = self._headers.get(b"x-request-id", b"")
        self.id = offered if REQUEST_ID.fullmatch(offered) else uuid4().hex.encode()
        self._started, self._size, self._status = time.perf_counter(), 0, 500

    def announced_size(self) -> int:
        """Read the size that the client announced."""
        announced = self._headers.get(b"content-length", b"0")
        return int(announced) if announced.isdigit() else 0

    async def receive(self) -> Message:
        """Pass the body on while it stays within the limit."""
        message = await self._receive()
        self._size += len(message.get("body", b""))
        self.check_size(self._size)
        return message

    @staticmethod
    def check_size(size: int) -> None:
        """Stop a body that is larger than anything we take."""
        if size > LARGEST_BODY:
            raise TooLargeError

    async def send(self, message: Message) -> None:
        """Pass the answer on, with the request's id."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [*message.get("headers", []), (b"x-request-id", self.id)]
        await self._send(message)

    def finish(self) -> None:
        """Count, measure and log; ids and codes only."""
        seconds = time.perf_counter() - self._started
        route = getattr(self._scope.get("route"), "path", "unknown")
        method = self._scope["method"] if self._scope["method"] in METHODS else "OTHER"
        REQUESTS.labels(method, route, str(self._status)).inc()
        SECONDS.labels(method, route).observe(seconds)
        line = {
            "event": "request",
            "request_id": self.id.decode(),
            "method": method,
            "route": route,
            "status": self._status,
            "milliseconds": round(seconds * 1000, 2),
        }
        LOG.info(json.dumps(line))
