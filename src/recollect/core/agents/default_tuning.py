"""Learn default weights of channels and preferences from an agent's feedback.

A hit's score is a sum of shares. The learned factors multiply these shares, so a zero share stays zero and a negative
share stays negative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.agents.feedback_pairs import (
    Numbers,
    choose_usable,
    compare,
    descend,
    pair_all,
    require_enough,
    split,
)
from recollect.core.recall.weights import default_weights
from recollect.models.agents import Tuning, TuningTarget
from recollect.models.recall import Script

STEEPNESS = 20.0
"""A score difference of 0.05 makes a hit clearly better: the shares of a default recall add up to 1."""
STEADINESS = 1.0
"""Strength of the penalty that keeps the present weights. Doubling one weight costs a third of the loss of one recall
whose hits are in random order."""
MAX_STEPS = 100
PLACES = 3


@dataclass(frozen=True, slots=True, eq=False)
class UsualRecall:
    """One default recall with marked hits: for each name, the amount that it adds to each hit at weight 1."""

    recall_id: UUID
    script: Script
    useful: NDArray[np.bool_]
    values: Mapping[str, Numbers]


def to_values(shares: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
    """Divide shares by the weights that they were computed with; skip shares without a weight."""
    return {name: share / weights[name] for name, share in shares.items() if weights.get(name)}


def fit_default_weights(judged: Sequence[UsualRecall], own: Mapping[str, float]) -> Tuning:
    """Fit the weights to one part of the feedback, and compare before and after on both.

    Default weights differ by script, but an agent has one number for each weight. So the weights are learned for the
    script that most cues have.
    """
    usable = choose_usable(judged)
    require_enough(usable)
    [(script, _)] = Counter(recall.script for recall in usable).most_common(1)
    usable = [recall for recall in usable if recall.script is script]
    require_enough(usable)
    present = {**default_weights(script), **own}
    names = sorted({name for recall in usable for name in recall.values if present.get(name)})
    held_out, training = split(usable)
    weights = np.array([present[name] for name in names])
    learned = np.round(rescale_weights(weights * fit(training, names, weights), weights), PLACES)
    before, after = (dict(zip(names, each.tolist(), strict=True)) for each in (weights, learned))
    scores = partial(score, names, weights), partial(score, names, learned)
    return compare(TuningTarget.USUAL, (before, after), (training, held_out), scores)


def rescale_weights(learned: Numbers, before: Numbers) -> Numbers:
    """Scale weights to their previous total: only proportions affect the ranking."""
    kept: Numbers = learned * (np.abs(before).sum() / np.abs(learned).sum())
    return kept


def arrange(recall: UsualRecall, names: Sequence[str]) -> Numbers:
    """Return the values of a recall as a table: a row per hit, a column per name."""
    nothing = np.zeros(len(recall.useful))
    return np.column_stack([recall.values.get(name, nothing) for name in names])


def score(names: Sequence[str], weights: Numbers, recall: UsualRecall) -> Numbers:
    """Score the marked hits of a recall by weights."""
    scores: Numbers = arrange(recall, names) @ weights
    return scores


def fit(training: Sequence[UsualRecall], names: Sequence[str], weights: Numbers) -> Numbers:
    """Fit a factor for each weight: logistic loss over pairs, Newton's method on the logarithms."""
    pairs, counts = pair_all((recall.useful, arrange(recall, names) * weights * STEEPNESS) for recall in training)
    powers, _ = descend(
        np.zeros(len(names)),
        lambda powers: loss_at(powers, pairs, counts),
        lambda powers: find_step(powers, pairs, counts),
        MAX_STEPS,
    )
    return np.exp(powers)


def loss_at(powers: Numbers, pairs: Numbers, counts: Numbers) -> float:
    """Add up the loss of the pairs and the penalty for changed weights."""
    wrong = counts @ np.logaddexp(0.0, -pairs @ np.exp(powers))
    return float(wrong + STEADINESS / 2 * (powers**2).sum())


def find_step(powers: Numbers, pairs: Numbers, counts: Numbers) -> Numbers:
    """Return the next step of Newton's method.

    The curvature is an upper bound, so every step goes downhill.
    """
    moved = pairs * np.exp(powers)
    chance = 1.0 / (1.0 + np.exp(np.clip(moved.sum(axis=1), -500, 500)))
    slope = -moved.T @ (counts * chance) + STEADINESS * powers
    curve = (moved * (counts * chance * (1 - chance))[:, None]).T @ moved + STEADINESS * np.eye(len(powers))
    step: Numbers = -np.linalg.solve(curve, slope)
    return np.clip(step, -1.0, 1.0)
