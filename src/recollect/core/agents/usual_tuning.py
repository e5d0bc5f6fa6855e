"""Learn what channels and preferences weigh in an agent's usual recall, from feedback: how much more or less than now.

A hit's score is a sum of shares. What is learned multiplies them, so what counts for nothing stays so, and what speaks
against a memory still does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.agents.verdicts import Numbers, choose_usable, compare, descend, pair_all, require_enough, split
from recollect.core.recall.weights import usual_weights
from recollect.models.agents import Tuned, Tuning
from recollect.models.recall import Script

STEEPNESS = 20.0
"""A score that is 0.05 higher makes a hit clearly better: the shares of a usual recall add up to 1."""
STEADINESS = 1.0
"""How strongly the present weights are kept: to double one costs a third of what a recall in no order does."""
MOST_STEPS = 100
PLACES = 3


@dataclass(frozen=True, slots=True, eq=False)
class UsualRecall:
    """One usual recall whose hits were marked: for each name, what it would add to each hit at a weight of 1."""

    recall_id: UUID
    script: Script
    useful: NDArray[np.bool_]
    values: Mapping[str, Numbers]


def to_values(shares: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
    """Divide shares by the weights that they were computed with; a share without a weight says nothing."""
    return {name: share / weights[name] for name, share in shares.items() if weights.get(name)}


def learn_usual(judged: Sequence[UsualRecall], own: Mapping[str, float]) -> Tuning:
    """Fit the weights to one part of the feedback, and compare before and after on both.

    The usual weights differ by script, and an agent has one number for each: the script that most cues have is learned.
    """
    usable = choose_usable(judged)
    require_enough(usable)
    [(script, _)] = Counter(recall.script for recall in usable).most_common(1)
    usable = [recall for recall in usable if recall.script is script]
    require_enough(usable)
    present = {**usual_weights(script), **own}
    names = sorted({name for recall in usable for name in recall.values if present.get(name)})
    held_out, training = split(usable)
    weights = np.array([present[name] for name in names])
    learned = np.round(keep_sum(weights * fit(training, names, weights), weights), PLACES)
    before, after = (dict(zip(names, each.tolist(), strict=True)) for each in (weights, learned))
    scores = partial(score, names, weights), partial(score, names, learned)
    return compare(Tuned.USUAL, (before, after), (training, held_out), scores)


def keep_sum(learned: Numbers, before: Numbers) -> Numbers:
    """Scale weights to the size they had: only their proportions rank, among themselves and to those not learned."""
    kept: Numbers = learned * (np.abs(before).sum() / np.abs(learned).sum())
    return kept


def arrange(recall: UsualRecall, names: Sequence[str]) -> Numbers:
    """Write the values of a recall as a table: a row for each hit, a column for each name."""
    nothing = np.zeros(len(recall.useful))
    return np.column_stack([recall.values.get(name, nothing) for name in names])


def score(names: Sequence[str], weights: Numbers, recall: UsualRecall) -> Numbers:
    """Score the marked hits of a recall by weights."""
    scores: Numbers = arrange(recall, names) @ weights
    return scores


def fit(training: Sequence[UsualRecall], names: Sequence[str], weights: Numbers) -> Numbers:
    """Find by how much to multiply each weight: the logistic loss over pairs, by Newton's method on the logarithms."""
    pairs, counts = pair_all((recall.useful, arrange(recall, names) * weights * STEEPNESS) for recall in training)
    powers, _ = descend(
        np.zeros(len(names)),
        lambda powers: loss_at(powers, pairs, counts),
        lambda powers: find_step(powers, pairs, counts),
        MOST_STEPS,
    )
    return np.exp(powers)


def loss_at(powers: Numbers, pairs: Numbers, counts: Numbers) -> float:
    """Add up how wrong the pairs are, and how far the weights have gone."""
    wrong = counts @ np.logaddexp(0.0, -pairs @ np.exp(powers))
    return float(wrong + STEADINESS / 2 * (powers**2).sum())


def find_step(powers: Numbers, pairs: Numbers, counts: Numbers) -> Numbers:
    """Find where the loss is least by its slope and curvature; the curvature is rounded up, so it always goes down."""
    moved = pairs * np.exp(powers)
    chance = 1.0 / (1.0 + np.exp(np.clip(moved.sum(axis=1), -500, 500)))
    slope = -moved.T @ (counts * chance) + STEADINESS * powers
    curve = (moved * (counts * chance * (1 - chance))[:, None]).T @ moved + STEADINESS * np.eye(len(powers))
    step: Numbers = -np.linalg.solve(curve, slope)
    return np.clip(step, -1.0, 1.0)
