"""Scale vectors from callers to unit length, or refuse them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.errors import InvalidInputError
from recollect.models.memories import Embedding

ROUNDING = 1e-6


def unit_vector(embedding: Embedding, dimensions: int) -> NDArray[np.float32]:
    """Scale a caller's embedding to unit length, or refuse it."""
    unit: NDArray[np.float32] = unit_vectors([embedding], dimensions)[0]
    return unit


def unit_vectors(embeddings: Sequence[Embedding], dimensions: int) -> NDArray[np.float32]:
    """Scale callers' embeddings to unit length, or refuse them all if one cannot be used."""
    for embedding in embeddings:
        if len(embedding) != dimensions:
            raise InvalidInputError(f"embedding must have {dimensions} dimensions, not {len(embedding)}")
    try:
        rows = np.stack([np.asarray(embedding, dtype=np.float64) for embedding in embeddings])
    except (OverflowError, TypeError, ValueError) as problem:
        raise InvalidInputError("embedding must be a list of numbers") from problem
    if rows.ndim != 2:
        raise InvalidInputError("embedding must be a flat list of numbers")
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        # NaN and infinity stay unchanged, and both are out of bounds.
        if not bool(((norms > 1e-6) & (norms < 1e18)).all()):
            raise InvalidInputError("embedding must have finite values and a length between 0 and 1e18")
    # Vectors of unit length stay unchanged, bit for bit.
    norms[np.abs(norms - 1) < ROUNDING] = 1
    scaled = rows if bool((norms == 1).all()) else rows / norms[:, None]
    unit: NDArray[np.float32] = scaled.astype(np.float32)
    return unit
