"""An embedder without a model, for tests: texts that share words or letters lie near each other."""

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
from recollect.models import Script

WORD_WEIGHT, PAIR_WEIGHT = 1.0, 0.5


class FakeEmbedder:
    """Hash words and pairs of letters into buckets; an outage and a delay can be switched on."""

    scripts = frozenset(Script)

    def __init__(self, dimensions: int = 64) -> None:
        self.model = f"fake-{dimensions}@1"
        self.dimensions = dimensions
        self.delay_seconds = 0.0
        self.calls = 0
        self._outage: EmbedderError | None = None

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, the same for the same text for ever."""
        self.calls += 1
        if self.delay_seconds > 0:
            await asyncio.sleep(self.delay_seconds)
        if self._outage is not None:
            raise self._outage
        rows = [self._place(text) for text in texts]
        return check_vectors(rows, len(texts), self.dimensions)

    async def close(self) -> None:
        """Do nothing: there is nothing to give back."""

    def fail(self, *, lasting: bool = False) -> None:
        """Refuse every call from now on."""
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
