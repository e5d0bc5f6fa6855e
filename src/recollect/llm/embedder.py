"""The interface of embedding models, and the check that every result must pass."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recollect.core.text.terms import has_ideographs
from recollect.errors import EmbedderError
from recollect.models.memories import Embedding
from recollect.models.service import EmbeddingSpace
from recollect.tracing import span

MINILM = "all-MiniLM-L6-v2@1"
GLOSS = "all-MiniLM-L6-v2@1+cc-cedict@1"
"""MiniLM that reads Chinese through a gloss. The number after CC-CEDICT increases when glosses change."""
CREDITS = {GLOSS: "CC-CEDICT, published by MDBG, CC BY-SA 4.0: https://creativecommons.org/licenses/by-sa/4.0/"}
"""The authors of data in a space, if a license requires attribution."""
LOCAL = (GLOSS, MINILM)
"""The models that run in this process, the one with more languages first."""
MIN_NORM, MAX_NORM = 1e-6, 1e18
"""A norm outside of these bounds means no direction, or overflow of float32."""


MAX_CACHED_VECTORS = 4_096
"""Maximum number of recent vectors to cache in a process: about 6 MB for vectors with 384 numbers."""


class Embedder(Protocol):
    """Converts texts to unit vectors; raises only EmbedderError."""

    @property
    def model(self) -> str:
        """Return the name of the embedding space; it changes if vectors are no longer comparable."""
        ...

    @property
    def dimensions(self) -> int:
        """Return the number of dimensions."""
        ...

    def reads(self, text: str) -> bool:
        """Return whether the model can read a text; otherwise its vector has no meaning."""
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, in order, as rows of shape (n, dimensions)."""
        ...

    async def embed_cues(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the same for cues: some models encode queries and documents differently."""
        ...

    async def close(self) -> None:
        """Release resources; the embedder cannot be used afterwards."""
        ...


class TracedEmbedder:
    """An embedder whose calls are traced."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.model, self.dimensions, self.reads = embedder.model, embedder.dimensions, embedder.reads

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text."""
        with span("embed") as traced:
            traced.note(model=self.model, texts=len(texts))
            return await self._embedder.embed(texts)

    async def embed_cues(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per cue."""
        with span("embed") as traced:
            traced.note(model=self.model, texts=len(texts))
            return await self._embedder.embed_cues(texts)

    async def close(self) -> None:
        """Close the embedder."""
        await self._embedder.close()


def serves(embedder: Embedder | None, space: EmbeddingSpace | None) -> bool:
    """Return whether an embedder's vectors belong to a space."""
    if embedder is None or space is None:
        return False
    return (embedder.model, embedder.dimensions) == (space.model, space.dimensions)


def explain_not_served(embedder: Embedder | None, space: EmbeddingSpace | None) -> str:
    """Return why an embedder does not serve the active space; empty if it does, or without a space."""
    if space is None or serves(embedder, space):
        return ""
    had = f"the embedder here is {embedder.model}" if embedder else "no embedder is configured here"
    return f"{had}, the active space is {space.model}"


def shares_vector(model: str, other: str, text: str) -> bool:
    """Return whether two models have the same vector of a text: local models do, unless it is glossed."""
    return model == other or ({model, other} == set(LOCAL) and not has_ideographs(text))


def check_vectors(rows: ArrayLike, count: int, dimensions: int) -> NDArray[np.float32]:
    """Scale rows to unit length, or refuse rows that no search can use."""
    try:
        vectors = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise EmbedderError("the model's answer is not a table of numbers", lasting=True) from None
    if count == 0 and vectors.size == 0:
        return np.empty((0, dimensions), dtype=np.float32)
    if vectors.shape != (count, dimensions):
        shape = " x ".join(map(str, vectors.shape))
        raise EmbedderError(
            f"the model returned {shape} values instead of {count} x {dimensions}; check the configured dimensions",
            lasting=True,
        )
    if not np.isfinite(vectors).all():
        raise EmbedderError("the model gave numbers that are not finite", lasting=True)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if (norms <= MIN_NORM).any() or (norms >= MAX_NORM).any():
        raise EmbedderError("the model returned a zero-length or oversized vector", lasting=True)
    unit: NDArray[np.float32] = (vectors / norms).astype(np.float32)
    return unit


class RecentVectors:
    """The vectors of this process's recent texts, by model and text."""

    def __init__(self, most: int = MAX_CACHED_VECTORS) -> None:
        self._most = most
        self._known: OrderedDict[tuple[str, bytes], Embedding] = OrderedDict()

    async def embed(self, embedder: Embedder, texts: Sequence[str], batch: int) -> dict[str, Embedding]:
        """Return the vector of each text; unknown texts are embedded in batches."""
        keys = {text: (embedder.model, blake2b(text.encode(), digest_size=16).digest()) for text in texts}
        found = {text: self._known[key] for text, key in keys.items() if key in self._known}
        lacking = [text for text in keys if text not in found]
        for first in range(0, len(lacking), batch):
            some = lacking[first : first + batch]
            found |= dict(zip(some, await embedder.embed(some), strict=True))
        for text, key in keys.items():
            self._known[key] = found[text]
            self._known.move_to_end(key)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return found
