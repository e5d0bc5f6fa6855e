"""What a conversation was shown fades by the minute and with every block, and a cue that finds it again raises it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.conversations.shown_memories import (
    ShownMemory,
    decay_on_new_block,
    fade,
    level_of,
    register,
    still_visible,
)
from recollect.models.blocks import DetailLevel

NOW = datetime(2026, 5, 4, tzinfo=UTC)
ONE, OTHER = UUID(int=1), UUID(int=2)


def shown(score=100.0, memory_id=ONE):
    return ShownMemory(memory_id, "m0001", score, NOW)


@pytest.mark.parametrize(
    ("score", "level"),
    [
        *((100, DetailLevel.FULL), (70, DetailLevel.FULL), (69.9, DetailLevel.COMPACT), (30, DetailLevel.COMPACT)),
        *((29.9, DetailLevel.ABSTRACT), (0.1, DetailLevel.ABSTRACT), (0, None), (-5, None)),
    ],
)
def test_less_and_less_is_shown(score, level):
    assert level_of(score) == level


def test_eight_are_lost_a_minute():
    assert fade(shown(), NOW + timedelta(minutes=1)).score == 92
    assert fade(shown(), NOW + timedelta(seconds=30)).score == 96
    assert fade(shown(), NOW + timedelta(minutes=12.5)).score == 0
    assert fade(shown(), NOW - timedelta(hours=1)) == shown()


def test_a_newer_block_takes_eighteen_and_being_reminded_gives_back_sixteen():
    assert decay_on_new_block(shown(), NOW, reminded=False).score == 82
    assert decay_on_new_block(shown(), NOW, reminded=True).score == 98
    assert decay_on_new_block(shown(60), NOW, reminded=True).score == pytest.approx(60 - 18 + 9.6)
    # What is gone is shown again from the start, and not revived.
    assert decay_on_new_block(shown(-1), NOW, reminded=True).score == -1


def test_without_a_reminder_it_is_full_twice_then_compact_twice_then_abstract():
    each, levels = shown(), []
    while (level := level_of(each.score)) is not None:
        levels.append(level.value)
        each = decay_on_new_block(each, NOW, reminded=False)
    assert levels == ["full", "full", "compact", "compact", "abstract", "abstract"]


def test_what_is_gone_begins_afresh_and_what_is_present_goes_on():
    late = NOW + timedelta(minutes=5)
    present = still_visible([shown(), shown(20, OTHER)], late, {OTHER})
    assert {key: each.score for key, each in present.items()} == {ONE: 100 - 40 - 18}
    registered = register(present, [(ONE, "m0001"), (OTHER, "m0002")], late)
    assert [(each.memory_id, each.score, each.short_id) for each in registered] == [
        (ONE, 42.0, "m0001"),
        (OTHER, 100.0, "m0002"),
    ]


@given(st.floats(-10, 100), st.floats(0, 1e6), st.booleans())
def test_nothing_grows_by_waiting_and_nothing_exceeds_what_is_fresh(score, seconds, reminded):
    later = decay_on_new_block(shown(score), NOW + timedelta(seconds=seconds), reminded=reminded)
    assert later.score <= min(100, max(score, score - 2))
    assert later.computed_at >= NOW
