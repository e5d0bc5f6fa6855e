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

from recollect.doors.http.metrics import READS, REQUESTS, SECONDS, note_pool
from recollect.doors.http.problems import respond
from recollect.doors.logs import report
from recollect.errors import InvalidInputError
from recollect.mind.access import OutsideCall
from recollect.mind.service import Recollect
from recollect.models.service import Caller
from recollect.tracing import OpenSpan, span

LARGEST_BODY = 3 * 1024 * 1024
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
LOG = logging.getLogger("recollect.http")
UPLOAD_SECONDS = 60.0
"""How long a body may take in total, even if it keeps coming; a larger one takes longer at the same rate."""
GUARDED = ("/v1/", "/mcp", "/dify/")
"""Paths that need a key and wait for their turn; health and metrics do neither."""
DRAIN_SECONDS = 1.0
"""How long to read on of a file that was refused."""
UPLOADS = ("/v1/import",)
"""Paths whose body is a file: it may be larger, and its route writes it to a disk as it comes."""
POSITION, MAX_STALENESS = b"recollect-position", b"recollect-max-staleness"
"""What a caller has seen, or what a write has come to; and by how many seconds an answer may be behind."""
TRACE = b"traceparent"
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


class TooLargeError(HTTPException):
    """The body is beyond the limit; an HTTP error, because the framework takes others for unreadable bodies."""

    def __init__(self) -> None:
        super().__init__(413)


class Observed:
    """Wrap the application; written as plain ASGI because every request passes it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = Call(scope, receive, send)
        with span("request", sent=trace_of(dict(scope["headers"]))) as traced:
            await self._serve(call, scope)
            call.tell(traced)

    async def _serve(self, call: Call, scope: Scope) -> None:
        try:
            call.check_size(call.announced_size())
            async with call.timer:
                call.extend()
                with call.read_positions().serving():
                    await self._app(scope, call.receive, call.send)
        except InvalidInputError as problem:
            await call.fail(422, problem.code, str(problem))
        except TooLargeError:
            await call.fail(413, "too_large", f"A request may have at most {call.largest} bytes.")
        except TimeoutError:
            await call.fail(*call.describe_lateness())
        except Exception as problem:
            # A handler after us would print the error's text, which may quote content.
            report(LOG, "failure", problem, request_id=call.id.decode())
            await call.fail(500, "internal", "Something is wrong with the service; its log says where.")
        finally:
            call.finish()


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a request announces a body."""
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


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


class Call:
    """One running request: what it sent, what it was answered, how long it took."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._headers = dict(scope["headers"])
        offered = self._headers.get(b"x-request-id", b"")
        self.id = offered if REQUEST_ID.fullmatch(offered) else uuid4().hex.encode()
        self._started, self._size, self._status = time.perf_counter(), 0, 0
        self._recollect: Recollect = scope["app"].state.recollect
        self.deadline_seconds: float = self._recollect.settings.deadline_seconds
        self.timer = asyncio.timeout(None)
        self._uploading, self._waiting = has_body(self._headers), False
        self.largest = self._recollect.settings.import_bytes if scope["path"] in UPLOADS else LARGEST_BODY
        self._upload_seconds = UPLOAD_SECONDS * max(1.0, self.largest / LARGEST_BODY)
        self._upload_ends = asyncio.get_running_loop().time() + self._upload_seconds
        self._positions = OutsideCall()
        scope["allow_seconds"], scope["restrict_size"] = self.allow, self.restrict

    def tell(self, traced: OpenSpan) -> None:
        """Say of a trace what the log says, too."""
        method, route = name_route(self._scope)
        traced.rename(f"{method} {route}")
        traced.note(request_id=self.id.decode(), status=self._status, route=route)
        if caller := self.caller:
            traced.note(tenant=caller.tenant_id, key=key_name(caller))

    def read_positions(self) -> OutsideCall:
        """Read what the caller has seen of other answers, and how far behind this one may be."""
        given = (self._headers.get(name, b"").decode("latin-1") for name in (POSITION, MAX_STALENESS))
        self._positions = OutsideCall(*given)
        return self._positions

    def extend(self) -> None:
        """Restart the deadline: it counts from the last part of the body, which must end at some time."""
        check_time(self.timer)
        ends = asyncio.get_running_loop().time() + self.deadline_seconds
        self.timer.reschedule(min(ends, self._upload_ends) if self._uploading else ends)

    def allow(self, seconds: float) -> None:
        """Give this request more time than others have: called by routes that wait for a model."""
        self.deadline_seconds += seconds
        self.extend()

    def restrict(self, size: int) -> None:
        """Take no larger body than this."""
        self.largest = min(self.largest, size)
        self.check_size(self.announced_size())

    def announced_size(self) -> int:
        """Read the size that the client announced."""
        announced = self._headers.get(b"content-length", b"0")
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
        """Say who was late: the client with its body, or we with the answer."""
        if self._waiting:
            seconds = f"{self._upload_seconds:.0f} seconds"
            return 408, "too_slow", f"The body must arrive within {seconds}, without long pauses."
        return 503, "unavailable", f"No answer within {self.deadline_seconds:g} seconds; try again."

    def check_size(self, size: int) -> None:
        """Stop a body that is larger than what is taken there."""
        if size > self.largest:
            raise TooLargeError

    async def send(self, message: Message) -> None:
        """Pass the answer on, with the request's id."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self.note_key()
            await self.drain()
            # A client that is answered before its body has come must stop sending it.
            closing = [(b"connection", b"close")] if self._uploading else []
            message["headers"] = [*message.get("headers", []), (b"x-request-id", self.id), *closing]
            if position := self._positions.position:
                message["headers"].append((POSITION, position.encode()))
        elif message.get("more_body"):
            # An answer in pieces may take as long as each piece comes in time.
            self.extend()
        await self._send(message)

    def note_key(self) -> None:
        """Remember the key that the database has accepted."""
        if (caller := self._positions.caller) and "secret" in self._scope:
            self._scope["app"].state.known_keys.add(self._scope["secret"], caller)

    @property
    def caller(self) -> Caller | None:
        """Say who asks: whom the database has let in, or whose key it was lately."""
        return self._positions.caller or self._scope.get("caller")

    async def drain(self) -> None:
        """Read on for a moment: who is still sending a file does not see an answer that closes the connection."""
        left = LARGEST_BODY if self._scope["path"] in UPLOADS else 0
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
        note_pool(self._recollect.pool_counters)
        seconds = time.perf_counter() - self._started
        method, route = name_route(self._scope)
        REQUESTS.labels(method, route, str(self._status)).inc()
        SECONDS.labels(method, route).observe(seconds)
        if self._positions.served_by:
            READS.labels(route, self._positions.served_by).inc()
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
