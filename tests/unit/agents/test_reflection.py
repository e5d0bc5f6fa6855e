"""A reflection is due when the importance of what happened reaches the threshold, and then counting begins again."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.agents.reflection import (
    DEFAULT_THRESHOLD,
    ReflectionBacklog,
    add_importance,
    drop_repeated,
    waits_for_reflection,
)
from recollect.models.memories import ImportanceFrom, Kind, Memory, NewMemory, Triple

importances = st.lists(st.integers(1, 10).map(float), max_size=8)


def test_importance_and_events_gather():
    assert add_importance(20.0, 3, [5.0, 1.0], 150) == ReflectionBacklog(26.0, 5)


def test_reaching_the_threshold_is_enough():
    assert add_importance(145.0, 40, [4.0], 150) == ReflectionBacklog(149.0, 41)
    assert add_importance(145.0, 40, [5.0], 150) == ReflectionBacklog(0.0, 0, due=True)
    assert add_importance(145.0, 40, [9.0], 150) == ReflectionBacklog(0.0, 0, due=True)


def test_the_usual_threshold_is_150():
    assert DEFAULT_THRESHOLD == 150
    assert not add_importance(149.0, 40, []).due
    assert add_importance(149.0, 40, [1.0]).due


@given(st.integers(0, 1_000).map(float), st.integers(0, 99), importances)
def test_a_threshold_of_zero_is_never_reached(importance, events, added):
    assert add_importance(importance, events, added, 0) == ReflectionBacklog(
        importance + sum(added), events + len(added)
    )


def test_a_step_without_events_makes_nothing_due():
    assert add_importance(0.0, 0, [], 150) == ReflectionBacklog(0.0, 0)
    assert add_importance(200.0, 0, [], 150) == ReflectionBacklog(200.0, 0)


def test_a_lowered_threshold_is_noticed_at_the_next_step():
    assert add_importance(100.0, 30, [], 90).due


@given(st.lists(importances, max_size=40), st.integers(1, 60))
def test_no_importance_is_lost_or_counted_twice(steps, threshold):
    importance, events, reflected = 0.0, 0, []
    for step in steps:
        after = add_importance(importance, events, step, threshold)
        if after.due:
            reflected.append((importance + sum(step), events + len(step)))
            # It became due in this step and not before.
            assert importance < threshold <= reflected[-1][0]
        importance, events = after.importance, after.memories
        assert 0 <= importance < threshold
    assert importance + sum(gathered for gathered, _ in reflected) == sum(map(sum, steps))
    assert events + sum(counted for _, counted in reflected) == sum(map(len, steps))


@pytest.mark.parametrize("threshold", [0.5, 1, 10])
def test_one_weighty_event_can_be_enough(threshold):
    assert add_importance(0.0, 0, [10.0], threshold).due


@pytest.mark.parametrize(
    ("kind", "rated_by", "waits"),
    [
        (Kind.EVENT, ImportanceFrom.RULE, True),
        (Kind.EVENT, ImportanceFrom.CALLER, True),
        (Kind.MESSAGE, ImportanceFrom.RULE, False),
        (Kind.MESSAGE, ImportanceFrom.CALLER, True),
        (Kind.MESSAGE, ImportanceFrom.MODEL, True),
        (Kind.FACT, ImportanceFrom.CALLER, False),
        (Kind.THOUGHT, ImportanceFrom.CALLER, False),
    ],
)
def test_events_wait_for_reflection_and_messages_once_somebody_has_rated_them(kind, rated_by, waits):
    assert waits_for_reflection(NewMemory("tea", kind, importance_from=rated_by)) is waits


ONE, TWO = UUID(int=1), UUID(int=2)
SAID = "Ann cares for all the plants in her little garden"
NEARLY = "Ann cares for all the plants in her little gardens"
OTHERWISE = "Bob paints boats"
THEN = datetime(2026, 5, 4, tzinfo=UTC)


def think(text, *evidence):
    return NewMemory(text, Kind.THOUGHT, evidence=evidence)


def thought(text, *evidence):
    return Memory(
        UUID(int=9), Kind.THOUGHT, text, "", 5.0, Triple(), False, 1, (), "", 100, THEN, THEN, THEN, evidence, "", {}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("new", "left"),
    [
        (think(SAID, ONE), True),
        (think(SAID.upper(), TWO), True),
        (think(NEARLY, ONE, TWO), False),
        (think(NEARLY, ONE), True),
        (think(NEARLY, TWO), False),
        (think(OTHERWISE, ONE), False),
    ],
)
def test_a_thought_is_left_out_that_was_thought_before_or_nearly_so_from_the_same(new, left):
    assert drop_repeated([new], [thought(SAID, ONE)]) == ([] if left else [new])


def test_of_thoughts_that_say_the_same_the_first_is_kept():
    first, other = think(SAID, ONE), think(OTHERWISE, TWO)
    assert drop_repeated([first, think(NEARLY, ONE), other, think(SAID, TWO), other], []) == [first, other]
