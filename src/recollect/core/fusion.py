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
STREAM_WEIGHT = 0.5
"""Even weights are the compromise: no other pair is better on every set that bench/quality.py measures."""
GRAPH_WEIGHT = 0.5
USUAL_CHANNELS = ("text", "vector")
"""Asked where a cue names no channels."""


def default_weights(script: Script, embedder_scripts: frozenset[Script]) -> dict[str, float]:
    """Weigh the channels for a cue; an embedder that cannot read its script gets no say."""
    readable = script in embedder_scripts
    return {
        "text": TEXT_WEIGHT,
        "vector": VECTOR_WEIGHT if readable else 0.0,
        "stream": STREAM_WEIGHT if readable else 0.0,
        "graph": GRAPH_WEIGHT,
    }


def join(
    proposals: Mapping[str, Sequence[Candidate]], lent: Mapping[str, Sequence[Candidate]], most: int
) -> dict[str, Sequence[Candidate]]:
    """Let candidates that are scored in a channel's unit stand among that channel's own, as many as it may propose.

    What is in the unit of a channel that nobody asked counts only where no channel with such a unit was asked.
    """
    asked = lent.keys() & proposals.keys() or lent.keys()
    joined = dict(proposals)
    for channel in sorted(asked):
        both = [*proposals.get(channel, ()), *lent[channel]]
        joined[channel] = sorted(both, key=lambda candidate: candidate.score, reverse=True)[:most]
    return joined


def fuse(proposals: Mapping[str, Sequence[Candidate]], weights: Mapping[str, float], limit: int) -> list[Ranked]:
    """Rank the proposed memories by the weighted sum of their scaled scores.

    Equals come newest first, or in the order of the channel where only one has a say.
    """
    found = {
        channel: best
        for channel in sorted(proposals)
        if weights.get(channel, 0.0) > 0 and (best := _collect(proposals[channel]))
    }
    total = math.fsum(weights[channel] for channel in found)
    parts: dict[UUID, dict[str, ChannelScore]] = {}
    for channel, best in found.items():
        scaled = _scale({memory_id: each.score for memory_id, each in best.items()}, FLOORS.get(channel, Floor.ZERO))
        for memory_id, each in best.items():
            share = weights[channel] / total * scaled[memory_id]
            parts.setdefault(memory_id, {})[channel] = ChannelScore(each.score, share, each.factors)
    ranked = [Ranked(memory_id, _add(shares.values()), shares) for memory_id, shares in parts.items()]
    if len(found) > 1:
        ranked.sort(key=lambda hit: hit.id, reverse=True)
    ranked.sort(key=lambda hit: hit.score, reverse=True)
    return ranked[: max(limit, 0)]


def _collect(candidates: Iterable[Candidate]) -> dict[UUID, Candidate]:
    """Keep each memory's best proposal, and none whose score is not a number to compare by."""
    best: dict[UUID, Candidate] = {}
    for candidate in candidates:
        known = best.get(candidate.id)
        if math.isfinite(candidate.score) and (known is None or candidate.score > known.score):
            best[candidate.id] = candidate
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
