"""What an OpenAI-compatible embedding endpoint answers, read with distrust."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import EmbedderError
from recollect.llm.embedder import check_vectors

BYTES_PER_NUMBER, BYTES_PER_ANSWER = 40, 65_536
"""More than any server spends on a float in JSON with its blanks, and on all that surrounds them."""


def most_bytes(count: int, dimensions: int) -> int:
    """Return the size that an honest answer never exceeds."""
    return count * dimensions * BYTES_PER_NUMBER + BYTES_PER_ANSWER


def read_vectors(answer: Any, count: int, dimensions: int) -> NDArray[np.float32]:  # noqa: ANN401 - parsed JSON
    """Return the answer's vectors in the order of the question, or say what is wrong with them."""
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


def _read_row(value: Any) -> Any:  # noqa: ANN401 - parsed JSON; check_vectors judges it
    if not isinstance(value, str):
        return value
    try:
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
    except (binascii.Error, ValueError):
        raise EmbedderError("the embedding endpoint sent broken base64", lasting=True) from None
