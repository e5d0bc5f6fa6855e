"""The similarity of texts, near duplicates, and excerpts of lists."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from recollect.core.text.terms import analyse
from recollect.models.recall import FusedCandidate

NEAR_DUPLICATE_RATIO = 0.9
"""Two memories are near duplicates if they share this part of all their terms."""
MAX_EXACT_TOKENS = 10
"""Lists up to this length are shown completely."""
BEGINNING, MIDDLE, END = 2, 4, 2
T = TypeVar("T")


def collapse(
    ranking: Sequence[FusedCandidate], beginnings: Mapping[UUID, str], limit: int
) -> list[tuple[FusedCandidate, tuple[UUID, ...]]]:
    """Keep the best of memories with nearly the same beginning, each with its duplicates."""
    kept: list[FusedCandidate] = []
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
    """Normalize the width of characters like keywords, so that wide colons are recognized."""
    return unicodedata.normalize("NFKC", text)


def fold_text(text: str) -> str:
    """Normalize a text for comparison: case, width, blanks, and punctuation at the end."""
    return " ".join(fold_width(text).casefold().split()).rstrip(".。!！")


def is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two sets of terms are nearly equal."""
    if len(one) < NEAR_DUPLICATE_RATIO * len(other) or len(other) < NEAR_DUPLICATE_RATIO * len(one):
        return False
    return len(one & other) >= NEAR_DUPLICATE_RATIO * len(one | other)


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of one source of a memory."""

    id: UUID
    speaker: str
    content: str
    occurred_at: datetime


def excerpt(run: Sequence[T], *, compact: bool = False) -> list[T | int]:
    """Return two items from the beginning, four from the middle and two from the end.

    A number replaces the items between them. The compact form begins with the middle; its first number includes the
    beginning.
    """
    if len(run) <= MAX_EXACT_TOKENS:
        return list(run)
    start = max(BEGINNING, (len(run) - MIDDLE) // 2)
    behind = len(run) - END
    head: list[T | int] = [] if compact else [*run[:BEGINNING]]
    skipped = start - len(head)
    return [*head, *_gap(skipped), *run[start : start + MIDDLE], *_gap(behind - start - MIDDLE), *run[behind:]]


def _gap(count: int) -> list[int]:
    return [count] if count else []
