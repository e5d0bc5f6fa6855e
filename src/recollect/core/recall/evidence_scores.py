"""Pass the scores of learned memories to their evidence: a fact leads to the messages that it is based on.

The first candidates pass a score, from 1 for the best down to 0. The score is divided: the more evidence a memory has,
the less each of it gets. A memory gets the maximum of the scores passed to it.
"""

from __future__ import annotations

import numpy as np

from recollect.core.recall.columns import EvidencePairs, Ids, RankingInput, Scores

EVIDENCE = "evidence"
"""The preference for evidence of the first candidates."""
EVIDENCE_SOURCES = 20
"""The number of best candidates that pass a score. Chosen together with the weight on one half of LoCoMo."""


def passes_score_to_evidence(inputs: RankingInput) -> bool:
    """Return whether scores are passed to evidence, which then is ranked even if no channel proposed it."""
    return len(inputs.evidence) > 0 and inputs.weights.get(EVIDENCE, 0.0) > 0


def score_evidence(ids: Ids, scores: Scores, evidence: EvidencePairs) -> Scores:
    """Rate candidates by the scores passed to them; learned memories must be candidates, too."""
    lent = np.zeros(len(ids))
    evidence = evidence.select(np.isin(evidence.learned, ids))
    if not len(evidence):
        return lent
    ordered = np.sort(scores)[::-1]
    best, floor = ordered[0], ordered[EVIDENCE_SOURCES] if len(ordered) > EVIDENCE_SOURCES else min(ordered[-1], 0.0)
    if best <= floor:
        return lent
    ascending = np.argsort(ids)
    learned, sources = (
        ascending[np.searchsorted(ids, some, sorter=ascending)] for some in (evidence.learned, evidence.sources)
    )
    shared = np.sqrt(np.bincount(learned, minlength=len(ids))[learned])
    np.maximum.at(lent, sources, np.maximum(scores[learned] - floor, 0.0) / (best - floor) / shared)
    return lent
