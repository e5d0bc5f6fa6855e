"""Transcripts: messages and facts as lines that fit a prompt and cannot break out of it."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from recollect.core.knowledge.transcripts import find_names, fit_facts, write_facts, write_transcript
from recollect.models.conversations import Message, MessageStatus
from recollect.models.knowledge import Fact, Span
from recollect.models.memories import Role

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NAMES = ("Li", "Ada")


def message(content, role=Role.USER, name="", status=MessageStatus.DONE):
    return Message(UUID(int=1), role, content, name, (), (), None, UUID(int=1), 1, status, 0, NOON, "")


def fact(text, span=Span()):  # noqa: B008 - a frozen value
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
    spans = [Span(), Span(NOON), Span(NOON, datetime(2027, 1, 1, tzinfo=UTC))]
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
