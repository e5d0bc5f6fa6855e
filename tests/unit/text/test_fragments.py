"""Broken JSON is read as far as it can be relied on, in bounded time."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.text.lenient_json import MAX_DEPTH, read_fragments

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


MORE = [
    ('{"a": {"b": 1}, "c": 2', {"a": {"b": 1}}),
    ('{"a": [1, : 2], "b": 3,}', {"a": [1, 2], "b": 3}),
    ("{'a': [1, 'x', {'b': 2}], 'c': 3}", {"a": [1, "x", {"b": 2}], "c": 3}),
    ('{"a": tru, "b": 2,}', {"b": 2}),
    ('{"a": True, "b": NONE, "c": False,}', {"a": True, "b": None, "c": False}),
    ('{"a": "x\\qy", "b": "\\u00e9\\n", "c": "\\u12",}', {"a": "x\\qy", "b": "é\n", "c": "\\u12"}),
    ('{"a": [[1, 2], [3', {"a": [[1, 2]]}),
    ('{"a": {"b": [1, {"c": 2}, {"d"', {}),
    ('```json\n{"a": 1,}\n```', {"a": 1}),
    ('x ```\n{"a": 1}\n``` y {"b": 2}', {"a": 1}),
    ('{"a": "b" "c": "d",}', {"a": "b", "c": "d"}),
    ('x { y {"a": 1} z', {"a": 1}),
    ('{"a": [], "b": {}, "c": [1,', {"a": [], "b": {}, "c": [1]}),
    ('{"a": -1.5e3, "b": 0x1, "c": 2,}', {"a": -1500.0, "c": 2}),
    ('</think>{"a": 1}</think> {"b": 2,}', {"b": 2}),
]


@pytest.mark.parametrize(("text", "value"), MORE)
def test_mistakes_cost_no_more_than_what_they_touch(text, value):
    assert read_fragments(text) == value


def test_a_broken_list_is_read_down_to_a_depth():
    def nest(depth):
        return '{"k": 1, "a":' + "[" * depth + "'x'" + "]" * depth + "}"

    deepest = read_fragments(nest(MAX_DEPTH - 1))["a"]
    for _ in range(MAX_DEPTH - 1):
        [deepest] = deepest
    assert deepest == "x"
    assert read_fragments(nest(MAX_DEPTH))["a"] == read_fragments(nest(MAX_DEPTH - 1))["a"]


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
