"""Transcripts: messages and facts as lines that fit a prompt and cannot break out of it."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.knowledge.transcripts import (
    MAX_NAMES,
    find_names,
    fit_facts,
    list_spoken,
    write_facts,
    write_transcript,
)
from recollect.models.conversations import Message, MessageStatus
from recollect.models.knowledge import Fact, ValidTime
from recollect.models.memories import Role

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NAMES = ("Li", "Ada")


def message(content, role=Role.USER, name="", status=MessageStatus.DONE):
    return Message(UUID(int=1), role, content, name, (), (), None, UUID(int=1), 1, status, 0, NOON, "")


def fact(text, span=ValidTime()):  # noqa: B008 - a frozen value
    return Fact(UUID(int=2), "Li", "lives in", "Berlin", text, span, NOON)


def test_every_message_is_one_dated_line_with_who_said_it():
    lines = write_transcript(
        [message("Hi\nthere"), message("Hello", Role.ASSISTANT), message("rain", Role.TOOL, "weather")], NAMES, 1_000
    )
    assert lines.splitlines() == [
        "1. [2026-03-02 12:00 Mon] Li (user): Hi there",
        "2. [2026-03-02 12:00 Mon] Ada (assistant): Hello",
        "3. [2026-03-02 12:00 Mon] weather (tool): rain",
    ]


def test_what_failed_or_says_nothing_is_left_out():
    assert write_transcript([message("x", status=MessageStatus.FAILED), message(" ")], NAMES, 1_000) == ""


def test_facts_are_numbered_and_say_when_they_are_true():
    spans = [ValidTime(), ValidTime(NOON), ValidTime(NOON, datetime(2027, 1, 1, tzinfo=UTC))]
    assert write_facts([fact("Li lives in Berlin", span) for span in spans]).splitlines() == [
        "1. Li lives in Berlin",
        "2. Li lives in Berlin (since 2026-03-02)",
        "3. Li lives in Berlin (since 2026-03-02 until 2027-01-01)",
    ]
    assert len(fit_facts([fact("x" * 200)] * 100, 4_000, 40)) == 4
    assert len(fit_facts([fact("x")] * 100, 400_000, 40)) == 40


@given(st.lists(st.text(max_size=3_000), max_size=60), st.integers(500, 20_000))
def test_a_transcript_keeps_within_its_room_and_its_tags(texts, characters):
    lines = write_transcript([message(text) for text in texts], NAMES, characters)
    assert len(lines) <= characters + len("[…]\n")
    assert "<" not in lines and ">" not in lines
    assert len(lines.splitlines()) <= len(texts) + 1


def test_a_long_conversation_keeps_its_beginning_and_its_end():
    lines = write_transcript([message(f"number {number} " + "x" * 500) for number in range(100)], NAMES, 2_000)
    assert "number 0 " in lines and "number 99 " in lines and "[…]" in lines


def test_names_are_found_in_words_and_in_characters():
    found = find_names(["Ann met Dr. Smith of Acme Corp.", "小明在清华大学读书"])
    assert {"ann", "smith", "acme corp", "小明", "清华大学"} <= set(found)
    assert find_names(["", "..."]) == []
    assert {"mark", "mary ann"} <= set(find_names(["上司Mark很严肃", "和Mary Ann去吃饭"]))


HEAD = "1. [2026-03-02 12:00 Mon] Li (user): "


@pytest.mark.parametrize(
    ("missing", "kept"), [(0, "x" * 100), (1, "x" * 61 + "…"), (38, "x" * 61 + "…"), (39, "x" * 59 + "…")]
)
def test_where_all_would_be_too_long_every_line_is_shortened_by_halves(missing, kept):
    room = len(HEAD) + 100 + 1
    assert write_transcript([message("x" * 100)], NAMES, room - missing) == HEAD + kept


def test_no_line_is_longer_than_four_thousand_characters():
    assert write_transcript([message("x" * 4_000)], NAMES, 99_999) == HEAD + "x" * 4_000
    assert write_transcript([message("x" * 4_001)], NAMES, 99_999) == HEAD + "x" * 3_999 + "…"


@pytest.mark.parametrize(
    ("lines", "more", "kept"),
    [
        (5, 0, [1, 2, 3, 4, 5]),
        (4, 0, [1, 2, None, 4, 5]),
        (5, -1, [1, 2, None, 4, 5]),
        (3, 0, [1, 2, None, 5]),
        (3, -1, [1, None, 5]),
        (2, 0, [1, None, 5]),
        (1, 0, [1, None]),
        (0, 0, [1, None]),
    ],
)
def test_where_even_short_lines_are_too_many_those_in_the_middle_are_left_out(lines, more, kept):
    said = [message("tea") for _ in range(5)]
    whole = len(HEAD) + len("tea") + 1
    found = write_transcript(said, NAMES, lines * whole + more).splitlines()
    assert [None if line == "[…]" else int(line[0]) for line in found] == kept


def test_who_says_no_name_is_called_by_their_part():
    said = [message("a", Role.SYSTEM), message("b", Role.ASSISTANT, "Bo"), message("c", Role.USER, "n" * 61)]
    told = [line.split("] ")[1] for line in write_transcript(said, NAMES, 1_000).splitlines()]
    assert told == ["system (system): a", "Bo (assistant): b", f"{'n' * 59}… (user): c"]


def test_only_what_has_a_line_is_listed():
    said = [message("a"), message("b", status=MessageStatus.FAILED), message(" "), message("c")]
    assert list_spoken(said) == [said[0], said[3]]


def test_a_fact_may_only_be_known_to_be_over_and_a_long_one_is_cut():
    assert write_facts([fact("tea", ValidTime(None, NOON))]) == "1. tea (until 2026-03-02)"
    assert write_facts([fact("x" * 300)]) == "1. " + "x" * 300
    assert write_facts([fact("x" * 301)]) == "1. " + "x" * 299 + "…"


@pytest.mark.parametrize(("characters", "fitting"), [(23, 0), (24, 1), (47, 1), (48, 2), (9_999, 3)])
def test_facts_take_a_quarter_of_a_prompt(characters, fitting):
    # Each takes its own character, a number, and a new line.
    assert len(fit_facts([fact("x")] * 3, characters, 40)) == fitting


def test_a_fact_that_does_not_fit_ends_the_list():
    few = [fact("x"), fact("x" * 99), fact("y")]
    assert fit_facts(few, 60, 40) == (few[0],)


def test_names_have_up_to_four_words():
    assert find_names(["one two three four five"]) == [
        *("one", "one two", "one two three", "one two three four"),
        *("two", "two three", "two three four", "two three four five"),
        *("three", "three four", "three four five", "four", "four five", "five"),
    ]


def test_names_have_two_to_eight_characters_where_words_are_not_spaced():
    run = "一二三四五六七八九"
    found = [name for name in find_names([run]) if name != run]
    assert found[:3] == ["一二", "一二三", "一二三四"]
    assert {len(name) for name in found} == {2, 3, 4, 5, 6, 7, 8}
    assert found[-1] == "八九"
    assert len(found) == len({*found}) == 8 + 7 + 6 + 5 + 4 + 3 + 2


def test_every_name_is_listed_once_in_the_order_it_is_found():
    assert find_names(["Ann Bo", "bo ANN"]) == ["ann", "ann bo", "bo", "bo ann"]


def test_of_very_many_names_the_first_are_listed():
    texts = [" ".join(f"w{number}x{text}" for number in range(1_000)) for text in range(13)]
    assert len(find_names(texts[:12])) == 12 * (4 * 1_000 - 6)
    found = find_names(texts)
    assert len(found) == MAX_NAMES == 50_000
    assert found[0] == "w0x0"
