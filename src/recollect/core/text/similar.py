"""How alike two texts are, and the part of one that says most."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from recollect.core.text.terms import analyse
from recollect.models.recall import Ranked

NEARLY = 0.9
"""Two memories are nearly the same if they share this part of all their terms."""
MOST_WHOLE = 10
"""Up to so many are shown without leaving any out."""
BEGINNING, MIDDLE, END = 2, 4, 2
T = TypeVar("T")


def collapse(
    ranking: Sequence[Ranked], beginnings: Mapping[UUID, str], limit: int
) -> list[tuple[Ranked, tuple[UUID, ...]]]:
    """Of memories that begin nearly the same keep the best, each with its duplicates."""
    kept: list[Ranked] = []
    said: list[frozenset[str]] = []
    alike: dict[int, list[UUID]] = {}
    for hit in ranking:
        terms = frozenset(analyse(beginnings.get(hit.id, ""))) or frozenset({str(hit.id)})
        place = next((place for place, other in enumerate(said) if is_same(terms, other)), None)
        if place is not None:
            alike.setdefault(place, []).append(hit.id)
        elif len(kept) < limit:
            kept.append(hit)
            said.append(terms)
    return [(hit, tuple(alike.get(place, ()))) for place, hit in enumerate(kept)]


def fold_width(text: str) -> str:
    """Fold a text to the width of keywords, so that its colons are recognised."""
    return unicodedata.normalize("NFKC", text)


def fold_text(text: str) -> str:
    """Bring a text to the form in which it is compared: without case, width, and marks at its end."""
    return " ".join(fold_width(text).casefold().split()).rstrip(".。!！")


def is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether two sets of terms are nearly the same."""
    if len(one) < NEARLY * len(other) or len(other) < NEARLY * len(one):
        return False
    return len(one & other) >= NEARLY * len(one | other)


@dataclass(frozen=True, slots=True)
class SourceText:
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
