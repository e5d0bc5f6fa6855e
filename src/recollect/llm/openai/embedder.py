"""An OpenAI-compatible embedding endpoint, with retries, a timeout, and checked answers."""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from recollect.errors import EmbedderError, SetupError
from recollect.llm.embedder import check_vectors
from recollect.llm.endpoint import Breaker, EndpointAddress, EndpointClient, EndpointUnavailableError, RefusedError

BYTES_PER_NUMBER, BYTES_PER_ANSWER = 40, 65_536
"""Upper limits for a float in JSON with its blanks, and for the rest of the response."""
MAX_DIMENSIONS = 4096
ADVICE = {
    400: "check RECOLLECT_EMBEDDER_MODEL, RECOLLECT_EMBEDDING__MAX_BATCH_SIZE and the length of the texts",
    401: "check RECOLLECT_EMBEDDER_KEY",
    402: "the account has no balance",
    403: "the key may not use this model; check RECOLLECT_EMBEDDER_KEY",
    404: "check RECOLLECT_EMBEDDER_URL (it ends in /v1) and RECOLLECT_EMBEDDER_MODEL",
    413: "lower RECOLLECT_EMBEDDING__MAX_BATCH_SIZE",
    429: "lower the load or raise the endpoint's limit",
}


def most_bytes(count: int) -> int:
    """Return the maximum size of a valid response."""
    return count * MAX_DIMENSIONS * BYTES_PER_NUMBER + BYTES_PER_ANSWER


def find_length(answer: Any) -> int | None:  # noqa: ANN401 - parsed JSON
    """Return the length of the first vector in a response, or None."""
    items = answer.get("data") if isinstance(answer, dict) else None
    row = items[0].get("embedding") if isinstance(items, list) and items and isinstance(items[0], dict) else None
    return len(row) if isinstance(row, list) else None


def read_vectors(answer: Any, count: int, dimensions: int) -> NDArray[np.float32]:  # noqa: ANN401 - parsed JSON
    """Return the vectors of a response in the order of the request, or raise an error."""
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise EmbedderError("the embedding endpoint's answer has no list `data`; check the URL", lasting=True)
    if len(items) != count:
        raise EmbedderError(f"the embedding endpoint gave {len(items)} vectors for {count} texts", lasting=True)
    rows = [_read_row(item.get("embedding")) for item in _in_order(items)]
    return check_vectors(rows, count, dimensions)


def _in_order(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    places = [item.get("index") for item in items]
    if all(place is None for place in places):
        return items
    by_place = {place: item for place, item in zip(places, items, strict=True) if isinstance(place, int)}
    if by_place.keys() != set(range(len(items))):
        raise EmbedderError("the embedding endpoint numbered its vectors wrongly", lasting=True)
    return [by_place[place] for place in range(len(items))]


def _read_row(value: Any) -> Any:  # noqa: ANN401 - parsed JSON; check_vectors checks it
    if not isinstance(value, str):
        return value
    try:
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
    except (binascii.Error, ValueError):
        raise EmbedderError("the embedding endpoint sent broken base64", lasting=True) from None


@dataclass(frozen=True, slots=True)
class EmbedderEndpoint:
    """The address of the model, the form of requests, and the timeouts."""

    url: str
    model: str
    dimensions: int
    key: str = field(default="", repr=False)
    batch: int = 64
    parallel: int = 4
    """Maximum number of batches of one call in parallel."""
    characters: int = 6000
    """Longer texts are cut, because most endpoints refuse texts beyond their model's window."""
    timeout_seconds: float = 10.0
    deadline_seconds: float = 30.0
    slow_seconds: float = 0.5
    """A call that is cancelled after this time counts as a failure of the endpoint."""
    attempts: int = 4
    encoding: Literal["float", "base64"] = "float"


class OpenAIEmbedder:
    """Requests vectors from an endpoint: in batches, with retries."""

    def __init__(
        self,
        endpoint: EmbedderEndpoint,
        breaker: Breaker | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not endpoint.model or endpoint.dimensions < 1:
            raise SetupError("set RECOLLECT_EMBEDDER_MODEL and RECOLLECT_EMBEDDER_DIMENSIONS for the endpoint")
        self.model = endpoint.model
        self.dimensions = endpoint.dimensions
        self._endpoint = endpoint
        self._line = EndpointClient(_reach(endpoint), breaker, clock)
        self._chooses = False
        """Whether the model returns the wanted dimensions only if the request names them."""

    def reads(self, text: str) -> bool:  # noqa: ARG002 - required by the protocol
        """Return that any text is readable; only the operator knows the languages of the model."""
        return True

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, in order, or raise EmbedderError before the deadline."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        cut = [text[: self._endpoint.characters] for text in texts]
        try:
            async with self._line.calling(self._endpoint.deadline_seconds) as until:
                return await self._embed_batches(cut, until)
        except EndpointUnavailableError as error:
            raise EmbedderError(str(error)) from None
        except RefusedError as error:
            raise EmbedderError(str(error), lasting=True) from None

    async def embed_cues(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the same vectors for cues: the protocol has only one kind of text."""
        return await self.embed(texts)

    async def close(self) -> None:
        """Close the connections."""
        await self._line.close_connections()

    async def _embed_batches(self, texts: list[str], until: float) -> NDArray[np.float32]:
        slots = asyncio.Semaphore(self._endpoint.parallel)

        async def embed_one(batch: list[str]) -> NDArray[np.float32]:
            async with slots:
                return await self._embed_batch(batch, until)

        size = self._endpoint.batch
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(embed_one(texts[start : start + size])) for start in range(0, len(texts), size)
                ]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return np.concatenate([task.result() for task in tasks])

    async def _embed_batch(self, texts: list[str], until: float) -> NDArray[np.float32]:
        """Request vectors.

        The request names the dimensions only if the default length is wrong, because some models refuse the parameter.
        """
        limit, question = most_bytes(len(texts)), self._question(texts)
        named = question | {"dimensions": self.dimensions}
        answer = await self._line.post("/embeddings", named if self._chooses else question, limit, until)
        if not self._chooses and find_length(answer) not in (None, self.dimensions):
            with suppress(RefusedError):
                answer = await self._line.post("/embeddings", named, limit, until)
                self._chooses = find_length(answer) == self.dimensions
        return read_vectors(answer, len(texts), self.dimensions)

    def _question(self, texts: list[str]) -> dict[str, object]:
        return {"model": self._endpoint.model, "input": texts, "encoding_format": self._endpoint.encoding}


def _reach(endpoint: EmbedderEndpoint) -> EndpointAddress:
    return EndpointAddress(
        name="the embedding endpoint",
        settings="RECOLLECT_EMBEDDER",
        advice=ADVICE,
        url=endpoint.url,
        key=endpoint.key,
        timeout_seconds=endpoint.timeout_seconds,
        attempts=endpoint.attempts,
        slow_seconds=endpoint.slow_seconds,
    )
