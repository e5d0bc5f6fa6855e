"""Embeddings from any OpenAI-compatible endpoint, asked with patience and given up in time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import SystemRandom
from typing import Literal

import httpx
import numpy as np
from numpy.typing import NDArray

from recollect.errors import EmbedderError, SetupError
from recollect.llm.answer import most_bytes, read_retry_after, read_vectors
from recollect.llm.breaker import Breaker, State
from recollect.models import Script

TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 0.25, 8.0
LONGEST_RETRY_AFTER_SECONDS = 30.0
ADVICE = {
    400: "check RECOLLECT_EMBEDDER_MODEL, RECOLLECT_EMBEDDER_BATCH and the length of the texts",
    401: "check RECOLLECT_EMBEDDER_KEY",
    403: "the key may not use this model; check RECOLLECT_EMBEDDER_KEY",
    404: "check RECOLLECT_EMBEDDER_URL (it ends in /v1) and RECOLLECT_EMBEDDER_MODEL",
    413: "lower RECOLLECT_EMBEDDER_BATCH",
    429: "lower the load or raise the endpoint's limit",
}
OTHER_ADVICE = "look into the endpoint's log"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model is, how to ask it, and how long to bear with it."""

    url: str
    model: str
    dimensions: int
    key: str = field(default="", repr=False)
    batch: int = 64
    parallel: int = 4
    """Batches of one call that are under way together."""
    characters: int = 6000
    """Longer texts are cut, because most endpoints refuse what exceeds their model's window."""
    timeout_seconds: float = 10.0
    deadline_seconds: float = 30.0
    patience_seconds: float = 0.5
    """A caller who gives up after this long counts as a failure of the endpoint."""
    attempts: int = 4
    encoding: Literal["float", "base64"] = "float"
    send_dimensions: bool = False
    """Ask for the dimensions by name; only some models can choose them, the others refuse."""


