"""What all learning from marks shares: which recalls count, which pairs they make, and when the result is better."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import numpy as np
import pytest

from recollect.core.agents.feedback_pairs import (
    MAX_PAIRS,
    MIN_RECALLS,
    chance_alone,
    choose_usable,
    compare,
    descend,
    is_better,
    order,
    pair_all,
    pair_up,
    require_enough,
    split,
    to_fit,
)
from recollect.errors import InvalidInputError
from recollect.models.agents import FitQuality, TuningTarget


@dataclass(frozen=True, eq=False)
class Marks:
    """A recall of which only the marks matter, and some scores."""

    recall_id: UUID
    useful: np.ndarray
    one: tuple[float, ...] = ()
    other: tuple[float, ...] = ()


def mark(number, useful, *scores):
    return Marks(UUID(int=number), np.array(useful, dtype=np.bool_), *scores)


def column(*values):
    return np.array(values, dtype=np.float64)[:, None]


def test_only_recalls_with_useful_and_useless_hits_count():
    both, all_useful, none_useful = mark(1, [True, False]), mark(2, [True, True]), mark(3, [False])
    assert choose_usable([all_useful, both, none_useful, mark(4, [])]) == [both]


def test_ten_recalls_are_enough():
    ten = [mark(number, [True, False]) for number in range(MIN_RECALLS)]
    require_enough(ten)
    with pytest.raises(InvalidInputError, match="there are 9"):
        require_enough(ten[1:])


@pytest.mark.parametrize(("recalls", "held"), [(10, 3), (11, 3), (12, 4), (60, 18)])
def test_three_of_ten_are_held_out_whatever_their_order(recalls, held):
    some = [mark(number, [True, False]) for number in range(recalls)]
    held_out, training = split(some)
    assert (len(held_out), len(training)) == (held, recalls - held)
    assert {*held_out, *training} == {*some}
    assert split(some[::-1]) == (held_out, training)
    # By a hash: not the first ones.
    assert held_out != some[:held]


def test_every_useful_hit_is_paired_with_every_useless_one():
    pairs, counts = pair_up(np.array([True, False, True, False]), np.array([[1.0, 5], [2, 3], [4, 4], [8, 1]]))
    assert pairs.tolist() == [[-1, 2], [-7, 4], [2, 1], [-4, 3]]
    assert counts.tolist() == [0.25] * 4


@pytest.mark.parametrize(
    ("useless", "pairs"),
    [(1, 1), (MAX_PAIRS - 1, 99), (MAX_PAIRS, 100), (MAX_PAIRS + 1, 51), (200, 100), (201, 67)],
)
def test_of_many_pairs_every_second_or_third_is_taken_so_that_a_hundred_are_left(useless, pairs):
    marks = np.array([True, *[False] * useless])
    found, counts = pair_up(marks, column(*range(useless + 1)))
    assert found.shape == (pairs, 1)
    assert found[0] == -1
    assert counts == pytest.approx(np.full(pairs, 1 / pairs))


def test_all_recalls_count_the_same():
    pairs, counts = pair_all(
        [(np.array([True, False]), column(3, 1)), (np.array([True, False, False]), column(5, 1, 2))]
    )
    assert pairs.tolist() == [[2], [4], [3]]
    assert counts.tolist() == [1.0, 0.5, 0.5]


def lose(point):
    return float(((point - 3) ** 2).sum())


def test_a_good_step_is_taken_whole():
    point, loss = descend(np.zeros(1), lose, lambda point: 3 - point, 9)
    assert (point.tolist(), loss) == ([3.0], 0.0)


def test_a_step_that_goes_too_far_is_halved():
    point, loss = descend(np.zeros(1), lose, lambda point: 3 * (3 - point), 1)
    assert (point.tolist(), loss) == ([4.5], 2.25)


def test_every_step_begins_where_the_last_one_ended():
    point, loss = descend(np.zeros(1), lose, lambda point: (3 - point) / 2, 3)
    assert (point.tolist(), loss) == ([2.625], 0.140625)
    point, loss = descend(np.zeros(1), lose, lambda point: (3 - point) / 2, 0)
    assert (point.tolist(), loss) == ([0.0], 9.0)


def test_where_every_step_leads_up_or_gains_nothing_the_start_stands():
    for step in (lambda point: point - 3, lambda point: 0 * point, lambda _: np.array([1e-12])):
        point, loss = descend(np.zeros(1), lose, step, 50)
        assert (point.tolist(), loss) == ([0.0], 9.0)


def test_a_small_gain_is_one():
    point, _ = descend(np.zeros(1), lose, lambda _: np.array([1e-8]), 1)
    assert point.tolist() == [1e-8]


def test_chance_explains_two_standard_errors():
    assert chance_alone(np.array([0.0, 2.0])) == pytest.approx(2.0)
    assert chance_alone(np.array([0.0, 0.0, 3.0])) == pytest.approx(2.0)
    assert chance_alone(np.array([0.5] * 4)) == 0.0


@pytest.mark.parametrize(
    ("after", "margin", "better"),
    [
        (FitQuality(0.75, 0.5), 0.125, True),
        (FitQuality(0.75, 0.5), 0.25, False),
        (FitQuality(0.75, 0.49), 0.125, False),
        (FitQuality(0.75, 0.9), 0.125, True),
        (FitQuality(0.5, 0.9), 0.0, False),
    ],
)
def test_better_is_more_than_chance_with_the_first_useful_hit_no_farther_down(after, margin, better):
    assert is_better(FitQuality(0.5, 0.5), after, margin) is better


@pytest.mark.parametrize(
    ("scores", "accuracy", "reciprocal"),
    [
        ([4, 3, 2, 1], 1.0, 1.0),
        ([1, 2, 3, 4], 0.0, 1 / 3),
        ([4, 1, 3, 2], 0.5, 1.0),
        ([3, 1, 4, 2], 0.25, 0.5),
        ([3, 3, 3, 3], 0.5, 0.5),
        ([3, 1, 3, 2], 0.375, 1 / 1.5),
    ],
)
def test_how_well_two_useful_and_two_useless_hits_are_ordered(scores, accuracy, reciprocal):
    found = order([mark(1, [True, True, False, False])], [np.array(scores, dtype=np.float64)])
    assert to_fit(found) == FitQuality(accuracy, pytest.approx(reciprocal))


def test_every_recall_is_ordered_by_itself():
    recalls = [mark(1, [True, False]), mark(2, [False, True])]
    accuracies, reciprocals = order(recalls, [np.array([2.0, 1.0]), np.array([2.0, 1.0])])
    assert (accuracies.tolist(), reciprocals.tolist()) == ([1.0, 0.0], [1.0, 0.5])
    assert to_fit((accuracies, reciprocals)) == FitQuality(0.5, 0.75)


def test_two_weightings_are_compared_on_both_parts():
    right, wrong = (2.0, 1.0), (1.0, 2.0)
    training = [mark(1, [True, False], wrong, right)]
    held_out = [mark(2, [True, False], wrong, right), mark(3, [True, False], right, right)]
    scores = lambda recall: np.array(recall.one), lambda recall: np.array(recall.other)
    found = compare(TuningTarget.USUAL, ({"text": 1.0}, {"text": 2.0}), (training, held_out), scores)
    assert (found.of, found.before, found.after) == (TuningTarget.USUAL, {"text": 1.0}, {"text": 2.0})
    assert found.training == (FitQuality(0.0, 0.5), FitQuality(1.0, 1.0))
    assert found.held_out == (FitQuality(0.5, 0.75), FitQuality(1.0, 1.0))
    assert found.recalls == (1, 2)
    assert found.margin == pytest.approx(1.0)
    assert (found.recommended, found.applied) == (False, False)


def test_what_helps_one_and_harms_another_may_be_chance():
    right, wrong = (2.0, 1.0), (1.0, 2.0)
    held_out = [mark(1, [True, False], wrong, right), mark(2, [True, False], right, wrong)]
    scores = (lambda recall: np.array(recall.one), lambda recall: np.array(recall.other))
    found = compare(TuningTarget.USUAL, ({}, {}), (held_out, held_out), scores)
    assert (found.margin, found.recommended) == (pytest.approx(2.0), False)


def test_what_helps_every_recall_is_recommended():
    recalls = [mark(number, [True, False], (1.0, 2.0), (2.0, 1.0)) for number in range(4)]
    scores = lambda recall: np.array(recall.one), lambda recall: np.array(recall.other)
    found = compare(TuningTarget.STREAM, ({}, {}), (recalls[:2], recalls[2:]), scores)
    assert (found.margin, found.recommended) == (0.0, True)
    assert not compare(TuningTarget.STREAM, ({}, {}), (recalls[:2], recalls[2:]), scores[::-1]).recommended
