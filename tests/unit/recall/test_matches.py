"""What a model finds in a cue is cleaned: it can add topics and days, and nothing it says can do anything else."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.dates.periods import find_zone
from recollect.core.recall.cues import parse_cue
from recollect.core.recall.model_cues import (
    MAX_LISTED,
    MAX_MATCHES,
    Match,
    Matches,
    choose_shown,
    describe_additions,
    extend,
    read_day,
)
from recollect.models.recall import Cue
from recollect.models.topics import Topic

NOW = datetime(2026, 11, 18, 10, tzinfo=UTC)
CUE = Cue("Where did we leave work->trips, our->life yesterday?")
READING = parse_cue(CUE, None, now=NOW)


def topic(text):
    return Match(type="topic", text=text)


def date(text):
    return Match(type="date", text=text)


def added(*matches, cue=CUE):
    reading = parse_cue(cue, None, now=NOW)
    facets = extend(reading, cue, matches).facets
    assert facets.topics[: len(reading.facets.topics)] == reading.facets.topics
    assert facets.periods[: len(reading.facets.periods)] == reading.facets.periods
    days = [str(period.start) for period in facets.periods[len(reading.facets.periods) :]]
    return list(facets.topics[len(reading.facets.topics) :]), days


def test_topics_are_cleaned_and_known_ones_are_not_said_twice():
    found = [
        topic(" travel -> Japan {memories: 3}"),
        topic("Travel->JAPAN"),
        topic("Our->LIFE"),
        topic("Work->Trips"),
    ]
    assert added(*found) == (["travel->Japan"], [])


@pytest.mark.parametrize("text", ["", "  ", "->", "[root]", "a\nb", "a\0b", "x" * 101, "a->" * 17 + "a", "x" * 3_000])
def test_what_is_no_topic_is_left_out(text):
    assert added(topic(text), topic("food")) == (["food"], [])


def test_days_are_days_where_who_asks_is_and_known_ones_are_not_said_twice():
    assert added(date("2026-11-17"), date(" 2026-11-03 "), date("2026-11-03")) == ([], ["2026-11-03 00:00:00+00:00"])
    shanghai = replace(CUE, zone="Asia/Shanghai")
    assert added(date("2026-11-03"), cue=shanghai) == ([], ["2026-11-02 16:00:00+00:00"])
    day = read_day("2026-10-25", find_zone("Europe/Berlin"))
    assert day is not None
    assert (day.end - day.start).total_seconds() == 25 * 3_600


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "2026-02-30", "2026-13-01", "2026-1-2", "20261103", "2026-11-03T00:00", "2026-W45-2"),
        *("0000-01-01", "9999-12-31", "２０２６-11-03", "2026-11-03 2026-11-04", "-026-11-03", "2026-11-03\n2"),
    ],
)
def test_what_is_no_day_is_left_out(text):
    assert added(date(text), date("2026-11-03")) == ([], ["2026-11-03 00:00:00+00:00"])


def test_days_that_are_not_there_are_none():
    assert read_day("2011-12-30", find_zone("Pacific/Apia")) is None
    assert read_day("0001-01-01", find_zone("Asia/Shanghai")) is None


def test_a_period_that_the_caller_names_is_not_widened():
    for named in ({"since": NOW}, {"until": NOW}):
        cue = replace(CUE, **named)
        assert added(date("2026-11-03"), topic("food"), cue=cue) == (["food"], [])


def test_topics_that_the_caller_names_are_not_widened():
    cue = replace(CUE, topics=("life",))
    assert added(date("2026-11-03"), topic("food"), cue=cue) == ([], ["2026-11-03 00:00:00+00:00"])


def test_no_more_than_so_many_are_taken_and_they_are_counted():
    topics = [topic(f"food {number}") for number in range(20)]
    days = [date(f"2025-05-{number:02}") for number in range(1, 21)]
    found = extend(READING, CUE, [*topics, *days])
    assert describe_additions(READING, found) == f"{MAX_MATCHES} topics, {MAX_MATCHES} days"
    assert describe_additions(READING, extend(READING, CUE, [topics[0], days[0]])) == "1 topic, 1 day"
    assert describe_additions(READING, extend(READING, CUE, days[:2])) == "2 days"
    assert (
        describe_additions(READING, extend(READING, CUE, [topic("our->life"), date("soon")]))
        == "nothing beyond the rules"
    )


def test_one_item_of_no_use_does_not_spoil_the_others():
    items = [None, 3, "food", [], {}, {"type": "topic"}, {"type": 1, "text": "a"}, {"type": "date", "text": None}]
    good = {"type": "Topic", "text": "food", "certain": True}
    answer = Matches.model_validate_json(json.dumps({"matches": [*items, {"type": "person", "text": "Ada"}, good]}))
    assert added(*answer.matches) == (["food"], [])
    assert Matches(matches=[topic("food")]).matches == [topic("food")]


@given(st.lists(st.builds(Match, type=st.sampled_from(["topic", "date", "mood"]), text=st.text())))
def test_no_answer_can_break_it(matches):
    topics, days = added(*matches)
    assert len(topics) <= MAX_MATCHES
    assert len(days) <= MAX_MATCHES
    assert all(each.strip() for each in topics)


def test_of_a_large_tree_the_largest_topics_are_shown_with_what_is_above_them():
    leaves = [Topic(f"all->{number:03}", f"{number:03}", number, 0) for number in range(1, 301)]
    tree = [Topic("all", "all", 0, sum(leaf.memories for leaf in leaves)), *leaves]
    shown = choose_shown(tree, 10_000)
    assert len(shown) == MAX_LISTED
    assert (shown[0], shown[1], shown[-1]) == ("all", "all->102", "all->300")
    assert choose_shown(tree, 20) == ["all", "all->299", "all->300"]
    assert choose_shown([], 20) == []
