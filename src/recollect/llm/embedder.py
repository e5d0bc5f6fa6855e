"""What the rest of Recollect asks of an embedding model, and the check every answer must pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recollect.errors import EmbedderError
from recollect.models.recall import Script
from recollect.models.service import EmbeddingSpace

SHORTEST, LONGEST = 1e-6, 1e18
"""A norm outside of these bounds means no direction, or one that float32 cannot hold."""


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

    @property
    def scripts(self) -> frozenset[Script]:
        """Say which script the model can read."""
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, in order, as rows of shape (n, dimensions)."""
        ...

    async def close(self) -> None:
        """Release what the model holds; it cannot embed afterwards."""
        ...


def serves(embedder: Embedder | None, space: EmbeddingSpace | None) -> bool:
    """Tell whether an embedder's vectors belong to a space."""
    if embedder is None or space is None:
        return False
    return (embedder.model, embedder.dimensions) == (space.model, space.dimensions)


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
