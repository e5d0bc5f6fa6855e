"""Learn the weights and the decay of an agent's stream from feedback, by ordering pairs of hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
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
from recollect.core.agents.scoring import DEFAULT, ResolvedWeighing, resolve_weighing
from recollect.errors import InvalidInputError
from recollect.models.agents import Tuning, TuningTarget
from recollect.models.recall import Mode, StreamWeights

DECAYS = (0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
STEADINESS = 0.05
"""Strength of the penalty that keeps the present weights: about that of one recall."""
MAX_STEPS = 50
PLACES = 4
FREE = tuple(free for size in (3, 2, 1) for free in combinations(range(3), size))
LEARNED = ("recency", "similarity", "importance", "decay")


@dataclass(frozen=True, slots=True, eq=False)
class MarkedRecall:
    """One recall with marked hits: whether each hit was useful, and its ranking values."""

    recall_id: UUID
    candidates: int
    useful: NDArray[np.bool_]
    ranks: Numbers
    similarity: Numbers
    importance: Numbers


def learn(judged: Sequence[MarkedRecall], present: StreamWeights) -> Tuning:
    """Fit weights and decay to one part of the feedback, and compare before and after on both.

    The decay of mode `paper` depends on hours. Feedback has only ranks, so this decay cannot be learned.
    """
    if present.mode is Mode.PAPER:
        raise InvalidInputError("cannot tune an agent in mode `paper`: only rank-based decay can be tuned")
    usable = choose_usable(judged)
    require_enough(usable)
    held_out, training = split(usable)
    before = resolve_weighing(StreamWeights(), present)
    after = round_weights(fit_all(training, before, gains_of(present)), present)
    resolved = resolve_weighing(StreamWeights(), after)
    numbers = to_numbers(expand_weights(before, present)), to_numbers(after)
    return compare(
        TuningTarget.STREAM, numbers, (training, held_out), (partial(score, before), partial(score, resolved))
    )


def to_numbers(weighing: StreamWeights) -> dict[str, float]:
    """Return the learned values by name."""
    return {name: getattr(weighing, name) for name in LEARNED}


def apply_weights(learned: Mapping[str, float], present: StreamWeights) -> StreamWeights:
    """Return the present weights with the learned values."""
    recency, similarity, importance, decay = (learned[name] for name in LEARNED)
    return replace(present, recency=recency, similarity=similarity, importance=importance, decay=decay)


def gains_of(present: StreamWeights) -> Sequence[float]:
    """Return the gains of the three factors."""
    return present.gains or DEFAULT.gains or ()


def fit_all(training: Sequence[MarkedRecall], before: ResolvedWeighing, gains: Sequence[float]) -> ResolvedWeighing:
    """Fit the weights for each decay and keep the best; if none is better, the present decay stays."""
    prior = np.array(before.weights)
    # A factor with gain 0 has no effect, so its weight cannot be learned.
    counted = np.array([gain > 0 for gain in gains])
    best, least = before, np.inf
    for decay in dict.fromkeys((before.decay, *DECAYS)):
        differences, shares = pair_all((recall.useful, factors_at(recall, decay)) for recall in training)
        weights, loss = fit(differences * counted, shares, prior)
        if loss < least:
            best, least = replace(before, weights=rescale_weights(weights, prior), decay=decay), loss
    return best


def rescale_weights(weights: Numbers, prior: Numbers) -> tuple[float, float, float]:
    """Scale weights to their previous sum: only proportions affect the ranking."""
    total = prior.sum() or 1.0
    kept = weights * (total / weights.sum()) if weights.sum() > 0 else prior
    return float(kept[0]), float(kept[1]), float(kept[2])


def factors_at(recall: MarkedRecall, decay: float) -> Numbers:
    """Return the three factors of every marked hit at a given decay, one row per hit."""
    recency = rescale(recall.ranks, recall.candidates, decay)
    return np.column_stack((recency, recall.similarity, recall.importance))


def rescale(ranks: Numbers, candidates: int, decay: float) -> Numbers:
    """Compute recency from ranks; beyond the horizon it is 0."""
    least = decay**candidates
    if decay - least <= 0:
        return np.full(len(ranks), 0.5)
    # The power of an array may differ from that of a number in the last digit, and so be below the minimum.
    return np.where(ranks > 0, np.maximum(decay**ranks - least, 0.0) / (decay - least), 0.0)


def fit(differences: Numbers, shares: Numbers, prior: Numbers) -> tuple[Numbers, float]:
    """Minimize the logistic loss over pairs by Newton's method, with no weight below 0."""

    def find_step(weights: Numbers) -> Numbers:
        return solve(weights, *derive(weights, differences, shares, prior)) - weights

    return descend(prior, lambda weights: loss_at(weights, differences, shares, prior), find_step, MAX_STEPS)


def loss_at(weights: Numbers, differences: Numbers, shares: Numbers, prior: Numbers) -> float:
    """Add up the loss of the pairs and the penalty for changed weights."""
    wrong = shares @ np.logaddexp(0.0, -differences @ weights)
    return float(wrong + STEADINESS / 2 * ((weights - prior) ** 2).sum())


def derive(weights: Numbers, differences: Numbers, shares: Numbers, prior: Numbers) -> tuple[Numbers, Numbers]:
    """Return the gradient and the Hessian of the loss."""
    chance = 1.0 / (1.0 + np.exp(np.clip(differences @ weights, -500, 500)))
    slope = -differences.T @ (shares * chance) + STEADINESS * (weights - prior)
    curve = (differences * (shares * chance * (1 - chance))[:, None]).T @ differences + STEADINESS * np.eye(3)
    return slope, curve


def solve(weights: Numbers, slope: Numbers, curve: Numbers) -> Numbers:
    """Minimize the quadratic model over nonnegative weights, trying every set of free weights."""
    target = curve @ weights - slope
    best, least = np.zeros(3), 0.0
    for free in FREE:
        index = list(free)
        candidate = np.zeros(3)
        candidate[index] = np.linalg.solve(curve[np.ix_(index, index)], target[index])
        value = float(candidate @ curve @ candidate / 2 - target @ candidate)
        if (candidate >= 0).all() and value < least:
            best, least = candidate, value
    return best


def score(resolved: ResolvedWeighing, recall: MarkedRecall) -> Numbers:
    """Score the marked hits of a recall by a weighing."""
    scores: Numbers = factors_at(recall, resolved.decay) @ np.array(resolved.weights)
    return scores


def expand_weights(resolved: ResolvedWeighing, present: StreamWeights) -> StreamWeights:
    """Return all weights without their gains; a factor with gain 0 keeps its weight."""
    own = (present.recency, present.similarity, present.importance)
    shown = [
        weight / gain if gain > 0 else (1.0 if kept is None else kept)
        for weight, gain, kept in zip(resolved.weights, gains_of(present), own, strict=True)
    ]
    return replace(present, recency=shown[0], similarity=shown[1], importance=shown[2], decay=resolved.decay)


def round_weights(resolved: ResolvedWeighing, present: StreamWeights) -> StreamWeights:
    """Round weights to a readable number of digits."""
    full = expand_weights(resolved, present)
    recency, similarity, importance = full.recency or 0.0, full.similarity or 0.0, full.importance or 0.0
    return replace(
        full, recency=round(recency, PLACES), similarity=round(similarity, PLACES), importance=round(importance, PLACES)
    )
