"""Learning weights from feedback: what was planted is found, and what cannot be learned is refused."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.agents import feedback_pairs, scoring, tuning
from recollect.errors import InvalidInputError
from recollect.models.recall import Mode, StreamWeights

SKEWED = StreamWeights(recency=5.0, similarity=0.1, importance=0.1)


def judged(number, useful, ranks, similarity, importance, candidates=1_000):
    values = (np.asarray(values, dtype=np.float64) for values in (ranks, similarity, importance))
    return tuning.MarkedRecall(UUID(int=number + 1), candidates, np.asarray(useful, dtype=np.bool_), *values)


def plant(weights, decay, *, recalls=60, hits=12, noise=0.05, seed=3):
    """Make up recalls whose better half, by these weights and with some noise, was marked useful."""
    chance = np.random.default_rng(seed)
    made = []
    for number in range(recalls):
        ranks = chance.choice(np.arange(1, 600), hits, replace=False)
        similarity, importance = chance.random(hits), chance.random(hits)
        recency = (decay**ranks - decay**1_000) / (decay - decay**1_000)
        score = np.column_stack((recency, similarity, importance)) @ np.array(weights) + chance.normal(0, noise, hits)
        made.append(judged(number, score > np.median(score), ranks, similarity, importance))
    return made


@pytest.mark.parametrize(
    ("planted", "order"),
    [((0.2, 4.0, 1.0), "similarity"), ((0.2, 0.5, 4.0), "importance"), ((4.0, 0.5, 0.2), "recency")],
)
def test_planted_weights_are_found_from_a_bad_start(planted, order):
    start = StreamWeights(recency=1.0, similarity=1.0, importance=1.0, gains=(2.0, 2.0, 2.0))
    found = tuning.learn(plant(planted, 0.99), start)
    before, after = found.held_out
    assert after.accuracy > before.accuracy + 0.05
    assert after.accuracy > 0.9
    assert found.recommended
    assert not found.applied
    learned = {name: found.after[name] for name in ("recency", "similarity", "importance")}
    assert max(learned, key=learned.get) == order
    assert found.recalls == (42, 18)


def test_a_planted_decay_is_preferred_to_a_wrong_one():
    found = tuning.learn(plant((5.0, 1.0, 1.0), 0.98, noise=0.01, recalls=100), StreamWeights(decay=0.999, recency=5.0))
    assert found.before["decay"] == 0.999
    # A neighbour on the grid orders the hits nearly as well.
    assert 0.95 <= found.after["decay"] <= 0.99
    assert found.held_out[1].accuracy > found.held_out[0].accuracy + 0.05


def test_the_sum_of_what_the_factors_can_add_stays_the_same():
    found = tuning.learn(plant((0.2, 4.0, 1.0), 0.99), SKEWED)
    sums = [
        sum(scoring.resolve_weighing(StreamWeights(), StreamWeights(**each)).weights)
        for each in (found.before, found.after)
    ]
    assert sums[1] == pytest.approx(sums[0], abs=1e-3)
    assert all(value >= 0 for value in found.after.values())


def test_the_same_feedback_in_any_order_teaches_the_same():
    recalls = plant((0.2, 4.0, 1.0), 0.98)
    assert tuning.learn(recalls, SKEWED) == tuning.learn(recalls[::-1], SKEWED)


def test_what_is_right_already_is_left_nearly_alone():
    usual = scoring.resolve_weighing(StreamWeights(), StreamWeights())
    found = tuning.learn(plant(usual.weights, 0.99, recalls=200), StreamWeights())
    assert found.after["decay"] == 0.99
    assert found.held_out[1].accuracy == pytest.approx(found.held_out[0].accuracy, abs=0.02)


@pytest.mark.parametrize("seed", range(8))
def test_what_chance_alone_explains_is_not_recommended(seed):
    chance = np.random.default_rng(seed)
    recalls = [
        judged(number, chance.random(6) < 0.5, chance.integers(1, 900, 6), chance.random(6), chance.random(6))
        for number in range(40)
    ]
    found = tuning.learn(recalls, StreamWeights())
    before, after = found.held_out
    assert after.accuracy - before.accuracy <= found.margin
    assert not found.recommended


def test_what_does_worse_on_feedback_held_out_is_not_recommended():
    recalls = plant((0.2, 4.0, 1.0), 0.99)
    held_out, training = tuning.split(recalls)
    turned = [replace(recall, useful=~recall.useful) for recall in held_out]
    found = tuning.learn(training + turned, StreamWeights())
    assert found.training[1].accuracy > found.training[0].accuracy
    assert found.held_out[1].accuracy < found.held_out[0].accuracy
    assert not found.recommended


def test_too_little_feedback_is_refused_with_what_is_missing():
    recalls = plant((0.2, 4.0, 1.0), 0.99, recalls=9)
    unanimous = [replace(recall, useful=np.ones_like(recall.useful)) for recall in plant((1, 1, 1), 0.99)]
    with pytest.raises(InvalidInputError, match=r"needs 10 recalls .* there are 9"):
        tuning.learn(recalls + unanimous, StreamWeights())
    with pytest.raises(InvalidInputError, match="there are 0"):
        tuning.learn([], StreamWeights())


def test_decay_by_the_hour_cannot_be_tuned():
    with pytest.raises(InvalidInputError, match="paper"):
        tuning.learn(plant((1, 1, 1), 0.99), StreamWeights(Mode.PAPER))


def test_a_factor_without_gain_keeps_its_weight():
    found = tuning.learn(plant((0.2, 4.0, 1.0), 0.99), StreamWeights(importance=0.7, gains=(2.0, 2.0, 0.0)))
    assert found.after["importance"] == 0.7
    assert found.after["similarity"] > found.after["recency"]


def test_weights_of_zero_and_factors_that_never_differ_are_survived():
    flat = [judged(number, [True, False], [5, 5], [0.5, 0.5], [0.5, 0.5]) for number in range(20)]
    found = tuning.learn(flat, StreamWeights())
    assert (found.after["recency"], found.after["similarity"], found.after["importance"]) == (1.0, 1.0, 1.0)
    # No decay is better than the present one.
    assert found.after["decay"] == found.before["decay"] == 0.99
    assert found.held_out[0].accuracy == 0.5
    assert not found.recommended
    nothing = StreamWeights(recency=0.0, similarity=0.0, importance=0.0)
    assert tuning.learn(plant((0.2, 4.0, 1.0), 0.99), nothing).recommended
    assert tuning.learn(flat, nothing).after["similarity"] == 0.0


def test_when_every_factor_speaks_against_what_is_useful_the_weights_stay():
    wrong = [judged(number, [True, False], [900, 1], [0.0, 1.0], [0.0, 1.0]) for number in range(500)]
    found = tuning.learn(wrong, StreamWeights())
    assert (found.after["recency"], found.after["similarity"], found.after["importance"]) == (1.0, 1.0, 1.0)
    assert not found.recommended


@given(st.integers(1, 5_000), st.floats(0.5, 1.0), st.lists(st.integers(0, 5_000), min_size=1, max_size=20))
def test_recency_from_ranks_equals_the_recency_of_the_scoring(candidates, decay, ranks):
    ranks = [min(rank, candidates) for rank in ranks]
    found = tuning.rescale(np.array(ranks, dtype=np.float64), candidates, decay)
    assert ((found >= 0) & (found <= 1)).all()
    if candidates == 1 or decay == 1:
        assert (found == 0.5).all()
        return
    scaled = scoring.scale([decay**rank for rank in range(1, candidates + 1)])
    expected = [scaled[rank - 1] if rank else 0.0 for rank in ranks]
    assert found == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(10, 40), st.integers(2, 9))
def test_the_loss_never_rises_and_no_weight_is_negative(seed, recalls, hits):
    chance = np.random.default_rng(seed)
    made = []
    for number in range(recalls):
        useful = [True, False, *(chance.random(hits) < 0.5)]
        made.append(judged(number, useful, *chance.random((3, hits + 2)) * [[900], [1], [1]]))
    prior = chance.random(3) * 4
    differences, shares = feedback_pairs.pair_all((recall.useful, tuning.factors_at(recall, 0.99)) for recall in made)
    weights, loss = tuning.fit(differences, shares, prior)
    assert (weights >= 0).all()
    assert loss <= tuning.loss_at(prior, differences, shares, prior)
    # No small step to any side is better: the loss is convex, so this is its least.
    for side in np.vstack((np.eye(3), -np.eye(3))) * 1e-3:
        moved = np.maximum(weights + side, 0)
        assert tuning.loss_at(moved, differences, shares, prior) >= loss - 1e-7


def test_a_recall_with_very_many_marks_has_no_more_say_than_another():
    chance = np.random.default_rng(1)
    large = judged(0, chance.random(200) < 0.5, np.arange(1, 201), chance.random(200), chance.random(200))
    small = judged(1, [True, False], [1, 2], [0.1, 0.2], [0.3, 0.4])
    differences, shares = feedback_pairs.pair_all(
        (each.useful, tuning.factors_at(each, 0.99)) for each in (large, small)
    )
    assert len(differences) <= feedback_pairs.MAX_PAIRS + 1
    assert shares.sum() == pytest.approx(2.0)
    assert shares[-1] == 1.0


def test_a_tie_is_half_right():
    equal = [judged(0, [True, False], [5, 5], [0.5, 0.5], [0.5, 0.5])]
    usual = scoring.resolve_weighing(StreamWeights(), StreamWeights())
    fit = feedback_pairs.to_fit(feedback_pairs.order(equal, [tuning.score(usual, recall) for recall in equal]))
    assert (fit.accuracy, fit.reciprocal_rank) == (0.5, pytest.approx(1 / 1.5))


def test_what_is_learned_is_written_with_four_digits():
    found = tuning.learn(plant((0.2, 4.0, 1.0), 0.99), SKEWED)
    factors = [found.after[name] for name in ("recency", "similarity", "importance")]
    assert all(value == round(value, 4) for value in factors)
    assert any(value != round(value, 3) for value in factors)


def test_a_weighing_is_described_without_its_gains():
    resolved = scoring.ResolvedWeighing(Mode.NEWEST, (1.0, 6.0, 5.0), 0.95)
    assert tuning.expand_weights(resolved, StreamWeights()) == StreamWeights(None, 2.0, 2.0, 2.5, decay=0.95)
    halved = StreamWeights(recency=9.0, gains=(4.0, 2.0, 0.0))
    assert tuning.expand_weights(resolved, halved) == replace(
        halved, recency=0.25, similarity=3.0, importance=1.0, decay=0.95
    )
    kept = StreamWeights(importance=0.7, gains=(1.0, 1.0, 0.0))
    assert tuning.expand_weights(resolved, kept).importance == 0.7


def test_what_is_taken_over_leaves_all_else_as_it_was():
    present = StreamWeights(Mode.ORIGINAL, 1.0, 1.0, 1.0, (1.0, 2.0, 3.0), 0.9)
    learned = {"recency": 0.1, "similarity": 0.2, "importance": 0.3, "decay": 0.4}
    taken = tuning.apply_weights(learned, present)
    assert taken == StreamWeights(Mode.ORIGINAL, 0.1, 0.2, 0.3, (1.0, 2.0, 3.0), 0.4)
    assert tuning.to_numbers(taken) == learned


@pytest.mark.parametrize(
    ("weights", "prior", "kept"),
    [
        ((1, 1, 2), (2, 2, 4), (2, 2, 4)),
        ((1, 1, 2), (0, 0, 0), (0.25, 0.25, 0.5)),
        ((0, 0, 0), (2, 1, 3), (2, 1, 3)),
        ((4, 0, 0), (2, 1, 3), (6, 0, 0)),
    ],
)
def test_weights_keep_the_sum_they_had(weights, prior, kept):
    assert tuning.rescale_weights(np.array(weights, dtype=np.float64), np.array(prior, dtype=np.float64)) == kept


def test_a_hit_scores_the_weighted_sum_of_its_factors():
    recall = judged(1, [True, False, False], [1, 0, 2], [0.5, 0.25, 0.0], [0.0, 1.0, 0.5], candidates=3)
    resolved = scoring.ResolvedWeighing(Mode.NEWEST, (1.0, 2.0, 4.0), 0.5)
    # Of three, the second most recent is at (0.25 - 0.125) / (0.5 - 0.125).
    assert tuning.score(resolved, recall) == pytest.approx([2.0, 4.5, 1 / 3 + 2.0])


def test_the_loss_is_what_the_pairs_are_wrong_by_and_what_the_way_costs():
    prior, pair = np.zeros(3), np.array([[1.0, 0.0, 0.0]])
    share = np.array([0.5])
    assert tuning.loss_at(prior, pair, share, prior) == pytest.approx(log(2) / 2)
    moved = tuning.loss_at(np.array([1.0, 2.0, 0.0]), pair, share, prior)
    assert moved == pytest.approx(log(1 + exp(-1)) / 2 + tuning.STEADINESS / 2 * 5)


def test_slope_and_curvature_are_those_of_the_loss():
    pair, share, prior = np.array([[1.0, 0.0, 2.0]]), np.array([0.5]), np.array([0.0, 3.0, 0.0])
    chance = 1 / (1 + exp(1))
    slope, curve = tuning.derive(np.array([1.0, 1.0, 0.0]), pair, share, prior)
    steady = tuning.STEADINESS
    assert slope == pytest.approx([-chance / 2 + steady, -2 * steady, -chance])
    bent = chance * (1 - chance) / 2
    assert curve == pytest.approx(
        np.array([[bent + steady, 0, 2 * bent], [0, steady, 0], [2 * bent, 0, 4 * bent + steady]])
    )


@pytest.mark.parametrize(
    ("slope", "found"),
    [
        ((-1, -2, -3), (1, 2, 3)),
        ((-1, 2, -3), (1, 0, 3)),
        ((1, 2, -3), (0, 0, 3)),
        ((1, 2, 3), (0, 0, 0)),
        ((-1, 2, 3), (1, 0, 0)),
    ],
)
def test_no_weight_goes_below_zero(slope, found):
    start = np.zeros(3)
    assert tuning.solve(start, np.array(slope, dtype=np.float64), np.eye(3)).tolist() == list(found)


def test_where_a_weight_is_held_at_zero_the_others_make_up_for_it():
    curve = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    # Freely, the second would be -1 and the first 2.
    found = tuning.solve(np.zeros(3), np.array([-3.0, 0.0, 0.0]), curve)
    assert found == pytest.approx([1.5, 0.0, 0.0])
