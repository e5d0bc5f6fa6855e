"""What a memory is like is found once, when it is written: its bits say what each rule says."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.core.recall.features import (
    MAX_CHARACTERS_READ,
    QUESTION_MARKS,
    TextTraits,
    detect_traits,
    is_instruction,
    tells_number,
    tells_time,
)

WORDS = ("yesterday", "two cups", "always", "what?", "真的？", "昨天", "三个", "请记得", "tea", " ", "x" * 50, "?")


def find_bits(content):
    """Find the bits by the rules as they stand, each for itself."""
    beginning = content[:MAX_CHARACTERS_READ]
    # As PostgreSQL's right() and rtrim() do it: only blanks are taken off.
    last = content[-40:].rstrip(" ")[-1:]
    return (
        1 * (last in QUESTION_MARKS)
        + 2 * tells_time(beginning)
        + 4 * tells_number(beginning)
        + 8 * is_instruction(beginning)
    )


@given(st.lists(st.sampled_from(WORDS)).map(" ".join) | st.text())
@example("")
@example(" ")
def test_the_bits_say_what_the_rules_say(content):
    assert detect_traits(content) == find_bits(content)


@given(st.lists(st.sampled_from((*WORDS, "May", "_may", "2024", "x2024", "20245", "3rd", "-"))).map("".join))
@example("in 2024-05")
def test_what_is_read_word_by_word_is_what_the_patterns_find(content):
    # A letter beyond ASCII that no rule knows: then the patterns read the text.
    assert tells_time(content) == tells_time(content + " é")
    assert tells_number(content) == tells_number(content + " é")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", TextTraits(0)),
        ("Tea is fine.", TextTraits(0)),
        ("Is tea fine?", TextTraits.QUESTION),
        ("茶好吗？  ", TextTraits.QUESTION),
        ("Is it?" + " " * 39, TextTraits.QUESTION),
        ("Is it?" + " " * 40, TextTraits(0)),
        ("Is it?\n", TextTraits(0)),
        ("Is it? X", TextTraits(0)),
        ("I came yesterday.", TextTraits.TIME),
        ("Café at noon in May", TextTraits.TIME),
        ("他昨天来了。", TextTraits.TIME),
        ("我们下个月见", TextTraits.TIME),
        ("他有几个朋友", TextTraits.NUMBER),
        ("请记得带茶", TextTraits.INSTRUCTION),
        ("他喜欢茶。", TextTraits(0)),
        ("I had two cups.", TextTraits.NUMBER),
        ("I was there in 2024.", TextTraits.TIME | TextTraits.NUMBER),
        ("Always bring tea.", TextTraits.INSTRUCTION),
        ("Please don't call.", TextTraits.INSTRUCTION),
        ("Always two cups.", TextTraits.INSTRUCTION | TextTraits.NUMBER),
        ("x" * MAX_CHARACTERS_READ + " always yesterday two", TextTraits(0)),
        ("Always two cups in 2024, right?", TextTraits(15)),
    ],
)
def test_each_rule_has_its_bit(content, expected):
    assert detect_traits(content) == expected


@pytest.mark.parametrize(
    "content",
    [
        "I never eat meat",
        "She would prefer tea",
        "Use trains rather than planes",
        "Make sure that the door is shut",
        "From now on, call me Bo",
        "Call whenever you like",
        "Please include the sources",
        "Please use metres",
        "Please provide a summary",
        "Please do not call",
        "他总是喝茶",
        "我永远不吃肉",
        "她从不迟到",
        "以后都叫我小李",
        "每次都要确认",
        "务必关门",
        "请不要打电话",
        "请用公制",
        "她更喜欢茶",
        "他偏好火车",
    ],
)
def test_what_is_always_or_never_to_be_done_is_an_instruction(content):
    assert is_instruction(content)


@pytest.mark.parametrize("content", ["I like tea", "Please sit down", "Use it", "请坐", "他喝茶"])
def test_what_is_done_once_is_none(content):
    assert not is_instruction(content)


def test_the_beginning_and_the_end_are_looked_at():
    assert detect_traits("x" * (MAX_CHARACTERS_READ - 7) + " always") == TextTraits.INSTRUCTION
    assert detect_traits("x" * (MAX_CHARACTERS_READ - 6) + " always") == TextTraits(0)
    assert MAX_CHARACTERS_READ == 400
