"""Learn the weights and the decay of an agent's stream from feedback: pairs of hits, put in the right order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.agents.scoring import USUAL, ResolvedWeighing, resolve_weighing
from recollect.core.agents.verdicts import Numbers, choose_usable, compare, descend, pair_all, require_enough, split
from recollect.errors import InvalidInputError
from recollect.models.agents import Tuned, Tuning
from recollect.models.recall import Mode, Weighing

DECAYS = (0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
STEADINESS = 0.05
"""How strongly the present weights are kept: about as much as one recall counts."""
MOST_STEPS = 50
PLACES = 4
FREE = tuple(free for size in (3, 2, 1) for free in combinations(range(3), size))
LEARNED = ("recency", "similarity", "importance", "decay")


@dataclass(frozen=True, slots=True, eq=False)
class MarkedRecall:
    """One recall whose hits were marked, by hit: useful or not, and what it was ranked by."""

    recall_id: UUID
    candidates: int
    useful: NDArray[np.bool_]
    ranks: Numbers
    similarity: Numbers
    importance: Numbers


def learn(judged: Sequence[MarkedRecall], present: Weighing) -> Tuning:
    """Fit weights and decay to one part of the feedback, and compare before and after on both.

    Only ranks can be weighed again, so the decay of mode `paper`, which goes by the hour, cannot be learned.
    """
    if present.mode is Mode.PAPER:
        raise InvalidInputError("only decay by rank can be tuned: the agent's mode is `paper`")
    usable = choose_usable(judged)
    require_enough(usable)
    held_out, training = split(usable)
    before = resolve_weighing(Weighing(), present)
    after = round_off(fit_all(training, before, gains_of(present)), present)
    resolved = resolve_weighing(Weighing(), after)
    numbers = to_numbers(describe(before, present)), to_numbers(after)
    return compare(Tuned.STREAM, numbers, (training, held_out), (partial(score, before), partial(score, resolved)))


def to_numbers(weighing: Weighing) -> dict[str, float]:
    """List what was learned, by name."""
    return {name: getattr(weighing, name) for name in LEARNED}


def take_over(learned: Mapping[str, float], present: Weighing) -> Weighing:
    """Put what was learned into a weighing."""
    recency, similarity, importance, decay = (learned[name] for name in LEARNED)
    return replace(present, recency=recency, similarity=similarity, importance=importance, decay=decay)


def gains_of(present: Weighing) -> Sequence[float]:
    """Give the gains of the three factors."""
    return present.gains or USUAL.gains or ()


def fit_all(training: Sequence[MarkedRecall], before: ResolvedWeighing, gains: Sequence[float]) -> ResolvedWeighing:
    """Fit the weights for each decay and keep the best; the present decay wins where none is better."""
    prior = np.array(before.weights)
    # A factor with gain 0 cannot be weighed: it counts for nothing here as well.
    counted = np.array([gain > 0 for gain in gains])
    best, least = before, np.inf
    for decay in dict.fromkeys((before.decay, *DECAYS)):
        differences, shares = pair_all((recall.useful, factors_at(recall, decay)) for recall in training)
        weights, loss = fit(differences * counted, shares, prior)
        if loss < least:
            best, least = replace(before, weights=keep_sum(weights, prior), decay=decay), loss
    return best


def keep_sum(weights: Numbers, prior: Numbers) -> tuple[float, float, float]:
    """Scale weights to the sum they had: only their proportions rank."""
    total = prior.sum() or 1.0
    kept = weights * (total / weights.sum()) if weights.sum() > 0 else prior
    return float(kept[0]), float(kept[1]), float(kept[2])


def factors_at(recall: MarkedRecall, decay: float) -> Numbers:
    """Give the three factors of every marked hit as they would be at a decay: one row each."""
    recency = rescale(recall.ranks, recall.candidates, decay)
    return np.column_stack((recency, recall.similarity, recall.importance))


def rescale(ranks: Numbers, candidates: int, decay: float) -> Numbers:
    """Compute recency again from ranks; what lies beyond the horizon has none."""
    least = decay**candidates
    if decay - least <= 0:
        return np.full(len(ranks), 0.5)
    # A power of an array may differ from that of a number in the last digit, and so fall below the least.
    return np.where(ranks > 0, np.maximum(decay**ranks - least, 0.0) / (decay - least), 0.0)


def fit(differences: Numbers, shares: Numbers, prior: Numbers) -> tuple[Numbers, float]:
    """Minimise the logistic loss over pairs by Newton's method, with no weight below zero."""

    def find_step(weights: Numbers) -> Numbers:
        return solve(weights, *derive(weights, differences, shares, prior)) - weights

    return descend(prior, lambda weights: loss_at(weights, differences, shares, prior), find_step, MOST_STEPS)


def loss_at(weights: Numbers, differences: Numbers, shares: Numbers, prior: Numbers) -> float:
    """Add up how wrong the pairs are, and how far the weights have gone."""
    wrong = shares @ np.logaddexp(0.0, -differences @ weights)
    return float(wrong + STEADINESS / 2 * ((weights - prior) ** 2).sum())


def derive(weights: Numbers, differences: Numbers, shares: Numbers, prior: Numbers) -> tuple[Numbers, Numbers]:
    """Give the slope and the curvature of the loss."""
    chance = 1.0 / (1.0 + np.exp(np.clip(differences @ weights, -500, 500)))
    slope = -differences.T @ (shares * chance) + STEADINESS * (weights - prior)
    curve = (differences * (shares * chance * (1 - chance))[:, None]).T @ differences + STEADINESS * np.eye(3)
    return slope, curve


def solve(weights: Numbers, slope: Numbers, curve: Numbers) -> Numbers:
    """Minimise the quadratic model over weights of at least zero: of three, any may be the ones that are free."""
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


def describe(resolved: ResolvedWeighing, present: Weighing) -> Weighing:
    """Write a weighing in full, the gains apart; a factor without gain keeps its weight."""
    own = (present.recency, present.similarity, present.importance)
    shown = [
        weight / gain if gain > 0 else (1.0 if kept is None else kept)
        for weight, gain, kept in zip(resolved.weights, gains_of(present), own, strict=True)
    ]
    return replace(present, recency=shown[0], similarity=shown[1], importance=shown[2], decay=resolved.decay)


def round_off(resolved: ResolvedWeighing, present: Weighing) -> Weighing:
    """Round a weighing to as many digits as a person would write."""
    full = describe(resolved, present)
    recency, similarity, importance = full.recency or 0.0, full.similarity or 0.0, full.importance or 0.0
    return replace(
        full, recency=round(recency, PLACES), similarity=round(similarity, PLACES), importance=round(importance, PLACES)
    )
