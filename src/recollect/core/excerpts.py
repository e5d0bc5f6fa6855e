"""Show a long run of things by its beginning, its middle and its end, and say how many are left out in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

MOST_WHOLE = 10
"""So many are shown without leaving any out."""
BEGINNING, MIDDLE, END = 2, 4, 2
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Quote:
    """What one source of a memory says."""

    id: UUID
    speaker: str
    content: str
    occurred_at: datetime


def excerpt(run: Sequence[T], *, compact: bool = False) -> list[T | int]:
    """Take two from the beginning, four from the middle and two from the end; a number stands for what lies between.

    The compact form begins with the middle, and its first number counts the beginning, too.
    """
    if len(run) <= MOST_WHOLE:
        return list(run)
    start = max(BEGINNING, (len(run) - MIDDLE) // 2)
    behind = len(run) - END
    head: list[T | int] = [] if compact else [*run[:BEGINNING]]
    skipped = start - len(head)
    return [*head, *_gap(skipped), *run[start : start + MIDDLE], *_gap(behind - start - MIDDLE), *run[behind:]]


def _gap(count: int) -> list[int]:
    return [count] if count else []
