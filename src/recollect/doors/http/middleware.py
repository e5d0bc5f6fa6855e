"""What happens to every request: an id, a size limit, a deadline, a measured time, one line in the log."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from uuid import uuid4

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.doors.http.metrics import REQUESTS, SECONDS, record_pool_stats
from recollect.doors.http.problems import CODES, respond
from recollect.doors.http.server.keys import KeyChecks
from recollect.doors.logs import report
from recollect.mind.access import OUTSIDE, OutsideCall
from recollect.mind.service import Recollect
from recollect.models.service import Caller
from recollect.tracing import OpenSpan, span

MAX_BODY_BYTES, MAX_PUBLIC_BODY_BYTES = 3 * 1024 * 1024, 4096
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
LOG = logging.getLogger("recollect.http")
UPLOAD_SECONDS = 60.0
"""Maximum time for a body, even if it keeps coming; larger bodies have more time at the same rate."""
GUARDED = ("/v1/", "/mcp", "/dify/")
"""Paths that need a key and wait for their turn; health and metrics do neither."""
PRIVATE = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Headers of every answer there: it is for one caller, and nothing but what its type says."""
DRAIN_SECONDS = 1.0
"""How long to read on of a file that was refused."""
UPLOADS = ("/v1/import",)
"""Paths whose body is a file: it may be larger, and its route writes it to a disk as it comes."""
TRACE = b"traceparent"
SINGLE = frozenset({b"authorization", b"host", b"content-length"})
"""Headers of which two readers could choose different ones, if there were several."""
AMBIGUOUS = "Send `Host`, and at most one each of `Host`, `Authorization` and `Content-Length`."
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


def seconds_for(size: int) -> float:
    """Return how long a client may take to send or to read this many bytes."""
    return UPLOAD_SECONDS * max(1.0, size / MAX_BODY_BYTES)


class TooLargeError(HTTPException):
    """The body is beyond the limit; an HTTP error, because the framework takes others for unreadable bodies."""

    def __init__(self) -> None:
        super().__init__(413)


class RequestMiddleware:
    """Wrap the application; written as plain ASGI because every request passes it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = RequestState(scope, receive, send)
        with span("request", sent=trace_of(dict(scope["headers"]))) as traced:
            await self._serve(call, scope)
            call.set_trace_attributes(traced)

    async def _serve(self, call: RequestState, scope: Scope) -> None:
        scope["connection"] = scope.get("client")  # what proxies say of a client may be said of many
        try:
            if call.is_ambiguous:
                await call.fail(400, CODES[400], AMBIGUOUS)
                return
            call.check_size(call.announced_size())
            async with call.timer:
                call.extend()
                OUTSIDE.set(call.outside)
                await self._app(scope, call.receive, call.send)
        except TooLargeError:
            await call.fail(413, "too_large", f"A request may have at most {call.largest} bytes.")
        except TimeoutError:
            await call.fail(*call.describe_lateness())
        except Exception as problem:
            # A handler after us would print the error's text, which may quote content.
            report(LOG, "failure", problem, request_id=call.id.decode())
            await call.fail(500, "internal", "Internal error. See the server log.")
        finally:
            call.finish()


def is_ambiguous(scope: Scope) -> bool:
    """Return whether a header is repeated that must not be, or the host is missing."""
    names = [name for name, _ in scope["headers"] if name in SINGLE]
    return len(names) > len({*names}) or (b"host" not in names and scope["http_version"] == "1.1")


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a request announces a body."""
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"").strip(b" \t0") != b""


def trace_of(headers: Mapping[bytes, bytes]) -> Mapping[str, str] | None:
    """Return the trace that a client says it is in, if it does."""
    given = headers.get(TRACE)
    return {TRACE.decode(): given.decode("latin-1")} if given else None


def name_route(scope: Scope) -> tuple[str, str]:
    """Name the method, and the route without what its path names."""
    method = scope["method"] if scope["method"] in METHODS else "OTHER"
    return method, getattr(scope.get("route"), "path", "unknown")


def key_name(caller: Caller) -> str:
    """Name the key that was shown."""
    return caller.origin.partition(":")[2]


def check_time(timer: asyncio.Timeout) -> None:
    """End a request whose time is over: asyncio.wait_for of Python 3.11 can swallow that end on the way."""
    if timer.expired():
        raise TimeoutError


