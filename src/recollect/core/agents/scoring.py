"""Score the memory stream by recency, similarity and importance, in plain floats; the tests compare the SQL with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from recollect.models.memories import Kind
from recollect.models.recall import Candidate, ChannelStats, Factors, Mode, StreamWeights

DEFAULT = StreamWeights(recency=1.0, similarity=1.0, importance=1.0, gains=(0.5, 3.0, 2.0), decay=0.99)
PAPER_DEFAULTS = StreamWeights(recency=1.0, similarity=1.0, importance=1.0, gains=(1.0, 1.0, 1.0), decay=0.995)
STREAM_KINDS = (Kind.MESSAGE, Kind.EVENT, Kind.THOUGHT, Kind.FACT, Kind.SUMMARY)
"""Kinds that the stream ranks by default. Other channels recall chats."""
NEGLIGIBLE = 1e-6
"""Beyond the horizon, recency adds less than this to a score."""
MAX_RANK = 1_000_000
MIN_EXPONENT = -700.0
"""PostgreSQL refuses powers that are too small for a double, so both implementations stop before that."""
HOUR = timedelta(hours=1)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class ResolvedWeighing:
    """The weights of the stream for one recall, with every value set."""

    mode: Mode
    weights: tuple[float, float, float]
    """For recency, similarity and importance, already multiplied by the gains."""
    decay: float


@dataclass(frozen=True, slots=True)
class ScoringInput:
    """The values of one memory that scoring needs."""

    id: UUID
    kind: Kind
    last_accessed_at: datetime
    importance: float
    similarity: float | None
    """The cosine similarity to the cue; None if the memory has no vector."""


def resolve_weighing(asked: StreamWeights, agent: StreamWeights) -> ResolvedWeighing:
    """Choose every value: from the request, else from the agent (same mode only), else the default."""
    mode = asked.mode or agent.mode or Mode.NEWEST
    usual = PAPER_DEFAULTS if mode is Mode.PAPER else DEFAULT
    own = agent if (agent.mode or Mode.NEWEST) is mode else StreamWeights()
    gains = _first(asked.gains, own.gains, usual.gains)
    weights = (
        _first(asked.recency, own.recency, usual.recency) * gains[0],
        _first(asked.similarity, own.similarity, usual.similarity) * gains[1],
        _first(asked.importance, own.importance, usual.importance) * gains[2],
    )
    return ResolvedWeighing(mode, weights, _first(asked.decay, own.decay, usual.decay))


def horizon(resolved: ResolvedWeighing) -> int:
    """Return the rank beyond which recency is negligible."""
    # Even if recency has a low weight: its rank is returned, and weights may be learned from it.
    weight, decay = max(resolved.weights[0], 1.0), resolved.decay
    # By the hour, any number of memories can be as recent as the first.
    if resolved.mode is Mode.PAPER or decay == 1:
        return MAX_RANK
    return min(math.floor(math.log(NEGLIGIBLE / weight) / math.log(decay)) + 2, MAX_RANK)


def score(considered: Sequence[ScoringInput], resolved: ResolvedWeighing) -> tuple[list[Candidate], ChannelStats]:
    """Rank all memories by the weighted sum of their scaled factors; ties keep the order of recency."""
    ordered = sort_by_recency(considered, resolved.mode)
    if not ordered:
        return [], ChannelStats(0, None, None)
    recency = scale(_decayed(ordered, resolved))
    similarity = scale(_similarities(ordered))
    importance = scale([memory.importance for memory in ordered])
    found = map(Factors, recency, similarity, importance, range(1, len(ordered) + 1))
    scored = [
        Candidate(memory.id, weighted_sum(factors, resolved), factors)
        for memory, factors in zip(ordered, found, strict=True)
    ]
    scored.sort(key=lambda candidate: candidate.score, reverse=True)
    return scored, ChannelStats(len(scored), scored[-1].score, scored[0].score)


def sort_by_recency(considered: Sequence[ScoringInput], mode: Mode) -> list[ScoringInput]:
    """Sort by recency; among equals thoughts come last, and newer memories before older ones."""
    ordered = sorted(considered, key=lambda memory: (memory.kind is Kind.THOUGHT, -memory.id.int))
    ordered.sort(key=lambda memory: memory.last_accessed_at, reverse=mode is not Mode.ORIGINAL)
    return ordered


def weighted_sum(factors: Factors, resolved: ResolvedWeighing) -> float:
    """Add up the weighted factors."""
    recency, similarity, importance = resolved.weights
    return recency * factors.recency + similarity * factors.similarity + importance * factors.importance


def scale(values: Sequence[float]) -> list[float]:
    """Map values to 0..1 between their minimum and maximum; if these are equal, all values become 0.5."""
    least, greatest = min(values), max(values)
    if least == greatest:
        return [0.5] * len(values)
    return [(value - least) / (greatest - least) for value in values]


def _decayed(ordered: Sequence[ScoringInput], resolved: ResolvedWeighing) -> list[float]:
    """Return the decay of recency: by rank, or by hours since the last access."""
    if resolved.mode is Mode.PAPER:
        # Counted from the latest access instead of now: scaling removes the difference.
        latest = ordered[0].last_accessed_at
        steps = [(latest - memory.last_accessed_at) / HOUR for memory in ordered]
    else:
        steps = [float(rank) for rank in range(len(ordered))]
    fade = math.log(resolved.decay)
    return [math.exp(max(fade * step, MIN_EXPONENT)) for step in steps]


def _similarities(ordered: Sequence[ScoringInput]) -> list[float]:
    """Return the similarities; a memory without a vector gets the lowest similarity of the others."""
    least = min((memory.similarity for memory in ordered if memory.similarity is not None), default=0.0)
    return [least if memory.similarity is None else memory.similarity for memory in ordered]


def _first(*values: Value | None) -> Value:
    return next(value for value in values if value is not None)
