"""A deterministic embedder without a model, by words and letter pairs, for trials and tests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from recollect.errors import EmbedderError
from recollect.llm.embedder import check_vectors

WORD_WEIGHT, PAIR_WEIGHT = 1.0, 0.5
LONG = 2_000


class FakeEmbedder:
    """Hashes words and letter pairs into buckets; can simulate an outage and a delay."""

    def __init__(self, dimensions: int = 64) -> None:
        self.model = f"fake-{dimensions}@1"
        self.dimensions = dimensions
        self.delay_seconds = 0.0
        self.calls = 0
        self._outage: EmbedderError | None = None

    def reads(self, text: str) -> bool:  # noqa: ARG002 - required by the protocol
        """Return that any text is readable."""
        return True

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, always the same for the same text."""
        self.calls += 1
        if self.delay_seconds > 0:
            await asyncio.sleep(self.delay_seconds)
        if self._outage is not None:
            raise self._outage
        if sum(map(len, texts)) > LONG:
            # In a thread, like a real embedder, so that the event loop does not wait.
            return await asyncio.to_thread(self._place_all, texts)
        return self._place_all(texts)

    async def embed_cues(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the same vectors for cues."""
        return await self.embed(texts)

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _place_all(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return check_vectors([self._place(text) for text in texts], len(texts), self.dimensions)

    def fail(self, *, lasting: bool = False) -> None:
        """Make every further call fail."""
        self._outage = EmbedderError("the fake embedder is switched off", lasting=lasting)

    def recover(self) -> None:
        """End the outage."""
        self._outage = None

    def _place(self, text: str) -> list[float]:
        row = [0.0] * self.dimensions
        for feature, weight in _features(text):
            number = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
            sign = 1.0 if number & 1 else -1.0
            row[(number >> 1) % self.dimensions] += sign * weight
        if not any(row):
            row[0] = 1.0
        return row


def _features(text: str) -> Iterator[tuple[str, float]]:
    yield "text", 0.01
    for word in re.findall(r"\w+", text.casefold()):
        yield f"word {word}", WORD_WEIGHT
        for first, second in pairwise(word):
            yield f"pair {first}{second}", PAIR_WEIGHT
