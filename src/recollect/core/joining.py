"""Let what one channel found in the unit of another stand among that one's own candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recollect.models.recall import Candidate


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
