"""What the founding design's scoring step computes: three factors over all candidates, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

GAINS = (0.5, 3.0, 2.0)


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate as `memory_nodes` holds it."""

    id: str
    type: str
    description: str
    poignancy: float
    embedding: tuple[float, ...]
    last_accessed: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The numbers of one retrieval."""

    top_k: int = 30
    recency_w: float = 1.0
    relevance_w: float = 1.0
    importance_w: float = 1.0
    recency_decay: float = 0.99


def retrieve(rows: Sequence[Row], focal: Sequence[float], asked: Asked) -> tuple[list[tuple[str, float]], list[float]]:
    """Give the best ids with their scores, and the scores of all candidates."""
    kept = [row for row in rows if row.type in {"event", "thought"} and "idle" not in row.description.lower()]
    ordered = sorted(kept, key=lambda row: row.last_accessed)
    recency = scale([asked.recency_decay**place for place in range(1, len(ordered) + 1)])
    relevance = scale([cosine(row.embedding, focal) for row in ordered])
    importance = scale([row.poignancy for row in ordered])
    weights = (asked.recency_w * GAINS[0], asked.relevance_w * GAINS[1], asked.importance_w * GAINS[2])
    scores = [
        sum(weight * factor for weight, factor in zip(weights, factors, strict=True))
        for factors in zip(recency, relevance, importance, strict=True)
    ]
    ranked = sorted(zip(ordered, scores, strict=True), key=lambda pair: -pair[1])
    return [(row.id, score) for row, score in ranked[: asked.top_k]], scores


def scale(values: Sequence[float]) -> list[float]:
    """Scale to 0..1 between the least and the greatest; one half for all where these are the same."""
    least, greatest = min(values), max(values)
    if least == greatest:
        return [0.5] * len(values)
    return [(value - least) / (greatest - least) for value in values]


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Compare two directions."""
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / (math.hypot(*one) * math.hypot(*other))
