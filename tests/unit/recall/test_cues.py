"""A cue is read once: its words, the times and topics it names, and what it asks about; no text can break it."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.recall.cues import (
    MAX_KEYWORDS,
    MAX_QUESTION_LENGTH,
    find_actor,
    find_asked,
    find_keywords,
    find_paths,
    find_question,
    find_terms,
    parse_cue,
)
from recollect.models.memories import Kind
from recollect.models.recall import Cue, QuestionType, Script, StreamWeights

NOW = datetime(2026, 11, 18, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("When did Caroline go to the museum?", {QuestionType.TIME}),
        ("What year was it?", {QuestionType.TIME}),
        ("When I was a child I swam.", {QuestionType.TIME}),
        ("Who gave Maria the book?", {QuestionType.PERSON}),
        ("How many dogs does Audrey have?", {QuestionType.NUMBER, QuestionType.OVERVIEW}),
        ("What activities does Melanie enjoy?", {QuestionType.OVERVIEW}),
        ("Which kinds of books has Tim read?", {QuestionType.OVERVIEW}),
        ("What did Caroline research?", set()),
        ("What is the latest news about the bakery?", {QuestionType.LATEST}),
        ("张伟什么时候搬家的？", {QuestionType.TIME}),
        ("谁送了她这本书？", {QuestionType.PERSON}),
        ("他一共有多少本书？", {QuestionType.NUMBER, QuestionType.OVERVIEW}),
        ("她参加过哪些活动？", {QuestionType.OVERVIEW}),
        ("他最近在忙什么？", {QuestionType.LATEST}),
        ("何人来过这里", {QuestionType.PERSON}),
        ("他跑步的频率", {QuestionType.NUMBER}),
        ("她近来好吗", {QuestionType.LATEST}),
        ("他们分别住在北京和上海", {QuestionType.OVERVIEW}),
        ("那是什么日期", {QuestionType.TIME}),
        ("最近三天发生了什么？", set()),
        ("", set()),
    ],
)
def test_words_tell_what_is_asked_about(text, asked):
    assert find_asked(text) == asked


def test_a_cue_is_taken_apart():
    reading = parse_cue(
        Cue("What did Anna say about work->trips last week?", topics=("life",)), None, "no model", now=NOW
    )
    assert (reading.facets.topics, reading.facets.topics_first) == (("life",), True)
    (week,) = reading.facets.periods
    assert (week.start, week.end) == (datetime(2026, 11, 9, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC))
    assert {"anna", "trips last", "last week"} <= set(reading.facets.keywords)
    assert (reading.script, reading.facets.script, reading.now) == (Script.WORDS, Script.WORDS, NOW)
    assert reading.without_vector == "no model"


@pytest.mark.parametrize(
    ("given", "topics", "first"),
    [
        ({}, ("work->trips",), False),
        ({"topics": ("life",)}, ("life",), True),
        ({"topics": ("life",), "topics_only": True}, ("life",), False),
        ({"topics_only": True}, ("work->trips",), False),
    ],
)
def test_topics_that_the_caller_names_come_first_unless_there_is_nothing_else(given, topics, first):
    facets = parse_cue(Cue("about work->trips", **given), None, now=NOW).facets
    assert (facets.topics, facets.topics_first) == (topics, first)


def test_a_reading_holds_what_the_cue_says():
    cue = Cue("tea", kinds=(Kind.FACT,), below=True, weighing=StreamWeights(decay=0.9))
    reading = parse_cue(cue, None, now=NOW)
    assert (reading.text, reading.filter, reading.weighing) == ("tea", cue.filter, StreamWeights(decay=0.9))
    assert (reading.blank, reading.below, reading.without_vector) == (False, True, "")
    assert parse_cue(Cue(" "), None, now=NOW).blank


def test_the_question_is_the_last_line_that_says_something():
    assert find_question("Ann came.\nWho else?\n\n ") == "Who else?"
    assert find_question("") == ""


def test_of_a_long_question_the_end_is_read_from_a_whole_word_on():
    fits = "abcd " * (MAX_QUESTION_LENGTH // 5 - 1) + "abcde"
    assert len(fits) == MAX_QUESTION_LENGTH == 500
    assert find_question(fits) == fits
    assert find_question(f"z{fits}") == fits[4:]
    assert find_question("路" * 600) == "路" * MAX_QUESTION_LENGTH


def test_days_are_those_of_who_asks():
    late = datetime(2026, 11, 17, 20, tzinfo=UTC)
    (day,) = parse_cue(Cue("昨天他说了什么？", zone="Asia/Shanghai"), None, now=late).facets.periods
    assert (day.start, day.end) == (datetime(2026, 11, 16, 16, tzinfo=UTC), datetime(2026, 11, 17, 16, tzinfo=UTC))


def test_of_a_piece_of_a_conversation_only_the_last_line_names_a_time():
    conversation = 'Ada: "When did we meet?"\nAssistant: "Yesterday."\nAda: "So what shall we do?"'
    reading = parse_cue(Cue(conversation), None, now=NOW)
    assert (reading.facets.periods, reading.facets.asks) == ((), frozenset())
    assert "meet" in reading.terms


def test_only_the_end_of_a_long_line_is_read_for_times():
    days = "yesterday " * 700
    assert parse_cue(Cue(days + "and on 3 May 2024"), None, now=NOW).facets.periods[-1].start.year == 2024
    filler = "and so on and on " * 40
    reading = parse_cue(Cue(f"yesterday {filler}"), None, now=NOW)
    assert reading.facets.periods == ()
    # A cut within a number would make another one of it.
    cut = "2024年5月3日" + "，" * (MAX_QUESTION_LENGTH - 7)
    assert all(period.start.year != 24 for period in parse_cue(Cue(cut), None, now=NOW).facets.periods)


def test_what_is_asked_as_of_a_moment_is_seen_from_there():
    then = datetime(2020, 1, 10, tzinfo=UTC)
    (day,) = parse_cue(Cue("what happened yesterday", as_of=then), None, now=NOW).facets.periods
    assert day.start == datetime(2020, 1, 9, tzinfo=UTC)


BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("given", [{"since": NOW}, {"until": NOW}, {"since": BEGINNING, "until": NOW}])
def test_a_period_that_the_caller_names_is_the_only_one(given):
    (period,) = parse_cue(Cue("what happened yesterday", **given), None, now=NOW).facets.periods
    assert period.start == given.get("since", datetime(2, 1, 1, tzinfo=UTC))
    assert period.end == given.get("until", datetime(9998, 1, 1, tzinfo=UTC))


def test_whose_memory_it_is_tells_nothing_apart():
    assert find_terms("冯浩然喜欢跑步", ("冯浩然",)) == find_terms("喜欢跑步")
    assert find_terms("What does Ada like?", ("Ada", "")) == find_terms("What does like?")
    assert find_terms("What do Adams like?", ("Ada",)) == find_terms("What do Adams like?")
    assert find_terms("Ada", ("Ada",)) == find_terms("Ada")
    assert find_terms("What does Li like?", ("Li",)) == find_terms("What does like?")
    # One letter may be anything.
    assert find_terms("vitamin D pills", ("D",)) == find_terms("vitamin D pills")
    assert find_terms("tea with Ada and Li", ("Ada", "Li")) == find_terms("tea with and")


def test_keywords_are_words_and_phrases_without_those_that_only_ask():
    assert find_keywords("What is the red bicycle?") == ("red", "bicycle", "red bicycle")
    assert find_keywords("李雷的自行车") == ("李雷", "自行", "行车", "自行车")
    assert find_keywords("red, bicycle") == ("red", "bicycle")


def test_a_keyword_has_up_to_four_characters():
    found = find_keywords("北京清华大学")
    assert {"清华", "华大学", "清华大学"} <= {*found}
    assert max(map(len, found)) == 4


def test_so_many_keywords_are_read():
    words = [f"word{number}" for number in range(70)]
    assert MAX_KEYWORDS == 64
    assert find_keywords(" ".join(words)) == tuple(words[:MAX_KEYWORDS])


def test_paths_are_read_where_they_are_written():
    assert find_paths("tell me about project->partner -> memory, please") == ["project->partner -> memory"]
    assert find_paths("a -> ") == []
    assert find_paths("no path") == []


@given(st.text(max_size=300))
def test_no_text_breaks_the_reading(text):
    reading = parse_cue(Cue(text), None, now=NOW, own=(text[:5],))
    assert len(reading.facets.keywords) <= 64
    assert all(period.start < period.end for period in reading.facets.periods)


def test_a_long_text_with_an_arrow_takes_no_time():
    text = "a->b " + "路" * 8_000
    started = time.thread_time()
    assert find_paths(text) == ["a->b"]
    assert time.thread_time() - started < 0.5


@pytest.mark.parametrize(
    ("text", "actor"),
    [
        ("What advice does Gina give to Jon?", "gina"),
        ("What do Gina and Jon have in common?", ""),
        ("Which city have both Gina, Jon visited?", ""),
        ("小王和小李去了哪里", ""),
        ("小王與小李去了哪裡", ""),
        ("小王送了小李什么", "gina"),
        ("小王，小李都去了", ""),
    ],
)
def test_who_is_named_first_did_it_unless_they_are_named_together(text, actor):
    assert find_actor(text, ["gina", "jon"]) == actor
    assert find_actor(text, ["gina"]) == ""
