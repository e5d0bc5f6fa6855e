"""Learning what the channels and preferences of a usual recall weigh: what was planted is found, chance is not."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest

from recollect.core.agents.usual_tuning import UsualRecall, learn_usual, to_values
from recollect.core.recall.weights import usual_weights
from recollect.errors import InvalidInputError
from recollect.models.agents import Tuned
from recollect.models.recall import Script

NAMES = ("vector", "text", "coverage", "importance", "long")
TOTAL = 16.0
"""About what all weights come to: a value is what a name adds at a weight of 1."""


def plant(planted, *, recalls=60, hits=10, noise=0.005, seed=3, script=Script.WORDS):
    """Make up recalls whose better half, by these weights and with some noise, was marked useful."""
    chance = np.random.default_rng(seed)
    weights = np.array([{**usual_weights(script), **planted}[name] for name in NAMES])
    made = []
    for number in range(recalls):
        values = chance.random((hits, len(NAMES))) / TOTAL
        scores = values @ weights + chance.normal(0, noise, hits)
        columns = {name: values[:, column] for column, name in enumerate(NAMES)}
        made.append(UsualRecall(UUID(int=number + 1), script, scores > np.median(scores), columns))
    return made


def test_a_planted_weight_is_found():
    found = learn_usual(plant({"importance": 6.0}), {})
    assert (found.of, found.recalls) == (Tuned.USUAL, (42, 18))
    assert found.recommended
    assert found.held_out[1].accuracy > found.held_out[0].accuracy + 0.05
    grown = {name: found.after[name] / found.before[name] for name in NAMES}
    assert max(grown, key=grown.get) == "importance"
    assert found.after["importance"] > 1
    # What speaks against a memory goes on to.
    assert found.after["long"] < 0


def test_the_weights_that_the_profile_has_are_where_it_begins():
    found = learn_usual(plant({"importance": 6.0}), {"importance": 6.0})
    assert found.before["importance"] == 6.0
    assert not found.recommended


@pytest.mark.parametrize("seed", range(6))
def test_what_chance_alone_explains_is_not_recommended(seed):
    chance = np.random.default_rng(seed)
    recalls = [replace(each, useful=chance.random(10) < 0.5) for each in plant({}, recalls=40, seed=seed)]
    found = learn_usual(recalls, {})
    assert not found.recommended


def test_the_sum_of_the_weights_stays():
    found = learn_usual(plant({"importance": 6.0}), {})
    assert sum(map(abs, found.after.values())) == pytest.approx(sum(map(abs, found.before.values())), abs=0.01)


def test_the_script_that_most_cues_have_is_learned():
    chinese = plant({"importance": 6.0}, script=Script.CJK, recalls=30)
    found = learn_usual([*plant({}, recalls=12, seed=9), *chinese], {})
    assert found.before["vector"] == usual_weights(Script.CJK)["vector"]
    assert sum(found.recalls) == 30


def test_too_little_feedback_is_refused():
    with pytest.raises(InvalidInputError, match="there are 9"):
        learn_usual(plant({}, recalls=9), {})


def test_a_share_is_worth_what_it_is_at_a_weight_of_one():
    shares = {"vector": 0.4, "long": -0.23, "topics": 0.5}
    assert to_values(shares, {"vector": 4.0, "long": -2.3, "text": 1.0}) == pytest.approx({"vector": 0.1, "long": 0.1})
