"""Join what the channels propose into one ranking in which every channel's share can be seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from uuid import UUID

from recollect.models import Candidate, ChannelScore, Ranked, Script


class Floor(Enum):
    """The raw score that a channel's scale begins at; it ends at the channel's best score."""

    ZERO = "zero"
    """Nothing found means nothing scored: BM25, counts, activations."""
    LOWEST = "lowest"
    """Everything has some score, so only the distance from the weakest candidate tells: cosines."""


FLOORS: Mapping[str, Floor] = MappingProxyType({"text": Floor.ZERO, "vector": Floor.LOWEST})
"""Where each channel's scale begins; a channel not named here begins at zero."""

TEXT_WEIGHT = 0.5
VECTOR_WEIGHT = 0.5
"""Even weights are the compromise: no other pair is better on every set that bench/quality.py measures."""


def default_weights(script: Script, embedder_scripts: frozenset[Script]) -> dict[str, float]:
    """Weigh the channels for a cue; an embedder that cannot read its script gets no say."""
    return {"text": TEXT_WEIGHT, "vector": VECTOR_WEIGHT if script in embedder_scripts else 0.0}


def fuse(proposals: Mapping[str, Sequence[Candidate]], weights: Mapping[str, float], limit: int) -> list[Ranked]:
    """Rank the proposed memories by the weighted sum of their scaled scores, newest first among equals."""
    found = {
        channel: scores
        for channel in sorted(proposals)
        if weights.get(channel, 0.0) > 0 and (scores := _collect(proposals[channel]))
    }
    total = math.fsum(weights[channel] for channel in found)
    parts: dict[UUID, dict[str, ChannelScore]] = {}
    for channel, scores in found.items():
        scaled = _scale(scores, FLOORS.get(channel, Floor.ZERO))
        for memory_id, score in scores.items():
            share = weights[channel] / total * scaled[memory_id]
            parts.setdefault(memory_id, {})[channel] = ChannelScore(score, share)
    ranked = [Ranked(memory_id, _add(shares.values()), shares) for memory_id, shares in parts.items()]
    ranked.sort(key=lambda hit: (hit.score, hit.id), reverse=True)
    return ranked[: max(limit, 0)]


def _collect(candidates: Iterable[Candidate]) -> dict[UUID, float]:
    """Keep each memory's best score, and none that is not a number to compare by."""
    best: dict[UUID, float] = {}
    for candidate in candidates:
        if math.isfinite(candidate.score):
            best[candidate.id] = max(candidate.score, best.get(candidate.id, -math.inf))
    return best


def _scale(scores: Mapping[UUID, float], floor: Floor) -> dict[UUID, float]:
    """Map raw scores onto 0..1."""
    # Halved, because the distance of two floats can be more than a float holds.
    lowest = min(scores.values()) / 2 if floor is Floor.LOWEST else 0.0
    span = max(scores.values()) / 2 - lowest
    if span <= 0:
        return dict.fromkeys(scores, 1.0 if floor is Floor.LOWEST else 0.0)
    return {key: max(score / 2 - lowest, 0.0) / span for key, score in scores.items()}


def _add(shares: Iterable[ChannelScore]) -> float:
    return min(math.fsum(part.share for part in shares), 1.0)
