"""Broken JSON is read as far as it can be relied on, in bounded time."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.text.broken_json import read_fragments

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Sure, here you are: {"a": 1} I hope this helps!', {"a": 1}),
        ('<think>Perhaps {"a": 2}?</think>{"a": 1}', {"a": 1}),
        ('{"a": 1, "b": [{"x": 1}, {"x": 2, "y": "cu', {"a": 1, "b": [{"x": 1}]}),
        ('{"a": 1, "b": [1, 2', {"a": 1, "b": [1]}),
        ('{"a": 1, "b": "cut off in the midd', {"a": 1}),
        ('{"a": 1, "b": {"c": 1, "d"', {"a": 1}),
        ('{"a": 12', {}),
        ('{"a": [1, 2,], "b": 3,}', {"a": [1, 2], "b": 3}),
        ('{"a": [1 2] "b": 3}', {"a": [1, 2], "b": 3}),
        ('{"a": [1, {"b": 2], "c": 3}', {"a": [1], "c": 3}),
        ('{"a": "two\nlines", "b": "C:\\dir\\x"}', {"a": "two\nlines", "b": "C:\\dir\\x"}),
        ("{'a': 'it\\'s \"so\"', 'b': None, 'c': True,}", {"a": 'it\'s "so"', "b": None, "c": True}),
        ('{"a": [NaN, undefined, 1], "b": 2,}', {"a": [None, 1], "b": 2}),
        ('{"a": , "b": 2}', {"b": 2}),
        ('{"a" "b": 2}', {"b": 2}),
        ("[1, 2]", [1, 2]),
        ("no JSON at all", None),
        ("", None),
        ("{", None),
    ],
)
def test_what_stands_is_read(text, value):
    assert read_fragments(text) == value


@given(VALUES)
def test_valid_json_is_read_as_it_is(value):
    assert read_fragments(json.dumps(value)) == value


@given(st.dictionaries(st.text(max_size=4), VALUES, min_size=1, max_size=4), st.data())
def test_what_is_left_of_a_cut_text_was_in_it(value, data):
    text = json.dumps(value)
    left = read_fragments(text[: data.draw(st.integers(0, len(text)))])
    for key, found in (left or {}).items():
        if isinstance(value[key], list) and isinstance(found, list):
            assert all(item in value[key] or item == [] or isinstance(item, list) for item in found)
        else:
            assert found == value[key]


@given(st.text(st.sampled_from("{}[]\",:'\\ab1 -.e\n"), max_size=80))
def test_no_text_is_too_broken(text):
    read_fragments("{" + text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 200_000,
        "[" * 1_000_000,
        '{"a":[' + '{"b":[1,' * 200_000,
        '{"a":[' + '[1,"' * 300_000,
        '{"a":' + '"' * 1_000_001,
        '{"a":"' + "\\" * 1_000_001,
        '{"a":[' + '{"b":"c" ' * 200_000,
        '{"a":' + "9" * 1_000_000 + ",}",
    ],
    ids=range(8),
)
def test_no_text_takes_long(text):
    began = time.process_time()
    read_fragments(text)
    assert time.process_time() - began < 3
