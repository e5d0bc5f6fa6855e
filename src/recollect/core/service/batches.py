"""Divide work into portions of bounded number and size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def divide(items: Sequence[T], measure: Callable[[T], int], most: int, largest: int) -> Iterator[Sequence[T]]:
    """Divide items, in order, into portions of bounded number and size; a larger item is alone."""
    start = size = 0
    for position, item in enumerate(items):
        length = measure(item)
        if position > start and (position - start == most or size + length > largest):
            yield items[start:position]
            start, size = position, 0
        size += length
    if start < len(items):
        yield items[start:]
