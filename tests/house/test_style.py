"""The words of the house: the patterns of style that readers stumble over become fewer, and none comes back."""

from __future__ import annotations

from collections import Counter

import pytest

from house import style

CEILINGS = {
    "help": 0, "errors": 0, "settings": 0, "openapi": 0, "mcp": 0, "prompts": 0,
    "docstrings": 0, "comments": 0, "pages": 213,
}  # fmt: skip
"""How often a pattern may occur in each kind of text."""
POOR_NAMES = {
    "constant": 1, "class": 1, "function": 0,
    "name in more than three modules": 132, "name in more than ten modules": 1,
}  # fmt: skip
SOURCE = '''"""Say what lies beside it."""

MOST_HITS = 1  # what is found


def tell() -> None:
    """Return `what is` quoted, and "what was" said."""
    raise ValueError("there is no such hit")  # style: ok
'''


def test_patterns_do_not_come_back():
    found = [*style.find_relapses(style.list_texts())]
    counts = Counter(text.kind for _, text, _ in found)
    assert {kind: count for kind, count in counts.items() if count > CEILINGS[kind]} == {}, found[:20]


def test_poor_names_do_not_come_back():
    counts = Counter(sort for sort, _ in style.find_poor_names())
    assert {sort: count for sort, count in counts.items() if count > POOR_NAMES[sort]} == {}


def test_a_pattern_is_found_in_each_kind_of_text_of_a_module():
    found = [(name, text.kind) for name, text, _ in style.find_relapses(style.list_source("a.py", SOURCE))]
    assert sorted(found) == [
        ("beside", "docstrings"),
        ("docstring verb", "docstrings"),
        ("lie, stand", "docstrings"),
        ("what is ...", "comments"),
        ("what is ...", "docstrings"),
    ]


@pytest.mark.parametrize("text", ["What is your name?", "a `beside` in code", 'She asked "what is it?".'])
def test_questions_and_quoted_words_do_not_count(text):
    assert [*style.find_relapses([style.Text("docstrings", "a.py:1", text)])] == []
