"""How likely a hit helps: a probability that grows with what speaks for it, and where a prompt draws the line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.recall.checks import check_cue
from recollect.core.recall.relevance import (
    FLOOR,
    MEASURES,
    MIN_RELEVANCE,
    choose_relevant,
    drop_below,
    estimate,
    explain_low_relevance,
    has_table,
    is_irrelevant,
    relevance_inputs,
)
from recollect.errors import InvalidInputError
from recollect.llm.embedder import GLOSS, MINILM
from recollect.models.recall import Cue, Script

RAISING = ("coverage", "text", "words", "speaker", "vector")


@dataclass(frozen=True)
class Rated:
    relevance: float | None


def measured(**values):
    return np.array([[{"base": 1.0, **values}.get(name, 0.0) for name in MEASURES]])


@given(st.sampled_from(RAISING), st.floats(0, 1), st.floats(0, 1), st.sampled_from(["", MINILM, GLOSS, "other"]))
def test_what_speaks_for_a_hit_never_makes_it_less_likely(name, one, other, model):
    script = Script.WORDS
    less, more = sorted((one, other))
    low, high = (estimate(measured(**{name: each}), script, model)[0] for each in (less, more))
    assert 0 < low <= high < 1


def test_what_stands_further_down_is_less_likely():
    below = [estimate(measured(place=place, vector=0.5), Script.CJK)[0] for place in (0, 1, 3)]
    assert below == sorted(below, reverse=True)


def test_without_a_vector_words_tell_more():
    words = measured(words=2.0)
    assert estimate(words, Script.WORDS) > estimate(words, Script.WORDS, MINILM)


def test_a_model_without_a_table_is_rated_by_words_alone():
    near = measured(words=1.0, vector=0.9)
    for script in (Script.WORDS, Script.CJK):
        assert estimate(near, script, "other") == estimate(near, script)
    assert estimate(near, Script.CJK, MINILM) == estimate(near, Script.CJK)
    assert not has_table("other", Script.WORDS) and not has_table(MINILM, Script.CJK)


@pytest.mark.parametrize(("model", "script"), [(MINILM, Script.WORDS), (GLOSS, Script.WORDS), (GLOSS, Script.CJK)])
def test_what_is_near_by_a_local_model_is_likelier(model, script):
    assert has_table(model, script)
    assert estimate(measured(vector=0.8), script, model) > estimate(measured(vector=0.2), script, model)


def test_measures_are_of_the_chosen_places_and_of_the_best_of_all():
    coverage = np.array([0.1, 0.5, 0.9])
    nothing = np.full(3, np.nan)
    rows = relevance_inputs(coverage, nothing, nothing, np.zeros(3), np.array([0.3, np.nan, 0.7]), np.array([1, 0]))
    table = {name: rows[:, place].tolist() for place, name in enumerate(MEASURES)}
    assert table["coverage"] == [0.5, 0.1]
    assert table["best_coverage"] == [0.9, 0.9]
    assert table["vector"] == [0.0, 0.3]
    assert table["text"] == table["words"] == [0.0, 0.0]
    assert table["place"] == pytest.approx([0.0, np.log(2)])


def test_a_prompt_leaves_out_what_is_hardly_likely_and_all_where_nothing_is_enough():
    best, weak, none = Rated(MIN_RELEVANCE), Rated(FLOOR), Rated(FLOOR / 2)
    assert choose_relevant([best, weak, none]) == (best, weak)
    assert choose_relevant([weak, none]) == ()
    assert choose_relevant([]) == ()


def test_only_what_is_known_to_be_irrelevant_is_called_so():
    assert is_irrelevant([Rated(MIN_RELEVANCE / 2), Rated(0.0)])
    assert not is_irrelevant([Rated(MIN_RELEVANCE), Rated(0.0)])
    assert not is_irrelevant([Rated(None), Rated(0.0)])
    assert not is_irrelevant([])


def test_where_relevance_is_not_known_nothing_is_left_out():
    hits = [Rated(None), Rated(None)]
    assert choose_relevant(hits) == tuple(hits)
    assert drop_below(hits, 0.0) == ()
    assert explain_low_relevance(hits) == "how likely the hits help was not found out in time"
    assert explain_low_relevance([Rated(0.0123)]).endswith("has relevance 0.012")


@pytest.mark.parametrize(
    "cue",
    [
        Cue("x", min_relevance=1.5),
        Cue("x", min_relevance=-0.1),
        Cue("x", min_relevance=float("nan")),
        Cue("", min_relevance=0.5),
        Cue("x", channels=("vector",), min_relevance=0.5),
        Cue("x", channels=("stream",), topics=("a",), topics_only=True, min_relevance=0.5),
    ],
)
def test_a_least_relevance_that_nothing_can_meet_is_refused(cue):
    with pytest.raises(InvalidInputError, match="min_relevance"):
        check_cue(cue)


def test_a_least_relevance_may_be_named_for_several_channels():
    check_cue(Cue("x", channels=("text", "vector"), min_relevance=0.5))
    check_cue(Cue("x", channels=("stream",), topics=("a",), min_relevance=0.5))


def test_no_least_relevance_at_all_is_accepted_everywhere():
    check_cue(Cue("", min_relevance=0.0))
    check_cue(Cue("x", channels=("stream",), min_relevance=0.0))
