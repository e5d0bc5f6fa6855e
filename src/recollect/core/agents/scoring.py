"""Score the memory stream by recency, similarity and importance, in plain floats; the tests compare the SQL with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from recollect.models.memories import Kind
from recollect.models.recall import Candidate, Factors, Mode, Tally, Weighing

USUAL = Weighing(recency=1.0, similarity=1.0, importance=1.0, gains=(0.5, 3.0, 2.0), decay=0.99)
USUAL_OF_PAPER = Weighing(recency=1.0, similarity=1.0, importance=1.0, gains=(1.0, 1.0, 1.0), decay=0.995)
STREAM_KINDS = (Kind.MESSAGE, Kind.EVENT, Kind.THOUGHT, Kind.FACT, Kind.SUMMARY)
"""What the stream ranks unless the agent's profile names other kinds; chats are recalled by other channels."""
NEGLIGIBLE = 1e-6
"""From the horizon on, recency adds less than this to a score."""
FARTHEST = 1_000_000
SMALLEST_EXPONENT = -700.0
"""PostgreSQL refuses a power too small for a double, so both implementations stop before it."""
HOUR = timedelta(hours=1)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class ResolvedWeighing:
    """How one recall weighs the stream, with every value decided."""

    mode: Mode
    weights: tuple[float, float, float]
    """For recency, similarity and importance; the gains are in them."""
    decay: float


@dataclass(frozen=True, slots=True)
class Considered:
    """What scoring needs to know of one memory."""

    id: UUID
    kind: Kind
    last_accessed_at: datetime
    importance: float
    similarity: float | None
    """The cosine with the cue; None where the memory has no vector."""


def resolve_weighing(asked: Weighing, agent: Weighing) -> ResolvedWeighing:
    """Decide every value: as asked, else as the agent has it for that mode, else as usual."""
    mode = asked.mode or agent.mode or Mode.NEWEST
    usual = USUAL_OF_PAPER if mode is Mode.PAPER else USUAL
    own = agent if (agent.mode or Mode.NEWEST) is mode else Weighing()
    gains = _first(asked.gains, own.gains, usual.gains)
    weights = (
        _first(asked.recency, own.recency, usual.recency) * gains[0],
        _first(asked.similarity, own.similarity, usual.similarity) * gains[1],
        _first(asked.importance, own.importance, usual.importance) * gains[2],
    )
    return ResolvedWeighing(mode, weights, _first(asked.decay, own.decay, usual.decay))


def horizon(resolved: ResolvedWeighing) -> int:
    """Give the rank from which on recency adds nothing worth computing."""
    # Also where recency counts for little, or nothing: its rank is returned, and may be learned from.
    weight, decay = max(resolved.weights[0], 1.0), resolved.decay
    # By the hour, any number of memories can be as recent as the first.
    if resolved.mode is Mode.PAPER or decay == 1:
        return FARTHEST
    return min(math.floor(math.log(NEGLIGIBLE / weight) / math.log(decay)) + 2, FARTHEST)


def score(considered: Sequence[Considered], resolved: ResolvedWeighing) -> tuple[list[Candidate], Tally]:
    """Rank all of them by the weighted sum of their scaled factors; equals stay in the order of recency."""
    ordered = sort_by_recency(considered, resolved.mode)
    if not ordered:
        return [], Tally(0, None, None)
    recency = scale(_decayed(ordered, resolved))
    similarity = scale(_similarities(ordered))
    importance = scale([memory.importance for memory in ordered])
    found = map(Factors, recency, similarity, importance, range(1, len(ordered) + 1))
    scored = [
        Candidate(memory.id, weigh(factors, resolved), factors) for memory, factors in zip(ordered, found, strict=True)
    ]
    scored.sort(key=lambda candidate: candidate.score, reverse=True)
    return scored, Tally(len(scored), scored[-1].score, scored[0].score)


def sort_by_recency(considered: Sequence[Considered], mode: Mode) -> list[Considered]:
    """Sort by what recency favours; of equals thoughts come last, and the newer before the older."""
    ordered = sorted(considered, key=lambda memory: (memory.kind is Kind.THOUGHT, -memory.id.int))
    ordered.sort(key=lambda memory: memory.last_accessed_at, reverse=mode is not Mode.ORIGINAL)
    return ordered


def weigh(factors: Factors, resolved: ResolvedWeighing) -> float:
    """Add up the weighted factors."""
    recency, similarity, importance = resolved.weights
    return recency * factors.recency + similarity * factors.similarity + importance * factors.importance


def scale(values: Sequence[float]) -> list[float]:
    """Map values onto 0..1 between the least and the greatest; all are 0.5 where these are the same."""
    least, greatest = min(values), max(values)
    if least == greatest:
        return [0.5] * len(values)
    return [(value - least) / (greatest - least) for value in values]


def _decayed(ordered: Sequence[Considered], resolved: ResolvedWeighing) -> list[float]:
    """Let recency fade by rank, or by the hours since the last access."""
    if resolved.mode is Mode.PAPER:
        # Counted from the latest access and not from now: scaling takes the difference out again.
        latest = ordered[0].last_accessed_at
        steps = [(latest - memory.last_accessed_at) / HOUR for memory in ordered]
    else:
        steps = [float(rank) for rank in range(len(ordered))]
    fade = math.log(resolved.decay)
    return [math.exp(max(fade * step, SMALLEST_EXPONENT)) for step in steps]


def _similarities(ordered: Sequence[Considered]) -> list[float]:
    """Treat a memory without a vector as no more relevant than the least relevant of the others."""
    least = min((memory.similarity for memory in ordered if memory.similarity is not None), default=0.0)
    return [least if memory.similarity is None else memory.similarity for memory in ordered]


def _first(*values: Value | None) -> Value:
    return next(value for value in values if value is not None)
