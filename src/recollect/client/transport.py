"""Requests to a server, retried when it is unavailable: on an event loop or without one."""

from __future__ import annotations

import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import Any, BinaryIO, TypeAlias, TypeVar

import httpx

from recollect import errors
from recollect.loading import load

R = TypeVar("R")
MAX_WAIT_SECONDS = 8.0
UNAVAILABLE = frozenset({429, 502, 503, 504})
ERRORS = {
    kind.code: kind
    for kind in (
        errors.InvalidInputError,
        errors.UnauthenticatedError,
        errors.ForbiddenError,
        errors.NotFoundError,
        errors.ConflictError,
        errors.CursorExpiredError,
        errors.UnavailableError,
        errors.RateLimitError,
        errors.ScopeRestoringError,
        errors.ColdStorageError,
        errors.ChatModelError,
        errors.SetupError,
    )
}
ATTEMPTS = 4
PIECE_BYTES = 256 * 1024
PIECE_SECONDS = 15.0
"""How long to wait at least for the next piece of a long answer; a server that has none sends signs of life."""
Parameters: TypeAlias = Mapping[str, str | Sequence[str]]


class Transport:
    """A transport that waits on the event loop."""

    _met = False
    """Whether the server has ever answered."""

    def __init__(self, url: str, key: str, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._http = httpx.AsyncClient(**options(url, key, timeout_seconds))

    async def send(self, method: str, path: str, **content: Any) -> bytes:  # noqa: ANN401 - httpx's own arguments
        """Send a request, and retry where the server or the network is unavailable; return the body."""
        for attempt in range(ATTEMPTS):
            wait = random.uniform(0, min(MAX_WAIT_SECONDS, 0.2 * 2**attempt))  # noqa: S311
            try:
                answer = await self._request(method, path, **content)
            except httpx.TransportError as problem:
                # A server that never answered is not running, or its address is wrong: neither passes in a second.
                if attempt == ATTEMPTS - 1 or (isinstance(problem, httpx.ConnectError) and not self._met):
                    raise unavailable_error(problem) from None
            else:
                if answer.status_code not in UNAVAILABLE or attempt == ATTEMPTS - 1:
                    return read_response_body(answer)
                wait = max(wait, retry_after(answer.headers))
            await self.pause(wait)
        raise AssertionError("the last attempt returns or raises")

    async def send_once(self, method: str, path: str, seconds: float, **content: Any) -> bytes:  # noqa: ANN401
        """Send a request that must not be repeated, wait at most `seconds` for the answer, and return its body."""
        content["timeout"] = httpx.Timeout(self._timeout_seconds, read=seconds)
        try:
            return read_response_body(await self._request(method, path, **content))
        except httpx.ReadTimeout:
            raise errors.UnavailableError(f"No answer within {seconds:g} seconds; it may still come.") from None
        except httpx.TransportError as problem:
            raise unavailable_error(problem) from None

    async def upload(self, path: str, parameters: Parameters, file: BinaryIO, seconds: float) -> bytes:
        """Send a file piece by piece, once; wait at most `seconds` for the answer, and return its body."""
        return await self.send_once("POST", path, seconds, params=parameters, content=pieces_of(file))

    async def stream(self, path: str, parameters: Parameters) -> AsyncIterator[bytes]:
        """Read a long answer piece by piece; once it has begun nothing is sent again."""
        try:
            async with self._http.stream("GET", path, params=parameters, timeout=self._patient()) as answer:
                if not answer.is_success:
                    await answer.aread()
                    read_response_body(answer)
                async for piece in answer.aiter_bytes():
                    yield piece
        except httpx.TransportError as problem:
            raise unavailable_error(problem) from None

    def _patient(self) -> httpx.Timeout:
        return httpx.Timeout(self._timeout_seconds, read=max(self._timeout_seconds, PIECE_SECONDS))

    async def close_connections(self) -> None:
        """Close the HTTP client."""
        await self._http.aclose()

    async def _request(self, method: str, path: str, **content: Any) -> httpx.Response:  # noqa: ANN401
        return self._note(await self._http.request(method, path, **content))

    def _note(self, answer: httpx.Response) -> httpx.Response:
        """Remember that the server answers."""
        self._met = True
        return answer

    async def pause(self, seconds: float) -> None:
        """Wait before the next request."""
        await load("anyio").sleep(seconds)


class BlockingTransport(Transport):
    """A transport that never waits on an event loop, so that its coroutines never suspend; see `sync.connect`."""

    def __init__(self, url: str, key: str, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._blocking = httpx.Client(**options(url, key, timeout_seconds))

    async def upload(self, path: str, parameters: Parameters, file: BinaryIO, seconds: float) -> bytes:
        """Send a file piece by piece, once; wait at most `seconds` for the answer, and return its body."""
        content = iter(partial(file.read, PIECE_BYTES), b"")
        return await self.send_once("POST", path, seconds, params=parameters, content=content)

    async def stream(self, path: str, parameters: Parameters) -> AsyncIterator[bytes]:
        """Read a long answer piece by piece; once it has begun nothing is sent again."""
        try:
            with self._blocking.stream("GET", path, params=parameters, timeout=self._patient()) as answer:
                if not answer.is_success:
                    answer.read()
                    read_response_body(answer)
                for piece in answer.iter_bytes():
                    yield piece
        except httpx.TransportError as problem:
            raise unavailable_error(problem) from None

    async def close_connections(self) -> None:
        """Close the HTTP client."""
        self._blocking.close()

    async def _request(self, method: str, path: str, **content: Any) -> httpx.Response:  # noqa: ANN401
        return self._note(self._blocking.request(method, path, **content))

    async def pause(self, seconds: float) -> None:
        """Wait before the next request."""
        time.sleep(seconds)  # noqa: ASYNC251 - there is no loop to hold up


class SyncRunner:
    """Runs a coroutine that never suspends, in the caller's thread."""

    def call(self, function: Callable[..., Awaitable[R]], *arguments: object) -> R:
        """Run the coroutine in one step."""
        steps = function(*arguments).__await__()
        try:
            next(steps)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        raise AssertionError("a blocking transport waits for nothing")

    @contextmanager
    def wrap_async_context_manager(self, manager: AbstractAsyncContextManager[R]) -> Iterator[R]:
        """Enter and leave in one step each."""
        entered = self.call(manager.__aenter__)
        try:
            yield entered
        finally:
            self.call(manager.__aexit__, None, None, None)


async def pieces_of(file: BinaryIO) -> AsyncIterator[bytes]:
    """Read a file piece by piece, each in a thread."""
    while piece := await load("anyio").to_thread.run_sync(file.read, PIECE_BYTES):
        yield piece


def options(url: str, key: str, timeout_seconds: float) -> dict[str, Any]:
    """Return the options of every request."""
    if not url:
        raise errors.SetupError("Pass the URL of the server, or set RECOLLECT_URL.")
    if not url.lower().startswith(("http://", "https://")):
        raise errors.SetupError(f"The URL of the server must begin with http:// or https://, as in http://{url}")
    headers = {"Authorization": f"Bearer {key}"}
    # Certificates take long to load, and only HTTPS has them.
    secure = not url.lower().startswith("http:")
    # Every path begins with /v1, and so may the URL end that somebody copied.
    base = url.rstrip("/").removesuffix("/v1")
    return {"base_url": base, "headers": headers, "timeout": timeout_seconds, "trust_env": False, "verify": secure}


def unavailable_error(problem: httpx.TransportError) -> errors.UnavailableError:
    """Make the error of a server that does not answer."""
    asked = problem.request.url
    address = str(asked.copy_with(path="/", query=None)).rstrip("/")
    if isinstance(problem, httpx.ConnectError):
        return errors.UnavailableError(f"Cannot reach {address}. Is the server running? Start one with `recollect up`.")
    return errors.UnavailableError(f"{address} did not answer ({type(problem).__name__}).")


def retry_after(headers: Mapping[str, str]) -> float:
    """Read how long the server asks to wait."""
    asked = headers.get("retry-after", "0")
    return min(MAX_WAIT_SECONDS, float(asked)) if asked.isdigit() else 0.0


def read_response_body(answer: httpx.Response) -> bytes:
    """Return the body, or raise the error that the server described."""
    if answer.is_success:
        return answer.content
    raise read_problem(answer.content, answer.status_code)


def read_problem(content: bytes | str, status: int = 0) -> errors.RecollectError:
    """Make the error that a server described."""
    try:
        problem = json.loads(content)
        detail = str(problem["detail"]) + "".join(f" {e['field']}: {e['message']}." for e in problem["errors"])
        code = str(problem["code"])
    except (ValueError, KeyError, TypeError):
        detail, code = f"The server answered {status}.", ""
    usual = errors.UnavailableError if status in UNAVAILABLE else errors.RecollectError
    return ERRORS.get(code, usual)(detail)