class RequestState:
    """One running request: its headers, its answer and its duration."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        # Of headers with one name the first counts, as it does for the framework.
        self._headers, self.is_ambiguous = dict(reversed(scope["headers"])), is_ambiguous(scope)
        offered = self._headers.get(b"x-request-id", b"")
        self.id = offered if REQUEST_ID.fullmatch(offered) else uuid4().hex.encode()
        self._started, self._size, self._status = time.perf_counter(), 0, 0
        self._recollect: Recollect = scope["app"].state.recollect
        self._keys: KeyChecks = scope["app"].state.keys
        self.deadline_seconds: float = self._recollect.settings.request_timeout_seconds
        self.timer = asyncio.timeout(None)
        self._uploading, self._waiting = has_body(self._headers), False
        self.largest = MAX_BODY_BYTES if scope["path"].startswith(GUARDED) else MAX_PUBLIC_BODY_BYTES
        if scope["path"] in UPLOADS:
            self.largest = self._recollect.settings.operations.max_import_bytes
        self._begun = asyncio.get_running_loop().time()
        self.outside = OutsideCall()
        scope["allow_seconds"], scope["restrict_size"] = self.allow, self.restrict

    def set_trace_attributes(self, traced: OpenSpan) -> None:
        """Set the attributes of the trace that the log also has."""
        method, route = name_route(self._scope)
        traced.rename(f"{method} {route}")
        traced.note(request_id=self.id.decode(), status=self._status, route=route)
        if caller := self.caller:
            traced.note(tenant=caller.tenant_id, key=key_name(caller))

    def extend(self) -> None:
        """Restart the deadline: it counts from the last part of the body, which must end at some time."""
        check_time(self.timer)
        ends = asyncio.get_running_loop().time() + self.deadline_seconds
        self.timer.reschedule(min(ends, self._begun + seconds_for(self._size)) if self._uploading else ends)

    def allow(self, seconds: float) -> None:
        """Extend this request's deadline: called by routes that wait for a model."""
        self.deadline_seconds += seconds
        self.extend()

    def restrict(self, size: int) -> None:
        """Reduce the maximum size of the body."""
        self.largest = min(self.largest, size)
        self.check_size(self.announced_size())

    def announced_size(self) -> int:
        """Read the size that the client announced."""
        announced = self._headers.get(b"content-length", b"0").strip()
        return int(announced) if announced.isdigit() else 0

    async def receive(self) -> Message:
        """Pass the body on while it stays within the limit."""
        check_time(self.timer)
        self._waiting = self._uploading
        message = await self._receive()
        self._waiting = False
        self._size += len(message.get("body", b""))
        self.check_size(self._size)
        self._uploading = self._uploading and message.get("more_body", False)
        self.extend()
        return message

    def describe_lateness(self) -> tuple[int, str, str]:
        """Return an error for the side that was late: the client with its body, or the server with its answer."""
        if self._waiting:
            seconds = f"{seconds_for(self._size):.0f} seconds"
            return 408, "too_slow", f"The body must arrive within {seconds}, without long pauses."
        return 503, "unavailable", f"No answer within {self.deadline_seconds:g} seconds; try again."

    def check_size(self, size: int) -> None:
        """Raise an error if a body is larger than the route's maximum."""
        if size > self.largest:
            raise TooLargeError

    async def send(self, message: Message) -> None:
        """Pass the answer on, with the request's id."""
        if message["type"] == "http.response.start":
            # Answers without a key take turns: refusals, and preflight requests of browsers.
            if self.caller is None and (400 <= message["status"] < 500 or self._scope["method"] == "OPTIONS"):
                async with self._keys.refusals.take():
                    pass
            self._status = message["status"]
            self.note_key()
            await self.drain()
            # A client that is answered before its body has come must stop sending it.
            closing = [(b"connection", b"close")] if self._uploading or self.is_ambiguous else []
            private = PRIVATE if self._scope["path"].startswith(GUARDED) else ()
            message["headers"] = [*message.get("headers", []), (b"x-request-id", self.id), *closing, *private]
        elif message.get("more_body"):
            # An answer in pieces may take as long as each piece comes in time.
            self.extend()
        await self._send(message)

    def note_key(self) -> None:
        """Remember the key that the database has accepted, and forget one that it accepted before and refused now."""
        caller = self.outside.caller
        if "secret" in self._scope and (caller or self._status in {401, 403}):
            self._keys.accepted.store_value(self._scope["secret"], caller)

    @property
    def caller(self) -> Caller | None:
        """Return the caller, from the database or from a recent check of the key."""
        return self.outside.caller or self._scope.get("caller")

    async def drain(self) -> None:
        """Read on for a short time: a client that still sends does not see an answer that closes the connection."""
        left = MAX_BODY_BYTES if self._scope["path"] in UPLOADS else 0
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while self._uploading and left > 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    self._uploading = message.get("more_body", False)

    async def fail(self, status: int, code: str, detail: str) -> None:
        """Answer with a problem, unless an answer is under way already."""
        if self._status == 0:
            await respond(status, code, detail)(self._scope, self._receive, self.send)

    def finish(self) -> None:
        """Count, measure and log; ids and codes only."""
        record_pool_stats(self._recollect.pool_counters)
        seconds = time.perf_counter() - self._started
        method, route = name_route(self._scope)
        REQUESTS.labels(method, route, str(self._status)).inc()
        SECONDS.labels(method, route).observe(seconds)
        caller = self.caller
        line = {
            "event": "request",
            "request_id": self.id.decode(),
            "tenant": caller.tenant_id if caller else None,
            "key": key_name(caller) if caller else None,
            "method": method,
            "route": route,
            "status": self._status,
            "milliseconds": round(seconds * 1000, 2),
        }
        LOG.info(json.dumps(line))
