"""Find memories that say nearly the same, so that a hit stands for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from recollect.core.terms import analyse
from recollect.models.recall import Ranked

NEARLY = 0.9
"""Of all terms of two memories, so many must be in both."""


def collapse(
    ranking: Sequence[Ranked], beginnings: Mapping[UUID, str], limit: int
) -> list[tuple[Ranked, tuple[UUID, ...]]]:
    """Keep of memories that begin nearly the same the best, each with the others that it stands for."""
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


def is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether two sets of terms are nearly the same."""
    if min(len(one), len(other)) < NEARLY * max(len(one), len(other)):
        return False
    return len(one & other) >= NEARLY * len(one | other)
