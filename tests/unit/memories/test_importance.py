"""How important a memory is where nobody said: little is known without a model, and it is marked as such."""

from __future__ import annotations

import pytest

from recollect.core.memories.importance import IDLE, LIFE_EVENT, ORDINARY, SMALL_TALK, complete, rate
from recollect.models.memories import ImportanceFrom, NewMemory, Triple
from recollect.verbs.memories.rows import prepare


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("My mother died yesterday.", LIFE_EVENT),
        ("I am allergic to peanuts", LIFE_EVENT),
        ("我妈妈昨天去世了", LIFE_EVENT),
        ("她对花生过敏", LIFE_EVENT),
        ("Hello there!", SMALL_TALK),
        ("ok, thank you so much :)", SMALL_TALK),
        ("好的，谢谢你！", SMALL_TALK),
        ("哈哈哈", SMALL_TALK),
        ("", SMALL_TALK),
        ("I had toast for breakfast", ORDINARY),
        ("今天早上我吃了面包", ORDINARY),
        ("thanks to Ann the house is sold", ORDINARY),
        ("the studied deadline", ORDINARY),
    ],
)
def test_a_text_is_rated_by_what_it_tells(content, expected):
    assert rate(content) == expected


def test_what_says_that_nothing_happens_is_least():
    [idle] = [prepare(NewMemory("the bed is idle", triple=Triple("bed", "is", "idle"))).memory]
    assert (idle.importance, idle.importance_from) == (IDLE, ImportanceFrom.RULE)


def test_what_the_caller_says_stands():
    said = NewMemory("My mother died yesterday.", importance=3.0)
    assert complete(said) is said


@pytest.mark.parametrize("text", ["哈" * 60, "ha" * 30, "ok " * 20, "好" * 59 + "x", "no" * 29 + "!?", "-" * 60])
def test_a_text_that_is_nearly_small_talk_is_read_once(text):
    # A pattern that reads a text in two ways would try 2 to the 60th of them.
    assert rate(text) in {SMALL_TALK, ORDINARY}
