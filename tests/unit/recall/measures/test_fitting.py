"""Tables of relevance, fitted to hits of which it is known what is true."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.core.recall.fitting import RatedHits, area, expected_error, fit_table, try_fit
from recollect.core.recall.relevance import ENGLISH, MEASURES
from recollect.llm.embedder import MINILM
from recollect.models.recall import Script

CHANCE = np.random.default_rng(3)


def make_up(table, count):
    """Make up measures, and what is true by a table."""
    measures = np.column_stack([np.ones(count), CHANCE.random((count, len(MEASURES) - 1))])
    return measures, CHANCE.random(count) < 1 / (1 + np.exp(-(measures @ np.array(table))))


def test_a_table_is_found_again():
    table = (-1.0, 2.0, -1.5, 0.5, 1.0, -0.5, 0.0, 3.0)
    measures, truth = make_up(table, 60_000)
    assert fit_table(measures, truth.astype(float), with_vector=True) == pytest.approx(table, abs=0.15)
    assert fit_table(measures, truth.astype(float), with_vector=False)[-1] == 0


def test_error_and_area_by_hand():
    stated, truth = np.array([0.1] * 10 + [0.9] * 10), np.array([False] * 10 + [True] * 10)
    assert expected_error(stated, truth.astype(float)) == pytest.approx(0.1)
    assert (area(stated, truth), area(-stated, truth), area(np.zeros(20), truth)) == (1.0, 0.0, 0.5)
    assert np.isnan(area(stated, np.ones(20, dtype=bool)))


@pytest.mark.parametrize(("table", "better"), [((-1.0, 0, 0, 4.0, 0, 0, 0, -2.0), True), (ENGLISH, False)])
def test_a_fit_is_better_only_where_the_world_is_another(table, better):
    rows = [RatedHits(Script.WORDS, MINILM, *make_up(table, 20)) for _ in range(200)]
    fit = try_fit(rows)
    assert (fit.questions, fit.better) == ((100, 100), better)


def test_hits_that_are_told_apart_perfectly_still_give_a_finite_table():
    measures, _ = make_up(ENGLISH, 12)
    for truth in (measures[:, 3] > 0.5, np.ones(12, dtype=bool)):
        assert np.isfinite(fit_table(measures, truth.astype(float), with_vector=True)).all()


def test_without_evidence_in_both_halves_there_is_no_fit():
    measures, _ = make_up(ENGLISH, 20)
    rows = [RatedHits(Script.WORDS, MINILM, measures, np.arange(20) == number) for number in (0, 99)]
    assert try_fit(rows) is None
