"""Steps: an order, names, and a choice among them."""

from __future__ import annotations

import pytest

from recollect.errors import SetupError
from recollect.models.agents import Profile
from recollect.settings import Settings
from recollect.verbs.knowledge.steps import STEPS, choose_steps
from recollect.verbs.knowledge.steps.draft import Stage
from recollect.verbs.knowledge.steps.segment import rules_of


def test_steps_stand_in_the_order_in_which_they_are_taken():
    assert list(STEPS) == ["label", "segment", "summarise", "extract", "resolve", "link"]
    assert [name for name, step in STEPS.items() if step.stage is Stage.CONVERSATION] == ["label", "segment"]
    assert all(name == step.name for name, step in STEPS.items())


def test_all_of_them_are_taken_unless_others_are_named():
    assert choose_steps(Settings().enrich_steps) == STEPS


def test_the_order_of_the_names_changes_nothing():
    assert list(choose_steps("link, segment label")) == ["label", "segment", "link"]
    assert choose_steps("") == {}


def test_a_step_nobody_knows_is_refused():
    with pytest.raises(SetupError, match="daydream"):
        choose_steps("label daydream")


def test_an_agent_says_when_its_topics_end():
    assert (rules_of(Profile()).vectors.depth, rules_of(Profile()).idle_minutes) == (0.5, 60)
    rules = rules_of(Profile(segment_depth=0.0, idle_minutes=0.0))
    assert (rules.vectors.depth, rules.idle_minutes) == (0.0, 0.0)
