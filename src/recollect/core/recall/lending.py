"""Lend the scores of learned memories to their evidence: a fact that is found leads to the messages that it rests on.

What stands among the first candidates lends, from 1 for the very best down to 0. It is shared: the more memories
something rests on, the less it says of each. A memory to which several lend takes the best of it.
"""

from __future__ import annotations

import numpy as np

from recollect.core.recall.columns import EvidencePairs, Ids, RankingInput, Scores

EVIDENCE = "evidence"
"""The preference for what something among the first candidates rests on."""
LENDERS = 20
"""So many of the best candidates lend. Together with its weight it was chosen on one half of LoCoMo."""


def lends(inputs: RankingInput) -> bool:
    """Tell whether learned memories lend to their evidence, which is then ranked whoever proposed it."""
    return len(inputs.evidence) > 0 and inputs.weights.get(EVIDENCE, 0.0) > 0


def lend(ids: Ids, scores: Scores, evidence: EvidencePairs) -> Scores:
    """Rate all candidates by what is lent to them; a learned memory that is none of them lends nothing."""
    lent = np.zeros(len(ids))
    evidence = evidence.take(np.isin(evidence.learned, ids))
    if not len(evidence):
        return lent
    ordered = np.sort(scores)[::-1]
    best, floor = ordered[0], ordered[LENDERS] if len(ordered) > LENDERS else min(ordered[-1], 0.0)
    if best <= floor:
        return lent
    ascending = np.argsort(ids)
    learned, sources = (
        ascending[np.searchsorted(ids, some, sorter=ascending)] for some in (evidence.learned, evidence.sources)
    )
    shared = np.sqrt(np.bincount(learned, minlength=len(ids))[learned])
    np.maximum.at(lent, sources, np.maximum(scores[learned] - floor, 0.0) / (best - floor) / shared)
    return lent
