"""Values of another system are brought within the limits here, exactly up to them, and each change is counted."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from recollect.core.imports.text import (
    CLEANED,
    INVALID_TIME,
    LARGE,
    LONG,
    clean_json,
    cut,
    hash_parts,
    note,
    to_identifier,
    to_line,
    to_moment,
    to_user,
)


@pytest.fixture
def remarks() -> Counter[str]:
    return Counter()


def test_every_text_of_a_value_is_cleaned_and_counted(remarks):
    value = {"a\0": ["\ud800", 1, None, {"b": "c\0\0"}], "d": True}
    assert clean_json(value, remarks) == {"a\ufffd": ["\ufffd", 1, None, {"b": "c\ufffd\ufffd"}], "d": True}
    assert remarks == {CLEANED: 3}


def test_a_line_is_cut_and_has_no_blanks_around_it(remarks):
    assert to_line("\ta\nb ", remarks) == "a b"
    assert [len(to_line("x" * length, remarks)) for length in (199, 200, 201)] == [199, 200, 200]
    assert to_line("abc", remarks, 2) == "ab"
    assert remarks == {}


def test_a_text_ends_where_no_more_can_be_kept(remarks):
    assert cut("abc", 3, remarks) == "abc"
    assert remarks == {}
    assert cut("abcd", 3, remarks) == "abc"
    assert remarks == {LONG: 1}


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1.5, datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)),
        (100_000_000_000, datetime(5138, 11, 16, 9, 46, 40, tzinfo=UTC)),
        (100_000_000_001, datetime(1973, 3, 3, 9, 46, 40, 1_000, tzinfo=UTC)),
        (-100_000_000_001, datetime(1966, 10, 31, 14, 13, 19, 999_000, tzinfo=UTC)),
        (" 2024-03-01 ", datetime(2024, 3, 1, tzinfo=UTC)),
        ("0002-01-01T00:00:00Z", datetime(2, 1, 1, tzinfo=UTC)),
        ("9998-12-31T00:00:00Z", datetime(9998, 12, 31, tzinfo=UTC)),
    ],
)
def test_a_number_is_a_time_in_seconds_or_if_it_is_large_in_milliseconds(value, moment, remarks):
    assert to_moment(value, remarks) == moment
    assert remarks == {}


@pytest.mark.parametrize("value", ["0001-12-31T23:59:59Z", "9998-12-31T00:00:01Z", False, {}, "x", 1e20])
def test_a_time_that_no_clock_shows_is_left_out(value, remarks):
    assert to_moment(value, remarks) is None
    assert remarks == {INVALID_TIME: 1}


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("tea time", "tea-time-"),
        ("-.tea/-.", "tea-"),
        ("茶", ""),
        ("..", ""),
        ("a" * 109 + "//" + "b" * 30, "a" * 109 + "--"),
        ("a" * 129, "a" * 110 + "-"),
    ],
)
def test_an_id_that_does_not_fit_keeps_its_readable_part_before_a_hash(text, readable):
    assert to_identifier(text) == readable + hash_parts(text)


@pytest.mark.parametrize("text", ["tea", "a" * 128, "A.b_c:d@e-9", "X.", ".X"])
def test_an_id_that_fits_stays_as_it_is(text):
    assert to_identifier(text) == text


def test_a_user_is_named_in_any_script_in_composed_form():
    assert to_user("李雷") == "李雷"
    assert to_user("Ame\u0301lie") == "Amélie"
    assert to_user("a/b") == to_identifier("a/b")


def test_a_hash_is_the_same_in_every_release_because_known_entries_are_found_by_it():
    assert hash_parts("a", 1) == "839e11a421d370be"
    assert hash_parts("a", "b") != hash_parts("ab")
    assert len(hash_parts("\ud800")) == 16


def test_what_is_empty_is_not_noted(remarks):
    empty = {"a": None, "b": "", "c": [], "d": {}, "e": 0, "f": False}
    assert note("x", empty, empty, remarks) == {"x": {"e": 0, "f": False}}
    assert note("x", {"a": 1}, {"b": "\0", "a": 2}, remarks) == {"x": {"a": 2, "b": "\ufffd"}}
    assert note("x", {}, {}, remarks) == {"x": {}}
    assert remarks == {CLEANED: 1}


def test_what_is_too_large_to_be_noted_is_left_out_and_the_rest_is_kept(remarks):
    deep: dict[str, object] = {}
    for _ in range(900):
        deep = {"in": deep}
    for much in ("x" * 20_000, deep):
        assert note("x", {"a": 1}, {"b": much}, remarks) == {"x": {"a": 1}}
    assert remarks == {LARGE: 2}
