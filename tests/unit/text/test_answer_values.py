"""Values of a model's answer are read as far as they can be used, and what is dropped is counted by its sort."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from recollect.core.text.answers import (
    LOOPING,
    MAX_DATE_LENGTH,
    MAX_ITEMS_READ,
    AnswerParser,
    counted,
    read_moment,
    tidy,
)
from recollect.models.knowledge import ValidTime

SHANGHAI = timezone(timedelta(hours=8))


def day(year, month=1, number=1, hour=0):
    return datetime(year, month, number, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "items", "dropped"),
    [
        ([1, 2], [1, 2], 0),
        ((1, 2), [1, 2], 0),
        ([], [], 0),
        ("one", ["one"], 0),
        ({"a": 1}, [{"a": 1}], 0),
        (None, [], 0),
        (5, [], 1),
        ([0] * MAX_ITEMS_READ, [0] * MAX_ITEMS_READ, 0),
        ([0] * (MAX_ITEMS_READ + 3), [0] * MAX_ITEMS_READ, 3),
    ],
)
def test_a_single_value_is_a_list_of_one(value, items, dropped):
    parser = AnswerParser()
    assert list(parser.items(value, "facts")) == items
    assert parser.dropped == ({"facts": dropped} if dropped else {})


@pytest.mark.parametrize(
    ("value", "line", "dropped"),
    [
        (None, "", {}),
        (5, "", {"names": 1}),
        (" two\n lines\x00 ", "two lines", {}),
        ("a" * 10, "a" * 10, {}),
        ("a" * 11, "a" * 9 + "…", {"ends of texts": 1}),
        ("a" * 10 + " " * 30, "a" * 10, {}),
        ("a" * 10 + " " * 31, "a" * 10, {"ends of texts": 1}),
        ("a" * 8 + " bc", "a" * 8 + "…", {"ends of texts": 1}),
    ],
)
def test_a_text_is_one_line_within_its_length(value, line, dropped):
    parser = AnswerParser()
    assert parser.text(value, 10, "names") == line
    assert parser.dropped == dropped


def test_a_long_text_that_repeats_itself_is_said_once():
    parser = AnswerParser()
    assert parser.text("ab" * (LOOPING // 2) + "!", 1000, "names") == "ab!"
    assert parser.dropped == {"repetitions": 1}


@pytest.mark.parametrize("text", ["ab" * (LOOPING // 2), "".join(f"{number} " for number in range(100)).strip()])
def test_a_text_that_is_short_or_new_throughout_stays(text):
    parser = AnswerParser()
    assert parser.text(text, 1000, "names") == text
    assert not parser.dropped


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("Ann", "Ann"),
        (" Ann\n Lee ", "Ann Lee"),
        ("A" * 10, "A" * 10),
        ("A" * 11, ""),
        ("A" + " " * 39, "A"),
        ("A" + " " * 40, ""),
        ("?!", ""),
        ("", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_a_name_is_short_and_has_a_letter_or_digit(value, name):
    parser = AnswerParser()
    assert parser.name(value, 10, "people") == name
    assert parser.dropped == ({} if name else {"people": 1})


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1),
        (10, 10),
        (0, None),
        (11, None),
        ("7", 7),
        (" #7 ", 7),
        ("7.0", 7),
        ("7.5", None),
        ("seven", None),
        ("0000007", None),
        ("000007", 7),
        (2.6, 3),
        (2.4, 2),
        (float("nan"), None),
        (float("inf"), None),
        (True, None),
        ([3], None),
    ],
)
def test_a_number_is_whole_and_within_its_bounds(value, number):
    parser = AnswerParser()
    assert parser.number(value, 1, 10, "ratings") == number
    assert parser.dropped == ({} if number else {"ratings": 1})


def test_a_number_that_is_not_given_is_not_dropped():
    parser = AnswerParser()
    assert parser.number(None, 1, 10, "ratings") is None
    assert not parser.dropped


@pytest.mark.parametrize(
    ("begins", "ends", "span", "dropped"),
    [
        (None, None, ValidTime(None, None), 0),
        ("2023", "2024", ValidTime(day(2023), day(2024)), 0),
        ("2023", None, ValidTime(day(2023), None), 0),
        (None, "2023-05", ValidTime(None, day(2023, 5)), 0),
        ("2023-05-03", "2023-05-03", ValidTime(day(2023, 5, 3), day(2023, 5, 4)), 0),
        ("2023-05", "2023-05", ValidTime(day(2023, 5)), 1),
        ("2023-05-03", "2023-05-03T00:00:00Z", ValidTime(day(2023, 5, 3)), 1),
        ("2023-05-03T00:00:00Z", "2023-05-03", ValidTime(day(2023, 5, 3)), 1),
        ("2024", "2023", ValidTime(day(2024)), 1),
        ("soon", "2023", ValidTime(None, day(2023)), 1),
        (2023, ["2024"], ValidTime(None, None), 2),
        ("unknown", " Present ", ValidTime(None, None), 0),
        ("", "至今", ValidTime(None, None), 0),
        ("n/a", "ongoing", ValidTime(None, None), 0),
        ("none", "current", ValidTime(None, None), 0),
        ("null", "now", ValidTime(None, None), 0),
    ],
)
def test_a_span_ends_after_it_begins(begins, ends, span, dropped):
    parser = AnswerParser()
    assert parser.span(begins, ends) == span
    assert parser.dropped == ({"dates": dropped} if dropped else {})


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2023", day(2023)),
        ("2023年", day(2023)),
        ("2023/5", day(2023, 5)),
        ("2023年5月", day(2023, 5)),
        ("2023年5月3日", day(2023, 5, 3)),
        ("2023.5.3", day(2023, 5, 3)),
        (" 2023-05-03 ", day(2023, 5, 3)),
        ("2023-05-03T10:00", day(2023, 5, 3, 10)),
        ("2023-05-03T10:00+02:00", day(2023, 5, 3, 8)),
        ("2023-13", None),
        ("2023-02-30", None),
        ("0002-05-05", None),
        ("0003-05-05", day(3, 5, 5)),
        ("9997-05-05", day(9997, 5, 5)),
        ("9998-05-05", None),
        ("２０２３", None),
        ("next week", None),
        ("2023" + " " * (MAX_DATE_LENGTH - 4), day(2023)),
        (" " * MAX_DATE_LENGTH + "2", None),
        ("2023-05-03T10:00:00.000000000000000000000000", None),
    ],
)
def test_a_moment_is_a_date_or_more(text, moment):
    assert read_moment(text) == moment


def test_a_moment_without_an_offset_lies_in_the_zone_of_the_reader():
    assert read_moment("2023-05-03", SHANGHAI) == day(2023, 5, 2, 16)
    assert read_moment("2023-05-03T10:00", SHANGHAI) == day(2023, 5, 3, 2)
    assert read_moment("2023-05-03T10:00Z", SHANGHAI) == day(2023, 5, 3, 10)
    assert AnswerParser(SHANGHAI).span("2023-05-03", None) == ValidTime(day(2023, 5, 2, 16))


def test_drops_of_nothing_are_not_counted():
    parser = AnswerParser()
    parser.drop("facts", 0)
    assert not parser.dropped
    parser.drop("facts")
    parser.drop("facts", 4)
    assert parser.dropped == {"facts": 5}


def test_the_length_of_a_list_is_asked_for():
    assert counted(1, 5).json_schema_extra == {"minItems": 1, "maxItems": 5}


@pytest.mark.parametrize(("text", "line"), [("abcd", "abcd"), ("abcde", "abc…"), ("ab  cde", "ab…"), (" \t\n", "")])
def test_a_tidy_line_ends_with_dots_where_it_is_cut(text, line):
    assert tidy(text, 4) == line