class _TransientError(Exception):
    """A failure worth another attempt, and how long the endpoint asked to wait; stays in this module."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class OpenAIEmbedder:
    """Ask an endpoint for vectors: in batches, with retries, a deadline and a circuit breaker."""

    scripts = frozenset(Script)

    def __init__(
        self,
        endpoint: Endpoint,
        breaker: Breaker | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _check_endpoint(endpoint)
        self.model = endpoint.model
        self.dimensions = endpoint.dimensions
        self._endpoint = endpoint
        self._breaker = breaker or Breaker()
        self._clock = clock
        self._random = SystemRandom()
        self._client = httpx.AsyncClient(
            headers=_headers(endpoint.key),
            timeout=endpoint.timeout_seconds,
            trust_env=False,
            follow_redirects=False,
        )

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, in order, or raise EmbedderError before the deadline."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        if self._client.is_closed:
            raise EmbedderError("the embedder is closed", lasting=True)
        if not self._breaker.admit(self._clock()):
            wait = self._breaker.wait(self._clock())
            raise EmbedderError(f"the embedding endpoint keeps failing; the next try is due in {wait:.0f} s")
        seconds = self._endpoint.deadline_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._embed_batches([text[: self._endpoint.characters] for text in texts])
        except TimeoutError:
            raise EmbedderError(f"the embedding endpoint gave no answer in {seconds:g} s; try later") from None
        finally:
            self._breaker.release()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _embed_batches(self, texts: list[str]) -> NDArray[np.float32]:
        slots = asyncio.Semaphore(self._endpoint.parallel)
        until = self._clock() + self._endpoint.deadline_seconds

        async def embed_one(batch: list[str]) -> NDArray[np.float32]:
            async with slots:
                return await self._embed_patiently(batch, until)

        size = self._endpoint.batch
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(embed_one(texts[start : start + size])) for start in range(0, len(texts), size)
                ]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return np.concatenate([task.result() for task in tasks])

    async def _embed_patiently(self, texts: list[str], until: float) -> NDArray[np.float32]:
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._ask(texts)
            except _TransientError as error:
                failure = error
            delay = max(failure.retry_after, self._jitter(attempt))
            now = self._clock()
            spent = attempt >= self._endpoint.attempts or now + delay >= until
            if spent or self._breaker.state(now) is State.OPEN:
                raise EmbedderError(f"{failure}; try later") from None
            await asyncio.sleep(delay)

    def _jitter(self, attempt: int) -> float:
        longest = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** (attempt - 1))
        return self._random.uniform(0, longest)

    async def _ask(self, texts: list[str]) -> NDArray[np.float32]:
        """Make one request and tell the breaker how it went."""
        started = self._clock()
        try:
            async with asyncio.timeout(self._endpoint.timeout_seconds):
                vectors = await self._request(texts)
        except (_TransientError, httpx.HTTPError, TimeoutError) as error:
            self._breaker.fail(self._clock())
            if isinstance(error, _TransientError):
                raise
            kind = type(error).__name__
            raise _TransientError(f"the embedding endpoint gave no whole answer ({kind})") from None
        except EmbedderError:
            # An endpoint that says no is there: only its silence and its own errors count against it.
            self._breaker.succeed()
            raise
        except asyncio.CancelledError:
            if self._clock() - started >= self._endpoint.patience_seconds:
                self._breaker.fail(self._clock())
            raise
        self._breaker.succeed()
        return vectors

    async def _request(self, texts: list[str]) -> NDArray[np.float32]:
        limit = most_bytes(len(texts), self.dimensions)
        body = bytearray()
        url = self._endpoint.url.rstrip("/") + "/embeddings"
        async with self._client.stream("POST", url, content=self._question(texts)) as response:
            _check_status(response)
            async for part in response.aiter_bytes():
                body += part
                if len(body) > limit:
                    raise EmbedderError(f"the embedding endpoint sent over {limit} bytes", lasting=True)
        try:
            answer = json.loads(body)
        except ValueError:
            raise _TransientError("the embedding endpoint's answer is not JSON") from None
        return read_vectors(answer, len(texts), self.dimensions)

    def _question(self, texts: list[str]) -> bytes:
        question: dict[str, object] = {
            "model": self._endpoint.model,
            "input": texts,
            "encoding_format": self._endpoint.encoding,
        }
        if self._endpoint.send_dimensions:
            question["dimensions"] = self.dimensions
        # A lone surrogate is no character: it goes out as a question mark instead of failing the batch.
        return json.dumps(question, ensure_ascii=False).encode("utf-8", "replace")


def _headers(key: str) -> dict[str, str]:
    # No compression: a small answer must not be able to swell beyond the limit in one step.
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    return headers | ({"Authorization": f"Bearer {key}"} if key else {})


def _check_endpoint(endpoint: Endpoint) -> None:
    if not endpoint.url.startswith(("http://", "https://")):
        raise SetupError("RECOLLECT_EMBEDDER_URL must begin with http:// or https://")
    if not endpoint.model or endpoint.dimensions < 1:
        raise SetupError("set RECOLLECT_EMBEDDER_MODEL and RECOLLECT_EMBEDDER_DIMENSIONS for the endpoint")
    if not (endpoint.key.isascii() and (endpoint.key.isprintable() or not endpoint.key)):
        raise SetupError("RECOLLECT_EMBEDDER_KEY holds a character that no header can carry")


def _check_status(response: httpx.Response) -> None:
    status = response.status_code
    if response.is_success:
        return
    message = f"the embedding endpoint answered {status}: {ADVICE.get(status, OTHER_ADVICE)}"
    if status in TRANSIENT_STATUS or status >= 500:
        wait = read_retry_after(response.headers.get("Retry-After", ""), datetime.now(UTC))
        raise _TransientError(message, min(wait, LONGEST_RETRY_AFTER_SECONDS))
    raise EmbedderError(message, lasting=True)
