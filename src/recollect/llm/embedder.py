"""What the rest of Recollect asks of an embedding model, and the check every answer must pass."""

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
"""MiniLM that reads Chinese through a gloss. The number after CC-CEDICT rises whenever glosses change."""
CREDITS = {GLOSS: "CC-CEDICT, published by MDBG, CC BY-SA 4.0: https://creativecommons.org/licenses/by-sa/4.0/"}
"""Whose work a space is made with, where a licence wants it named."""
LOCAL = (GLOSS, MINILM)
"""The models that run in this process, the one that reads more first."""
SHORTEST, LONGEST = 1e-6, 1e18
"""A norm outside of these bounds means no direction, or one that float32 cannot hold."""


MOST_RECENT = 4_096
"""Vectors that a process keeps of what it embedded lately: about 6 MB of those with 384 numbers."""


class Embedder(Protocol):
    """Turn texts into unit vectors; raise nothing but EmbedderError."""

    @property
    def model(self) -> str:
        """Name the embedding space; it changes whenever vectors stop being comparable."""
        ...

    @property
    def dimensions(self) -> int:
        """Say how long each vector is."""
        ...

    def reads(self, text: str) -> bool:
        """Tell whether the model can read a text; the vector of one that it cannot read says nothing."""
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, in order, as rows of shape (n, dimensions)."""
        ...

    async def embed_cues(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the same of cues: some models read a question and what answers it in two ways."""
        ...

    async def close(self) -> None:
        """Release what the model holds; it cannot embed afterwards."""
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
    """Tell whether an embedder's vectors belong to a space."""
    if embedder is None or space is None:
        return False
    return (embedder.model, embedder.dimensions) == (space.model, space.dimensions)


def explain_unserved(embedder: Embedder | None, space: EmbeddingSpace | None) -> str:
    """Say why the active space gets no vectors from an embedder; empty if it does, or if there is no space."""
    if space is None or serves(embedder, space):
        return ""
    had = f"the embedder here is {embedder.model}" if embedder else "no embedder is configured here"
    return f"{had}, the active space is {space.model}"


def shares_vector(model: str, other: str, text: str) -> bool:
    """Tell whether two models have the same vector of a text: the local ones do unless it is glossed."""
    return model == other or ({model, other} == set(LOCAL) and not has_ideographs(text))


def check_vectors(rows: ArrayLike, count: int, dimensions: int) -> NDArray[np.float32]:
    """Scale the rows to unit length, or refuse what no search could use."""
    try:
        vectors = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise EmbedderError("the model's answer is not a table of numbers", lasting=True) from None
    if count == 0 and vectors.size == 0:
        return np.empty((0, dimensions), dtype=np.float32)
    if vectors.shape != (count, dimensions):
        shape = " x ".join(map(str, vectors.shape))
        raise EmbedderError(
            f"the model gave {shape} numbers for {count} x {dimensions}; set the model's true dimensions",
            lasting=True,
        )
    if not np.isfinite(vectors).all():
        raise EmbedderError("the model gave numbers that are not finite", lasting=True)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if (norms <= SHORTEST).any() or (norms >= LONGEST).any():
        raise EmbedderError("the model gave a vector without a usable length", lasting=True)
    unit: NDArray[np.float32] = (vectors / norms).astype(np.float32)
    return unit


class RecentVectors:
    """The vectors of this process's latest texts, by model and text."""

    def __init__(self, most: int = MOST_RECENT) -> None:
        self._most = most
        self._known: OrderedDict[tuple[str, bytes], Embedding] = OrderedDict()

    async def embed(self, embedder: Embedder, texts: Sequence[str], batch: int) -> dict[str, Embedding]:
        """Return the vector of each text; only those that are not known are embedded, so many at a time."""
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
