"""Requests to a model endpoint: with retries, timeouts, and a pause after repeated failures."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from random import SystemRandom
from typing import Any

import httpx

from recollect.errors import SetupError


class State(StrEnum):
    """Whether calls pass (closed), are refused (open), or one call may probe (half-open)."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Opens after a number of failures in a row, refuses calls for a time, then allows one probe."""

    def __init__(self, failures: int = 5, seconds: float = 10.0) -> None:
        self._limit = failures
        self._seconds = seconds
        self._failed = 0
        self._opened_at: float | None = None
        self._probing = False

    def state(self, now: float) -> State:
        """Return the state at a time."""
        if self._opened_at is None:
            return State.CLOSED
        return State.OPEN if self.wait(now) > 0 else State.HALF_OPEN

    def wait(self, now: float) -> float:
        """Return the seconds until the next probe is allowed; 0 if calls may pass."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._opened_at + self._seconds - now)

    def allow(self, now: float) -> bool:
        """Return whether a call is allowed; in the half-open state only one at a time."""
        state = self.state(now)
        if state is State.HALF_OPEN and not self._probing:
            self._probing = True
            return True
        return state is State.CLOSED

    def succeed(self) -> None:
        """Record that the endpoint answered."""
        self._failed = 0
        self._opened_at = None
        self._probing = False

    def fail(self, now: float) -> None:
        """Record that the endpoint did not answer; a failed probe opens the breaker immediately."""
        self._failed += 1
        # A late failure of a call from before the outage must not delay the next probe.
        if self.state(now) is State.HALF_OPEN or (self._opened_at is None and self._failed >= self._limit):
            self._opened_at = now
        self._probing = False

    def release(self) -> None:
        """Record that an allowed call ended without a result, so that another call may probe."""
        self._probing = False


TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.25, 8.0
MAX_RETRY_AFTER_SECONDS = 30.0
MAX_DETAIL_BYTES = 4096
OTHER_ADVICE = "look into the endpoint's log"


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """The name of an endpoint in messages and settings, its address and its timeouts."""

    name: str
    settings: str
    advice: Mapping[int, str]
    """Advice by status code of a refusal."""
    url: str
    key: str = field(repr=False)
    timeout_seconds: float
    attempts: int
    slow_seconds: float
    """A call that is cancelled after this time counts as a failure of the endpoint."""


class EndpointUnavailableError(Exception):
    """The endpoint gave no answer, despite retries; adapters convert it to our errors."""


class RefusedError(Exception):
    """The endpoint refused the request; adapters convert it to our errors."""

    def __init__(self, message: str, status: int = 0, detail: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.detail = detail
        """The endpoint's own text, for inspection only: it must not be shown, because it may quote the request."""


