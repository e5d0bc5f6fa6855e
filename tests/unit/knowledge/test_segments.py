"""Segments: where the topic changes and nowhere else, each turn in one of them, and the same however turns arrive."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.knowledge.segments import NOTHING, Running, SegmentRules, finish, follow, lapse, segment, to_turn
from recollect.errors import InvalidInputError
from recollect.models.knowledge import Ending, Segment, Turn

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
WORDS = ["tea", "teapot", "yoga", "swim", "database", "index", "红烧肉", "瑜伽课", "茶道", "!!!", "ok"]


def turn(number: int, embedding=None, minutes: float | None = None, text: str = "") -> Turn:
    at = START + timedelta(minutes=number if minutes is None else minutes)
    return to_turn(UUID(int=number), at, text, embedding)


def turns(*embeddings) -> list[Turn]:
    return [turn(number, embedding) for number, embedding in enumerate(embeddings)]


def facing(degrees: float) -> tuple[float, float]:
    return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))


def cut(said: list[Turn], rules: SegmentRules = SegmentRules()) -> list[list[int]]:  # noqa: B008 - frozen
    closed, running = segment(said, rules)
    return [[each.id.int for each in part.turns] for part in [*closed, running] if part.turns]


NEAR, FAR, VERY_FAR = facing(0), facing(55), facing(90)
"""Cosines of 1, 0.57 (below 0.7) and 0 (below 0.7 by more than 0.3)."""


def test_one_turn_aside_only_raises_doubt():
    closed, running = segment(turns(NEAR, NEAR, FAR))
    assert (closed, running.doubt) == ([], 2)
    closed, running = segment(turns(NEAR, NEAR, FAR, NEAR))
    assert (closed, running.doubt, len(running.turns)) == ([], None, 4)


def test_a_second_far_turn_closes_before_the_first():
    closed, running = segment(turns(NEAR, NEAR, FAR, FAR))
    assert cut(turns(NEAR, NEAR, FAR, FAR)) == [[0, 1], [2, 3]]
    [first] = closed
    assert first.ending is Ending.TOPIC
    assert first.similarity == pytest.approx(math.cos(math.radians(55)))
    assert running.doubt is None


def test_a_very_far_turn_closes_at_once():
    closed, running = segment(turns(NEAR, NEAR, VERY_FAR))
    assert [len(each.turns) for each in closed] == [2]
    assert closed[0].similarity == pytest.approx(0.0)
    assert [each.id.int for each in running.turns] == [2]


def test_a_topic_must_last_before_another_ends_it():
    assert cut(turns(NEAR, VERY_FAR, VERY_FAR)) == [[0, 1, 2]]
    long_topics = SegmentRules(min_turns=3)
    assert cut(turns(NEAR, NEAR, VERY_FAR, VERY_FAR, VERY_FAR), long_topics) == [[0, 1, 2, 3, 4]]
    assert cut(turns(NEAR, NEAR, NEAR, VERY_FAR), long_topics) == [[0, 1, 2], [3]]


def test_the_thresholds_are_the_models_own():
    said = turns(NEAR, NEAR, FAR, FAR)
    assert cut(said, SegmentRules(threshold=0.5)) == [[0, 1, 2, 3]]
    assert cut(turns(NEAR, NEAR, FAR), SegmentRules(threshold=0.9, margin=0.1)) == [[0, 1], [2]]


def test_a_cosine_that_equals_the_threshold_is_near():
    assert cut(turns((1, 0), (1, 0), (0.6, 0.8), (0.6, 0.8)), SegmentRules(threshold=0.6)) == [[0, 1, 2, 3]]


def test_the_length_of_vectors_does_not_matter():
    assert cut(turns((9, 0), (0.001, 0), (0, 500.0))) == [[0, 1], [2]]


@pytest.mark.parametrize(("gap", "parts"), [(60, [[0, 1, 2]]), (60.01, [[0, 1], [2]])])
def test_silence_ends_a_segment(gap, parts):
    said = [turn(0, NEAR, 0), turn(1, NEAR, 5), turn(2, NEAR, 5 + gap)]
    assert cut(said) == parts
    assert cut(said, SegmentRules(idle_minutes=0)) == [[0, 1, 2]]


def test_silence_and_length_leave_the_doubtful_turn_where_it_is():
    said = [turn(0, NEAR), turn(1, NEAR), turn(2, FAR), turn(3, FAR, 600)]
    closed, _ = segment(said)
    assert [(len(each.turns), each.ending) for each in closed] == [(3, Ending.IDLE)]
    closed, _ = segment(turns(NEAR, NEAR, FAR, FAR), SegmentRules(max_turns=3))
    assert [(len(each.turns), each.ending) for each in closed] == [(3, Ending.LENGTH)]


def test_no_segment_is_too_long():
    closed, running = segment(turns(*[NEAR] * 100), SegmentRules(max_turns=30))
    assert [len(each.turns) for each in closed] == [30, 30, 30]
    assert len(running.turns) == 10
    said = [turn(number, NEAR, text="word " * 100) for number in range(9)]
    closed, running = segment(said, SegmentRules(max_characters=1_700))
    assert [len(each.turns) for each in [*closed, running]] == [3, 3, 3]
    assert cut([turn(0, NEAR, text="x" * 99), turn(1, NEAR, text="y")], SegmentRules(max_characters=50)) == [[0], [1]]


def test_lapsing_closes_what_the_next_turn_would_close_anyway():
    _, running = segment([turn(0, NEAR), turn(1, NEAR)])
    last = START + timedelta(minutes=1)
    assert lapse(running, last + timedelta(minutes=60)) is None
    assert lapse(running, last + timedelta(minutes=61)) == Segment(running.turns, Ending.IDLE)
    assert lapse(NOTHING, last) is None


def test_finishing_closes_what_is_open():
    _, running = segment(turns(NEAR, NEAR, FAR))
    assert finish(running) == Segment(running.turns, Ending.ASKED)
    assert finish(NOTHING) is None


def test_turns_without_vectors_are_compared_by_what_they_speak_of():
    texts = [
        "The database index is slow, the query scans everything.",
        "I added an index to the database and the query is fast.",
        "Which index type does the database use?",
        "My yoga teacher showed us a new pose today.",
        "The yoga pose was hard, but the teacher was patient.",
    ]
    assert cut([turn(number, text=text) for number, text in enumerate(texts)]) == [[0, 1, 2], [3, 4]]
    texts = [
        "课程讲到了数据库的索引优化。",
        "数据库的索引优化让查询更快。",
        "这个数据库的查询用了索引。",
        "今天的瑜伽课学了新的体式。",
        "瑜伽课的体式很难，老师很有耐心。",
    ]
    assert cut([turn(number, text=text) for number, text in enumerate(texts)]) == [[0, 1, 2], [3, 4]]


def test_what_says_nothing_neither_raises_a_doubt_nor_ends_one():
    silent = turn(9, text="!!!")
    said = [*turns(NEAR, NEAR, FAR), silent, turn(4, FAR)]
    assert cut([*said[:3], silent]) == [[0, 1, 2, 9]]
    assert cut(said) == [[0, 1], [2, 9, 4]]


def test_turns_that_say_nothing_make_no_topic():
    silent = turn(9, text="!!!")
    assert cut([silent, *turns(NEAR, VERY_FAR)]) == [[9, 0, 1]]
    said = [*turns(NEAR, NEAR, FAR), silent, turn(4, facing(200))]
    assert cut(said) == [[0, 1], [2, 9, 4]]


def test_what_cannot_be_compared_is_given_the_benefit_of_the_doubt():
    said = [*turns(NEAR, NEAR, FAR), turn(3, text="The database index is slow.")]
    assert segment(said)[1].doubt is None
    assert cut([*said, turn(4, FAR)]) == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("useless", [(0.0, 0.0), (math.nan, 1.0), (math.inf, 1.0), (1.0, 2.0, 3.0)])
def test_a_vector_without_direction_or_of_another_model_counts_as_none(useless):
    assert cut([*turns(NEAR, NEAR), turn(2, useless), turn(3, NEAR)]) == [[0, 1, 2, 3]]


def test_rules_without_sense_are_refused():
    for wrong in ({"min_turns": 1}, {"min_turns": 5, "max_turns": 4}):
        with pytest.raises(InvalidInputError, match="at least 2 turns"):
            SegmentRules(**wrong)


EMBEDDINGS = st.none() | st.sampled_from([facing(degrees) for degrees in range(0, 360, 15)] + [(0.0, 0.0), (1.0, 0, 0)])
SAID = st.lists(
    st.tuples(EMBEDDINGS, st.sampled_from([0.0, 1, 5, 30, 61]), st.lists(st.sampled_from(WORDS), max_size=3)),
    max_size=24,
)
RULES = st.builds(
    SegmentRules,
    threshold=st.sampled_from([0.3, 0.7, 0.9]),
    margin=st.sampled_from([0.0, 0.3]),
    min_turns=st.integers(2, 4),
    max_turns=st.integers(4, 9),
    max_characters=st.sampled_from([30, 16_000]),
)


def spoken(said) -> list[Turn]:
    found, minutes = [], 0.0
    for number, (embedding, gap, words) in enumerate(said):
        minutes += gap
        found.append(turn(number, embedding, minutes, " ".join(words)))
    return found


@given(SAID, RULES)
def test_every_turn_is_in_exactly_one_segment_in_order(said, rules):
    all_turns = spoken(said)
    closed, running = segment(all_turns, rules)
    assert [each for part in [*closed, running] for each in part.turns] == all_turns
    assert all(part.turns for part in closed)
    for part in closed:
        assert len(part.turns) <= rules.max_turns
        if part.ending is Ending.TOPIC:
            assert len(part.turns) >= rules.min_turns


@given(SAID, RULES, st.data())
def test_turns_one_by_one_give_what_all_at_once_give_wherever_one_starts_again(said, rules, data):
    """What is running can be thrown away at any moment and read again from its turns, as after a crash."""
    all_turns = spoken(said)
    running, closed = NOTHING, []
    for each in all_turns:
        if data.draw(st.booleans()):
            ended, running_again = segment(running.turns, rules)
            assert (ended, running_again) == ([], running)
        running, ended = follow(running, each, rules)
        closed += [ended] if ended else []
    assert (closed, running) == segment(all_turns, rules)


@given(SAID, RULES)
def test_lapsing_in_between_changes_nothing(said, rules):
    all_turns = spoken(said)
    running, closed = NOTHING, []
    for each in all_turns:
        if ended := lapse(running, each.occurred_at, rules):
            closed.append(ended)
            running = Running()
        running, ended = follow(running, each, rules)
        closed += [ended] if ended else []
    assert (closed, running) == segment(all_turns, rules)


def test_a_clock_that_goes_back_is_no_silence():
    said = turns(NEAR, NEAR)
    assert cut([*said, replace(said[0], id=UUID(int=2), occurred_at=START - timedelta(days=9))]) == [[0, 1, 2]]
