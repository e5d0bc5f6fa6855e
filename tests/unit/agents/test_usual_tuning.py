"""Learning what the channels and preferences of a usual recall weigh: what was planted is found, chance is not."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from uuid import UUID

import numpy as np
import pytest

from recollect.core.agents.default_tuning import (
    STEEPNESS,
    UsualRecall,
    find_step,
    fit,
    fit_default_weights,
    loss_at,
    rescale_weights,
    score,
    to_values,
)
from recollect.core.agents.feedback_pairs import pair_all
from recollect.core.recall.weights import default_weights
from recollect.errors import InvalidInputError
from recollect.models.agents import TuningTarget
from recollect.models.recall import Script

NAMES = ("vector", "text", "coverage", "importance", "long")
TOTAL = 16.0
"""About what all weights come to: a value is what a name adds at a weight of 1."""


def plant(planted, *, recalls=60, hits=10, noise=0.005, seed=3, script=Script.WORDS):
    """Make up recalls whose better half, by these weights and with some noise, was marked useful."""
    chance = np.random.default_rng(seed)
    weights = np.array([{**default_weights(script), **planted}[name] for name in NAMES])
    made = []
    for number in range(recalls):
        values = chance.random((hits, len(NAMES))) / TOTAL
        scores = values @ weights + chance.normal(0, noise, hits)
        columns = {name: values[:, column] for column, name in enumerate(NAMES)}
        made.append(UsualRecall(UUID(int=number + 1), script, scores > np.median(scores), columns))
    return made


def test_a_planted_weight_is_found():
    found = fit_default_weights(plant({"importance": 6.0}), {})
    assert (found.of, found.recalls) == (TuningTarget.USUAL, (42, 18))
    assert found.recommended
    assert found.held_out[1].accuracy > found.held_out[0].accuracy + 0.05
    grown = {name: found.after[name] / found.before[name] for name in NAMES}
    assert max(grown, key=grown.get) == "importance"
    assert found.after["importance"] > 1
    # What speaks against a memory goes on to.
    assert found.after["long"] < 0


def test_the_weights_that_the_profile_has_are_where_it_begins():
    found = fit_default_weights(plant({"importance": 6.0}), {"importance": 6.0})
    assert found.before["importance"] == 6.0
    assert not found.recommended


@pytest.mark.parametrize("seed", range(6))
def test_what_chance_alone_explains_is_not_recommended(seed):
    chance = np.random.default_rng(seed)
    recalls = [replace(each, useful=chance.random(10) < 0.5) for each in plant({}, recalls=40, seed=seed)]
    found = fit_default_weights(recalls, {})
    assert not found.recommended


def test_the_sum_of_the_weights_stays():
    found = fit_default_weights(plant({"importance": 6.0}), {})
    assert sum(map(abs, found.after.values())) == pytest.approx(sum(map(abs, found.before.values())), abs=0.01)


def test_the_script_that_most_cues_have_is_learned():
    chinese = plant({"importance": 6.0}, script=Script.CJK, recalls=30)
    found = fit_default_weights([*plant({}, recalls=12, seed=9), *chinese], {})
    assert found.before["vector"] == default_weights(Script.CJK)["vector"]
    assert sum(found.recalls) == 30


def test_too_little_feedback_is_refused():
    with pytest.raises(InvalidInputError, match="there are 9"):
        fit_default_weights(plant({}, recalls=9), {})
    with pytest.raises(InvalidInputError, match="there are 0"):
        fit_default_weights([], {})


def test_a_share_is_worth_what_it_is_at_a_weight_of_one():
    shares = {"vector": 0.4, "long": -0.23, "topics": 0.5}
    assert to_values(shares, {"vector": 4.0, "long": -2.3, "text": 1.0}) == pytest.approx({"vector": 0.1, "long": 0.1})


def test_names_that_weigh_nothing_are_not_learned():
    found = fit_default_weights(plant({}), {"vector": 0.0})
    assert found.before.keys() == found.after.keys() == {*NAMES} - {"vector"}


def test_enough_feedback_in_two_scripts_may_be_too_little_in_either():
    both = [*plant({}, recalls=9), *plant({}, recalls=5, script=Script.CJK)]
    with pytest.raises(InvalidInputError, match="there are 9"):
        fit_default_weights(both, {})
    assert sum(fit_default_weights([*both, *plant({}, recalls=1, seed=4)], {}).recalls) == 10


def test_weights_are_learned_to_three_places():
    found = fit_default_weights(plant({"importance": 6.0}), {})
    assert all(weight == round(weight, 3) for weight in found.after.values())
    assert any(weight != round(weight, 2) for weight in found.after.values())


def test_weights_keep_their_size_and_signs():
    assert rescale_weights(np.array([1.0, -1.0]), np.array([3.0, -1.0])).tolist() == [2.0, -2.0]
    assert rescale_weights(np.array([3.0, 1.0]), np.array([1.0, 1.0])).tolist() == [1.5, 0.5]


def test_a_hit_scores_what_its_values_weigh():
    recall = UsualRecall(UUID(int=1), Script.WORDS, np.array([True, False]), {"text": np.array([0.5, 0.25])})
    assert score(("text", "vector"), np.array([4.0, 8.0]), recall).tolist() == [2.0, 1.0]


ONE, HALF = np.array([1.0]), np.array([0.5])


def test_the_loss_is_what_the_pairs_are_wrong_by_and_what_the_way_costs():
    assert loss_at(np.zeros(1), np.array([[1.0]]), ONE) == pytest.approx(log(1 + exp(-1)))
    assert loss_at(np.zeros(1), np.array([[-1.0]]), HALF) == pytest.approx(log(1 + exp(1)) / 2)
    doubled = loss_at(np.array([log(2)]), np.array([[1.0]]), ONE)
    assert doubled == pytest.approx(log(1 + exp(-2)) + log(2) ** 2 / 2)


def test_a_step_is_the_slope_by_the_curvature():
    chance = 1 / (1 + exp(1))
    assert find_step(np.zeros(1), np.array([[1.0]]), ONE) == pytest.approx(chance / (chance * (1 - chance) + 1))
    chance = 1 / (1 + exp(2))
    slope, curve = log(2) - chance, 4 * chance * (1 - chance) / 2 + 1
    assert find_step(np.array([log(2)]), np.array([[1.0]]), HALF) == pytest.approx(-slope / curve)


def test_no_step_is_longer_than_one():
    assert find_step(np.zeros(1), np.array([[-1000.0]]), ONE).tolist() == [-1.0]
    assert find_step(np.array([-5.0]), np.array([[1.0]]), ONE).tolist() == [1.0]


def test_where_learning_ends_no_small_change_is_better():
    training, weights = (
        plant({"importance": 6.0}, recalls=20),
        np.array([default_weights(Script.WORDS)[n] for n in NAMES]),
    )
    factors = fit(training, NAMES, weights)
    pairs, counts = pair_all(
        (each.useful, np.column_stack([each.values[name] for name in NAMES]) * weights * STEEPNESS) for each in training
    )
    least = loss_at(np.log(factors), pairs, counts)
    for side in np.vstack((np.eye(len(NAMES)), -np.eye(len(NAMES)))) * 1e-2:
        assert loss_at(np.log(factors) + side, pairs, counts) > least