class _TransientError(Exception):
    """A temporary failure, and the delay that the endpoint requested; used only in this module."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class EndpointClient:
    """Sends requests to an endpoint, with retries, a deadline and a circuit breaker."""

    def __init__(
        self,
        reach: EndpointAddress,
        breaker: Breaker | None = None,
        clock: Callable[[], float] = time.monotonic,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        _check_reach(reach)
        self._reach = reach
        self._breaker = breaker or Breaker()
        self._clock = clock
        self._random = SystemRandom()
        self._client = httpx.AsyncClient(
            headers=_headers(reach.key),
            timeout=reach.timeout_seconds,
            trust_env=False,
            follow_redirects=False,
            transport=transport,
        )

    async def close_connections(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def calling(self, seconds: float) -> AsyncIterator[float]:
        """Allow a call unless the breaker is open; yield the time by which it must end."""
        name = self._reach.name
        if self._client.is_closed:
            raise RefusedError(f"the client for {name} is closed")
        if not self._breaker.allow(self._clock()):
            wait = self._breaker.wait(self._clock())
            raise EndpointUnavailableError(f"{name} keeps failing; the next try is due in {wait:.0f} s")
        try:
            async with asyncio.timeout(seconds):
                yield self._clock() + seconds
        except TimeoutError:
            raise EndpointUnavailableError(f"{name} gave no answer in {seconds:g} s; try later") from None
        finally:
            self._breaker.release()

    async def post(
        self,
        path: str,
        question: Mapping[str, object],
        most_bytes: int,
        until: float,
        refusals: frozenset[int] = frozenset(),
    ) -> Any:  # noqa: ANN401 - parsed JSON; the caller checks it
        """Return the JSON of the response; temporary failures are retried, refusals never."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._ask(path, question, most_bytes, refusals)
            except _TransientError as error:
                failure = error
            delay = max(failure.retry_after, self._jitter(attempt))
            now = self._clock()
            spent = attempt >= self._reach.attempts or now + delay >= until
            if spent or self._breaker.state(now) is State.OPEN:
                raise EndpointUnavailableError(f"{failure}; try later") from None
            await asyncio.sleep(delay)

    def _jitter(self, attempt: int) -> float:
        longest = min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** (attempt - 1))
        return self._random.uniform(0, longest)

    async def _ask(self, path: str, question: Mapping[str, object], most_bytes: int, refusals: frozenset[int]) -> Any:  # noqa: ANN401 - parsed JSON
        """Make one request, and record its outcome in the breaker."""
        started = self._clock()
        try:
            async with asyncio.timeout(self._reach.timeout_seconds):
                answer = await self._request(path, question, most_bytes, refusals)
        except (_TransientError, httpx.HTTPError, TimeoutError) as error:
            self._breaker.fail(self._clock())
            if isinstance(error, _TransientError):
                raise
            kind = type(error).__name__
            raise _TransientError(f"{self._reach.name} sent an incomplete response ({kind})") from None
        except RefusedError:
            # An endpoint that refuses is available: only missing answers and server errors count as failures.
            self._breaker.succeed()
            raise
        except asyncio.CancelledError:
            if self._clock() - started >= self._reach.slow_seconds:
                self._breaker.fail(self._clock())
            raise
        self._breaker.succeed()
        return answer

    async def _request(
        self, path: str, question: Mapping[str, object], most_bytes: int, refusals: frozenset[int]
    ) -> Any:  # noqa: ANN401 - parsed JSON
        body = bytearray()
        url = self._reach.url.rstrip("/") + path
        # A lone surrogate is not a valid character: it is sent as a question mark, so that the request does not fail.
        content = json.dumps(question, ensure_ascii=False).encode("utf-8", "replace")
        async with self._client.stream("POST", url, content=content) as response:
            if not response.is_success:
                await self._refuse(response, refusals)
            async for part in response.aiter_bytes():
                body += part
                if len(body) > most_bytes:
                    raise RefusedError(f"{self._reach.name} sent over {most_bytes} bytes")
        try:
            return json.loads(body)
        except ValueError:
            raise _TransientError(f"{self._reach.name}'s answer is not JSON") from None

    async def _refuse(self, response: httpx.Response, refusals: frozenset[int]) -> None:
        status = response.status_code
        message = f"{self._reach.name} answered {status}: {self._reach.advice.get(status, OTHER_ADVICE)}"
        if status not in refusals and (status in TRANSIENT_STATUS or status >= 500):
            wait = read_retry_after(response.headers.get("Retry-After", ""), datetime.now(UTC))
            raise _TransientError(message, min(wait, MAX_RETRY_AFTER_SECONDS))
        detail = bytearray()
        with suppress(httpx.HTTPError):
            async for part in response.aiter_bytes():
                detail += part
                if len(detail) > MAX_DETAIL_BYTES:
                    break
        raise RefusedError(message, status, detail.decode("utf-8", "replace"))


def read_retry_after(header: str, now: datetime) -> float:
    """Return the seconds of a Retry-After header, as a number or a date; 0 without one."""
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - now).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _headers(key: str) -> dict[str, str]:
    # No compression: a small response must not expand beyond the limit in one step.
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    return headers | ({"Authorization": f"Bearer {key}"} if key else {})


def _check_reach(reach: EndpointAddress) -> None:
    if not reach.url.startswith(("http://", "https://")):
        raise SetupError(f"{reach.settings}_URL must begin with http:// or https://")
    if not (reach.key.isascii() and (reach.key.isprintable() or not reach.key)):
        raise SetupError(f"{reach.settings}_KEY holds a character that no header can carry")
