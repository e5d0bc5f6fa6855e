"""The pure rules of items: names that can be told apart, conditions as values, and what a batch of writes comes to."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.items.rules import (
    FieldCondition,
    before_gap,
    bound_paths,
    check_operations,
    decode_path,
    encode_path,
    match_suffix,
    match_under,
    prepare_where,
)
from recollect.core.items.writes import (
    CurrentItem,
    apply_writes,
    find_remembered,
    fingerprint_operations,
    read_back,
    summarize_outcome,
)
from recollect.errors import ConflictError, InvalidInputError
from recollect.models.items import DropItem, GetItem, PutItem

NOW = datetime(2026, 3, 1, 8, tzinfo=UTC)
OLD, NEW = UUID(int=1), UUID(int=2)
segments = st.text(st.characters(exclude_characters="\x1f\x00", exclude_categories=["Cs"]), min_size=1, max_size=5)
paths = st.lists(segments, min_size=1, max_size=4).map(tuple)


@given(paths)
def test_a_path_is_read_back_as_it_was(path):
    assert decode_path(encode_path(path)) == path


@given(paths, paths)
def test_the_range_of_a_path_holds_what_lies_under_it_and_nothing_else(path, under):
    first, beyond = bound_paths(under)
    within = first.encode() <= encode_path(path).encode() < beyond.encode()
    assert within == (path[: len(under)] == under)


def test_the_range_of_no_path_is_all():
    assert bound_paths(()) == ("", None)


def test_gaps_are_patterns_and_all_else_is_literal():
    assert (before_gap(("a", "*", "b")), match_under(("a", "b")), match_suffix(())) == (("a",), None, None)
    assert match_under(("a.b", "*")) == "^a\\.b\x1f[^\x1f]+\x1f"
    assert match_suffix(("(c", "张")) == "(^|\x1f)\\(c\x1f张\x1f$"


def test_conditions_are_taken_apart():
    assert prepare_where({"a": 1, "b": {"$gt": 2, "$lt": 5}, "c": [1], "d": {}}) == (
        FieldCondition("a", "$eq", 1),
        FieldCondition("b", "$gt", 2),
        FieldCondition("b", "$lt", 5),
        FieldCondition("c", "$eq", [1]),
    )
    with pytest.raises(InvalidInputError, match="64 conditions"):
        prepare_where({str(number): 1 for number in range(65)})


def test_a_batch_is_bounded_as_a_whole():
    large = {"s": "x" * 999_000}
    with pytest.raises(InvalidInputError, match="2000000 bytes"):
        check_operations([PutItem(("a",), str(number), large) for number in range(9)])
    with pytest.raises(InvalidInputError, match="250000 characters"):
        check_operations([PutItem(("a",), str(number), {}, text="x" * 32_000) for number in range(32)])
    deep: dict[str, object] = {}
    for _ in range(70):
        deep = {"in": deep}
    with pytest.raises(InvalidInputError, match="64 levels"):
        check_operations([PutItem(("a",), "k", deep)])


def put(key="k", **more):
    return PutItem(("a",), key, {"n": 1}, **more)


def test_only_what_stands_in_the_end_is_remembered():
    batch = [
        put(text="first"),
        put(text="second"),
        put("x", text="third"),
        DropItem(("a",), "x"),
        put("y", text="kept", memory=False),
    ]
    assert {place: memory.content for place, memory in find_remembered(batch).items()} == {1: "second"}


def test_writes_follow_each_other_on_what_stood_before():
    before = {(("a",), "k"): CurrentItem(4, NOW - timedelta(days=1), OLD), (("a",), "x"): CurrentItem(1, NOW, None)}
    batch = [
        put(expected=4),
        GetItem(("a",), "k"),
        DropItem(("a",), "k", 5),
        put(text="t", expected=0),
        DropItem(("a",), "x"),
    ]
    outcome = apply_writes(batch, before, {3: NEW}, NOW)
    assert [(item.revision, item.memory_id) for item in (outcome.results[0], outcome.results[3])] == [
        (5, None),
        (1, NEW),
    ]
    assert (outcome.results[2], outcome.results[4]) == (True, True)
    assert [*outcome.kept.values()] == [outcome.results[3]]
    assert (outcome.dropped, outcome.forgotten) == ([(("a",), "x")], [OLD])
    assert outcome.results[3].created_at == NOW
    assert read_back(batch, summarize_outcome(outcome), {3: NEW}) == outcome.results


@pytest.mark.parametrize(("expected", "stands"), [(0, 1), (2, 1), (1, 0)])
def test_another_revision_than_expected_is_a_conflict(expected, stands):
    before = {(("a",), "k"): CurrentItem(stands, NOW, None)} if stands else {}
    for write in (put(expected=expected), DropItem(("a",), "k", expected)):
        with pytest.raises(ConflictError, match=r"operations\.0"):
            apply_writes([write], before, {}, NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"path": ("b",)},
        {"key": "l"},
        {"value": {"n": 2}},
        {"text": "t"},
        {"embedding": [1.0]},
        {"importance": 6.0},
        {"occurred_at": NOW},
        {"expected": 0},
        {"memory": False},
    ],
)
def test_whatever_a_write_says_is_in_its_fingerprint(change):
    assert fingerprint_operations([replace(put(), **change)]) != fingerprint_operations([put()])
    assert fingerprint_operations([put(), GetItem(("a",), "k")]) == fingerprint_operations([put()])
