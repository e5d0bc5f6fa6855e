"""The measures of the benches and of `recollect mind evaluate`, held against sums done by hand."""

from __future__ import annotations

import math
from dataclasses import fields
from datetime import UTC, datetime
from uuid import UUID

import pytest

from recollect.core.recall.quality import (
    average,
    build_evaluation,
    compare,
    count_within,
    draw_difference,
    draw_interval,
    find_places,
    list_above,
    measure,
    name_hits,
    write_piece,
)
from recollect.models.evaluations import EvaluationQuestion, Quality, QuestionResult
from recollect.models.memories import Memory
from recollect.models.recall import Hit

MOMENT = datetime(2026, 5, 4, 12, tzinfo=UTC)


def hit(number, content, *duplicates):
    plain = dict.fromkeys((field.name for field in fields(Memory)), None)
    known = {"id": UUID(int=number), "content": content, "occurred_at": MOMENT, "speaker": "Ann"}
    memory = Memory(**plain | known)
    return Hit(memory, 1.0, {}, tuple(UUID(int=each) for each in duplicates))


def result(cue, recall, within=None, category=""):
    question = EvaluationQuestion(cue, ("x",), category)
    return QuestionResult(question, Quality(recall, recall, recall, recall), within or {250: recall}, {"x": None})


def test_recall_and_ndcg_by_hand():
    found = measure(["a", "x", "b", *"cdefghij", "y"], {"x", "y"})
    assert (found.recall_5, found.recall_10, found.recall_30) == (0.5, 0.5, 1.0)
    assert found.ndcg_10 == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert measure(["x", "y"], {"x", "y"}) == Quality(1, 1, 1, 1)
    assert measure([], {"x"}) == Quality(0, 0, 0, 0)


def test_a_name_that_is_ranked_twice_counts_once():
    assert measure(["x", "x", "x", "y"], {"x", "y"}) == Quality(1, 1, 1, 1)


def test_what_finds_no_room_is_passed_over():
    pieces = [({"a"}, 200), ({"x"}, 100), ({"y", "z"}, 50)]
    assert count_within(pieces, {"x", "y"}, (100, 250, 350)) == {100: 0.5, 250: 0.5, 350: 1.0}


def test_a_mean_lies_in_its_interval_and_is_drawn_the_same_each_time():
    values = [0.0, 1.0] * 50
    drawn = draw_interval(values)
    assert drawn == draw_interval(values)
    assert drawn.mean == 0.5
    # As the published figures were drawn: other numbers would be other intervals.
    assert (drawn.low, drawn.high) == (0.4, 0.59)
    assert draw_interval([0.25]) == draw_interval([0.25, 0.25])


def test_pairing_sees_a_small_gain_that_intervals_of_each_would_hide():
    base = [0.0, 0.9] * 50
    gain = draw_difference([value + 0.05 for value in base], base)
    assert (gain.low, gain.high) == (pytest.approx(0.05), pytest.approx(0.05))
    with pytest.raises(ValueError, match="zip"):
        draw_difference([1.0], [1.0, 2.0])


def test_a_hit_stands_for_what_is_expected_by_id_content_and_duplicate():
    hits = [hit(1, "one"), hit(2, "two"), hit(3, "three", 4)]
    expected = {str(UUID(int=4)), "two"}
    named = name_hits(hits, expected)
    assert named == [{str(UUID(int=1))}, {"two"}, {str(UUID(int=4))}]
    places = find_places(named, ["two", str(UUID(int=4)), "nowhere"])
    assert list(places.values()) == [2, 3, None]
    assert [each.content for each in list_above(hits, places)] == ["one"]
    assert list_above(hits, {"one": 1}) == ()


def test_a_piece_has_day_speaker_and_content():
    assert write_piece(MOMENT, "Ann", "one") == "2026-05-04 Ann: one\n"
    assert write_piece(MOMENT, "", "one") == "2026-05-04: one\n"


def test_the_worst_question_comes_first_and_categories_are_apart():
    found = build_evaluation([result("good", 1.0, category="a"), result("bad", 0.0), result("fair", 0.5)], "words", {})
    assert [each.question.cue for each in found.results] == ["bad", "fair", "good"]
    assert (found.overall.questions, found.overall.quality) == (3, average([Quality(0.5, 0.5, 0.5, 0.5)]))
    assert {name: mean.questions for name, mean in found.categories.items()} == {"a": 1}


def test_evaluations_are_paired_by_question():
    before = build_evaluation([result("one", 0.0), result("two", 0.5), result("gone", 1.0)], "words", {})
    now = build_evaluation([result("two", 0.5), result("one", 1.0), result("new", 0.0)], "words", {})
    difference = compare(now, before)
    assert (difference.questions, difference.recall_10.mean, difference.within[250].mean) == (2, 0.5, 0.5)
    assert compare(now, build_evaluation([result("gone", 1.0)], "words", {})) is None
