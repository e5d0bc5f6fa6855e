"""Fit a relevance table to hits that are known to be evidence or not, and measure tables.

`bench/relevance.py` fits the built-in tables with these functions, and `recollect mind evaluate --fit` your own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.core.recall.columns import Scores
from recollect.core.recall.quality import draw_difference
from recollect.core.recall.relevance import MEASURES, estimate
from recollect.models.evaluations import RelevanceCalibration
from recollect.models.recall import Script

BINS = 10
PULL = 1e-6
"""The strength of regularization towards zero, so that every sample has a solution."""
STEPS = 30
MAX_LOGIT = 30.0
"""Beyond this a probability is practically 0 or 1, and the curvature is still above zero."""
MIN_PROBABILITY = 1e-6
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RatedHits:
    """The hits of one question: the measures of each, and whether it is evidence."""

    script: Script
    model: str
    """The model whose vectors were compared with the cue; empty if none was."""
    measures: Scores
    evidence: Flags


def fit_table(measures: Scores, truth: Scores, *, with_vector: bool) -> Scores:
    """Return the table that makes the evidence most likely, by Newton's method."""
    free = np.array([name != "vector" or with_vector for name in MEASURES])
    table: Scores = np.zeros(int(free.sum()))
    measures = measures[:, free]
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-np.clip(measures @ table, -MAX_LOGIT, MAX_LOGIT)))
        slope = measures.T @ (truth - likely) / len(truth) - PULL * table
        curve = (measures * (likely * (1 - likely))[:, None]).T @ measures / len(truth) + PULL * np.eye(len(table))
        table += np.linalg.solve(curve, slope)
    whole: Scores = np.zeros(len(MEASURES))
    whole[free] = table
    return whole


def expected_error(stated: Scores, truth: Scores) -> float:
    """Return the mean distance of stated probabilities from the truth, in bins of equal count."""
    bins = np.array_split(np.argsort(stated, kind="stable"), BINS)
    gaps = [len(each) * abs(stated[each].mean() - truth[each].mean()) for each in bins if len(each)]
    return float(sum(gaps) / max(len(stated), 1))


def area(values: Scores, truth: Flags) -> float:
    """Return the area under the curve: how often evidence has the higher value; ties count half."""
    if truth.all() or not truth.any():
        return float("nan")
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    true = int(truth.sum())
    return float((ranks[truth].sum() - true * (true + 1) / 2) / (true * (len(truth) - true)))


def try_fit(rows: Sequence[RatedHits]) -> RelevanceCalibration | None:
    """Fit on every other question, and compare with the table in use on the rest.

    Returns None if there is too little data.
    """
    training, held_out = rows[::2], rows[1::2]
    if not all(any(each.evidence.any() for each in half) for half in (training, held_out)):
        return None
    script, model, with_vector = rows[0].script, rows[0].model, bool(rows[0].model)
    # If a few hits can be separated perfectly, no table is best: the fitted one is huge, and the test shows it.
    truth = np.concatenate([each.evidence for each in training]).astype(np.float64)
    table = fit_table(np.concatenate([each.measures for each in training]), truth, with_vector=with_vector)
    before = [estimate(each.measures, script, model) for each in held_out]
    after: list[Scores] = [
        1 / (1 + np.exp(-np.clip(each.measures @ table, -MAX_LOGIT, MAX_LOGIT))) for each in held_out
    ]
    known = np.concatenate([each.evidence for each in held_out])
    losses = [
        [_lose(stated, each.evidence) for stated, each in zip(said, held_out, strict=True)] for said in (before, after)
    ]
    in_use, fitted = [
        (expected_error(np.concatenate(said), known.astype(np.float64)), area(np.concatenate(said), known))
        for said in (before, after)
    ]
    return RelevanceCalibration(
        script,
        with_vector,
        (len(training), len(held_out)),
        dict(zip(MEASURES, table.tolist(), strict=True)),
        in_use,
        fitted,
        draw_difference(losses[1], losses[0]),
    )


def _lose(stated: Scores, evidence: Flags) -> float:
    """Return the mean log loss of stated probabilities."""
    right = np.where(evidence, stated, 1 - stated)
    return float(-np.log(np.maximum(right, MIN_PROBABILITY)).mean())
