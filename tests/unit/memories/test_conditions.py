"""Conditions on metadata are read as they are written, and nothing else is taken for one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.memories.conditions import OPERATORS, WhereCondition, read_condition
from recollect.errors import InvalidInputError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    lambda inner: st.lists(inner, max_size=3), max_leaves=5,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "field", "operator", "operand"),
    [
        ("project == alpha", "project", "$eq", "alpha"),
        ("project==alpha beta", "project", "$eq", "alpha beta"),
        (' "my field" != "3" ', "my field", "$ne", "3"),
        ("size>=3", "size", "$gte", 3),
        ("size < -1.5e3", "size", "$lt", -1500.0),
        ("due <= 2026-01-31", "due", "$lte", "2026-01-31"),
        ("in in [1, null]", "in", "$in", [1, None]),
        ("tags contains red", "tags", "$contains", "red"),
        ("due exists", "due", "$exists", True),
        ("due exists false", "due", "$exists", False),
        ("项目 == 甲", "项目", "$eq", "甲"),
        ("a == b == c", "a", "$eq", "b == c"),
        ("a == NaN", "a", "$eq", "NaN"),
    ],
)
def test_a_condition_is_read_as_it_is_written(text, field, operator, operand):
    assert read_condition(text) == WhereCondition(field, operator, operand)


@pytest.mark.parametrize(
    "text",
    [
        *("", "project", "project =", "project = alpha", "== 3", "a b == 3", "a ==", "a in 3", "a in", "a exists 3"),
        *(
            "a < [1]",
            "a > true",
            "a < null",
            "a contains",
            "a contains [1]",
            "a in [[1]]",
            'a in [{"b": 1}]',
            '"a\\u0000" == 1',
            '"a\\qb" == 1',
            '"a\\u12" == 1',
            'a == "\\u0000"',
            "a == 1e999",
            "a\nb == 1",
        ),
        *("a == \ud800", "a == " + "x" * 2_000, "a == " + "[" * 40 + "]" * 40, "drop existsx", "a containsred"),
    ],
)
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(InvalidInputError):
        read_condition(text)


@given(VALUES, st.sampled_from(["==", "!="]), st.text(min_size=1, max_size=20).filter(str.isprintable))
def test_whatever_is_written_as_json_is_read_back(value, operator, field):
    read = read_condition(f"{json.dumps(field, ensure_ascii=False)} {operator} {json.dumps(value)}")
    assert read == WhereCondition(field, OPERATORS[operator], value)
