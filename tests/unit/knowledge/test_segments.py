"""Segments: where the topic changes and nowhere else, each turn in one of them, and the same however turns arrive."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.knowledge.segments import DepthRule, SegmentRules, segment, to_turn, to_unit
from recollect.errors import InvalidInputError
from recollect.models.knowledge import SegmentEnd, Turn

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
WORDS = ["tea", "teapot", "yoga", "swim", "database", "index", "红烧肉", "瑜伽课", "茶道", "!!!", "ok"]
USUAL = SegmentRules()


def turn(number: int, embedding=None, minutes: float | None = None, text: str = "", **more) -> Turn:
    at = START + timedelta(minutes=number if minutes is None else minutes)
    return to_turn(UUID(int=number), at, text, embedding, **more)


def turns(*embeddings, **more) -> list[Turn]:
    return [turn(number, embedding, **more) for number, embedding in enumerate(embeddings)]


def facing(degrees: float) -> tuple[float, float]:
    return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))


def cut(said: list[Turn], rules: SegmentRules = USUAL, ended: SegmentEnd | None = SegmentEnd.IDLE) -> list[list[int]]:
    closed, left = segment(said, rules, ended)
    return [[each.id.int for each in part] for part in [*(each.turns for each in closed), left] if part]


TEA, YOGA = facing(0), facing(90)


def test_a_topic_ends_where_what_follows_is_another():
    said = turns(*[TEA] * 4, *[YOGA] * 4)
    closed, left = segment(said, ended=SegmentEnd.IDLE)
    assert cut(said) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert left == () and [each.ending for each in closed] == [SegmentEnd.TOPIC, SegmentEnd.IDLE]
    assert closed[0].similarity == pytest.approx(0.0) and closed[1].similarity is None


def test_one_turn_aside_ends_nothing():
    assert cut(turns(TEA, TEA, TEA, facing(60), TEA, TEA, TEA)) == [[0, 1, 2, 3, 4, 5, 6]]


def test_what_drifts_slowly_is_one_topic():
    assert cut(turns(*map(facing, range(0, 90, 10)))) == [[*range(9)]]


def test_a_place_is_judged_when_four_turns_have_followed():
    said = turns(*[TEA] * 4, *[YOGA] * 5)
    assert segment(said[:8]) == ([], tuple(said[:8]))
    closed, left = segment(said)
    assert [len(each.turns) for each in closed] == [4] and len(left) == 5


def test_silence_and_length_judge_by_the_turns_that_there_are():
    said = [*turns(TEA, TEA, TEA, YOGA, YOGA), turn(9, YOGA, 600)]
    closed, _ = segment(said)
    assert [(len(each.turns), each.ending) for each in closed] == [(3, SegmentEnd.TOPIC), (2, SegmentEnd.IDLE)]
    closed, _ = segment(turns(TEA, TEA, TEA, YOGA, YOGA, YOGA), SegmentRules(max_turns=5))
    assert [(len(each.turns), each.ending) for each in closed] == [(3, SegmentEnd.TOPIC)]


def test_an_answer_begins_no_segment():
    said = turns(*[TEA] * 4, *[YOGA] * 5)
    assert cut(said) == [[0, 1, 2, 3], [4, 5, 6, 7, 8]]
    assert cut([replace(each, opens=each.id.int == 5) for each in said]) == [[0, 1, 2, 3, 4], [5, 6, 7, 8]]
    assert cut([replace(each, opens=False) for each in said]) == [[*range(9)]]


def test_a_segment_has_at_least_so_many_turns():
    assert cut(turns(TEA, YOGA, YOGA, YOGA)) == [[0, 1, 2, 3]]
    assert cut(turns(TEA, TEA, TEA, YOGA)) == [[0, 1, 2, 3]]
    assert cut(turns(TEA, TEA, YOGA, YOGA)) == [[0, 1], [2, 3]]
    assert cut(turns(TEA, TEA, YOGA, YOGA), SegmentRules(min_turns=3)) == [[0, 1, 2, 3]]


def test_how_deep_likeness_must_dip_is_a_rule():
    said = turns(*[TEA] * 4, *[facing(50)] * 4)
    assert cut(said) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert cut(said, replace(USUAL, vectors=DepthRule(2, 3, 0.8))) == [[*range(8)]]


def test_the_length_of_vectors_does_not_matter():
    assert cut(turns((9, 0), (0.001, 0), (3, 0), (0, 500.0), (0, 0.1))) == [[0, 1, 2], [3, 4]]


@pytest.mark.parametrize(("gap", "parts"), [(60, [[0, 1, 2]]), (60.01, [[0, 1], [2]])])
def test_silence_ends_a_segment(gap, parts):
    said = [turn(0, TEA, 0), turn(1, TEA, 5), turn(2, TEA, 5 + gap)]
    assert cut(said, ended=None) == parts
    assert cut(said, SegmentRules(idle_minutes=0)) == [[0, 1, 2]]


def test_no_segment_is_too_long():
    closed, left = segment(turns(*[TEA] * 100), SegmentRules(max_turns=30))
    assert [len(each.turns) for each in closed] == [30, 30, 30]
    assert len(left) == 10
    said = [turn(number, TEA, text="word " * 100) for number in range(9)]
    assert [len(part) for part in cut(said, SegmentRules(max_characters=1_700))] == [3, 3, 3]
    assert cut([turn(0, TEA, text="x" * 99), turn(1, TEA, text="y")], SegmentRules(max_characters=50)) == [[0], [1]]


def test_turns_without_vectors_are_compared_by_what_they_speak_of():
    texts = [
        "The database index is slow, the query scans everything.",
        "I added an index to the database and the query is fast.",
        "Which index type does the database use?",
        "My yoga teacher showed us a new pose today.",
        "The yoga pose was hard, but the teacher was patient.",
        "So the teacher showed the yoga pose again.",
    ]
    assert cut([turn(number, text=text) for number, text in enumerate(texts)]) == [[0, 1, 2], [3, 4, 5]]
    texts = [
        "课程讲到了数据库的索引优化。",
        "数据库的索引优化让查询更快。",
        "这个数据库的查询用了索引。",
        "今天的瑜伽课学了新的体式。",
        "瑜伽课的体式很难，老师很有耐心。",
        "老师又教了一遍瑜伽课的体式。",
    ]
    assert cut([turn(number, text=text) for number, text in enumerate(texts)]) == [[0, 1, 2], [3, 4, 5]]


def test_where_one_turn_lacks_a_vector_all_are_compared_by_terms():
    texts = ["tea pot", "tea cup", "tea leaf", "yoga pose", "yoga mat", "yoga class"]
    said = [turn(number, TEA if number else None, text=text) for number, text in enumerate(texts)]
    assert cut(said) == [[0, 1, 2], [3, 4, 5]]
    assert cut([replace(each, embedding=TEA) for each in said]) == [[*range(6)]]


def test_what_says_nothing_changes_nothing():
    silent = turn(9, text="!!!")
    said = [*turns(TEA, TEA, TEA), silent, *turns(YOGA, YOGA, YOGA)]
    assert [len(part) for part in cut(said)] in ([3, 4], [4, 3])
    assert cut([turn(number, text="!!!") for number in range(9)]) == [[*range(9)]]


@pytest.mark.parametrize("useless", [(0.0, 0.0), (math.nan, 1.0), (math.inf, 1.0), (1.0, 2.0, 3.0)])
def test_a_vector_without_direction_or_of_another_model_counts_as_none(useless):
    assert cut([*turns(TEA, TEA), turn(2, useless), turn(3, TEA)]) == [[0, 1, 2, 3]]


def test_rules_without_sense_are_refused():
    for wrong in ({"min_turns": 1}, {"min_turns": 5, "max_turns": 4}):
        with pytest.raises(InvalidInputError, match="at least 2 turns"):
            SegmentRules(**wrong)


EMBEDDINGS = st.none() | st.sampled_from([facing(degrees) for degrees in range(0, 360, 15)] + [(0.0, 0.0), (1.0, 0, 0)])
SAID = st.lists(
    st.tuples(
        EMBEDDINGS,
        st.sampled_from([0.0, 1, 5, 30, 61]),
        st.lists(st.sampled_from(WORDS), max_size=3),
        st.booleans(),
    ),
    max_size=24,
)
RULES = st.builds(
    SegmentRules,
    vectors=st.builds(DepthRule, st.integers(1, 3), st.integers(1, 4), st.sampled_from([0.1, 0.5])),
    terms=st.builds(DepthRule, st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.05, 0.3])),
    min_turns=st.integers(2, 4),
    max_turns=st.integers(4, 9),
    max_characters=st.sampled_from([30, 16_000]),
)


def spoken(said) -> list[Turn]:
    found, minutes = [], 0.0
    for number, (embedding, gap, words, opens) in enumerate(said):
        minutes += gap
        found.append(turn(number, embedding, minutes, " ".join(words), opens=opens))
    return found


@given(SAID, RULES, st.sampled_from([None, SegmentEnd.IDLE]))
def test_every_turn_is_in_exactly_one_segment_in_order(said, rules, ended):
    all_turns = spoken(said)
    closed, left = segment(all_turns, rules, ended)
    assert [each for part in closed for each in part.turns] + [*left] == all_turns
    assert all(part.turns for part in closed) and (ended is None or not left)
    for part, following in zip_longest(closed, closed[1:]):
        assert len(part.turns) <= rules.max_turns
        if part.ending is SegmentEnd.TOPIC:
            assert len(part.turns) >= rules.min_turns
            first = following.turns[0] if following else left[0]
            assert first.opens


@given(SAID, RULES, st.data())
def test_turns_that_come_in_pieces_are_cut_as_all_at_once(said, rules, data):
    """What is running is nothing but its turns: read again with what has come since, it is cut in the same places."""
    all_turns = spoken(said)
    closed, running = [], []
    for each in all_turns:
        running.append(each)
        if data.draw(st.booleans()):
            ended, left = segment(running, rules)
            closed, running = [*closed, *ended], [*left]
    ended, left = segment(running, rules)
    assert ([*closed, *ended], left) == segment(all_turns, rules)


@given(SAID, RULES)
def test_silence_that_is_noticed_at_once_changes_nothing(said, rules):
    all_turns = spoken(said)
    closed, running = [], []
    for each, following in zip_longest(all_turns, all_turns[1:]):
        running.append(each)
        silent = following and following.occurred_at - each.occurred_at > timedelta(minutes=rules.idle_minutes)
        ended, left = segment(running, rules, SegmentEnd.IDLE if silent else None)
        closed, running = [*closed, *ended], [*left]
    assert (closed, tuple(running)) == segment(all_turns, rules)


def test_a_clock_that_goes_back_is_no_silence():
    said = turns(TEA, TEA)
    assert cut([*said, replace(said[0], id=UUID(int=2), occurred_at=START - timedelta(days=9))]) == [[0, 1, 2]]


def test_a_turn_holds_what_it_is_compared_by():
    made = to_turn(UUID(int=1), START, "The teapot is here", TEA, opens=False)
    assert (made.id, made.occurred_at, made.characters, made.embedding) == (UUID(int=1), START, 18, TEA)
    assert made.opens is False
    assert "teapot" in made.terms
    assert to_turn(UUID(int=1), START, "tea").opens is True


@pytest.mark.parametrize(
    ("length", "unit"), [(1e-6, None), (1.1e-6, [1.0, 0.0]), (1e17, [1.0, 0.0]), (1e18, None), (1e200, None)]
)
def test_a_vector_far_too_short_or_too_long_has_no_direction(length, unit):
    found = to_unit((length, 0.0))
    assert (None if found is None else found.tolist()) == unit
    assert to_unit((3.0, 4.0)).tolist() == [0.6, 0.8]
    assert to_unit(None) is None


def test_a_minute_may_be_silence_enough():
    said = [turn(0, TEA, 0), turn(1, TEA, 1), turn(2, TEA, 2.5)]
    assert cut(said, SegmentRules(idle_minutes=1)) == [[0, 1], [2]]
    assert cut(said, SegmentRules(idle_minutes=0.5)) == [[0], [1], [2]]


def test_a_segment_may_be_exactly_as_long_as_it_may():
    said = [turn(number, TEA, text="x" * 10) for number in range(4)]
    assert cut(said, SegmentRules(max_characters=20)) == [[0, 1], [2, 3]]
    assert cut(said, SegmentRules(max_characters=19)) == [[0], [1], [2], [3]]
    closed, _ = segment(said, SegmentRules(max_characters=20))
    assert [each.ending for each in closed] == [SegmentEnd.LENGTH]
    closed, left = segment(turns(*[TEA] * 4), SegmentRules(max_turns=3))
    assert ([len(each.turns) for each in closed], len(left)) == ([3], 1)


def test_nothing_said_is_nothing_to_cut():
    assert segment([], ended=SegmentEnd.IDLE) == ([], ())


def test_a_dip_that_is_just_deep_enough_ends_a_topic():
    said = turns(*[TEA] * 4, *[(0.0, 1.0)] * 4)
    assert cut(said, replace(USUAL, vectors=DepthRule(2, 3, 2.0))) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert cut(said, replace(USUAL, vectors=DepthRule(2, 3, 2.001))) == [[*range(8)]]


def test_a_segment_says_how_alike_both_sides_of_its_end_are():
    closed, _ = segment(turns(*[TEA] * 4, *[facing(50)] * 4), ended=SegmentEnd.IDLE)
    assert closed[0].similarity == pytest.approx(math.cos(math.radians(50)))


def test_shared_terms_count_on_a_logarithmic_scale():
    terms = [("a", "b"), ("a", "b"), ("a", "c"), ("d", "a"), ("d", "e"), ("d", "e")]
    said = [Turn(UUID(int=n), START + timedelta(minutes=n), each, 3) for n, each in enumerate(terms)]
    closed, _ = segment(said, ended=SegmentEnd.IDLE)
    assert [len(each.turns) for each in closed] == [3, 3]
    # Three times, twice and once on either side; the one term they share comes three times before, and once after.
    thrice, twice = 1 + math.log(3), 1 + math.log(2)
    assert closed[0].similarity == pytest.approx(thrice / (thrice**2 + twice**2 + 1))


def test_a_turn_without_a_vector_matters_only_nearby():
    first = turn(0, text="tea")
    near = [first, *(turn(number, TEA) for number in range(1, 5)), *(turn(number, YOGA) for number in range(5, 9))]
    far = [first, *(turn(number, TEA) for number in range(1, 6)), *(turn(number, YOGA) for number in range(6, 10))]
    # The place itself is judged by terms, and only the one behind it by vectors.
    assert cut(near) == [[*range(6)], [*range(6, 9)]]
    assert cut(far) == [[*range(6)], [*range(6, 10)]]


def test_the_lowest_of_several_dips_is_the_end():
    said = turns(TEA, TEA, TEA, facing(40), YOGA, YOGA, YOGA, YOGA)
    closed, _ = segment(said, ended=SegmentEnd.IDLE)
    # Both sides of the fourth turn are 65 degrees apart before it, and 70 behind it.
    assert [len(each.turns) for each in closed] == [4, 4]
    assert closed[0].similarity == pytest.approx(math.cos(math.radians(70)))
