"""What is done to a few messages of a long scope costs what they cost, not what the scope does."""

from __future__ import annotations

import time

import pytest

from recollect.models import NewMessage, Role

MESSAGES, CHOSEN = 8_000, 800


def chain(count):
    """Alternate questions and answers."""
    roles = (Role.USER, Role.ASSISTANT)
    return [NewMessage(roles[number % 2], f"word {number}") for number in range(count)]


@pytest.mark.slow
async def test_forgetting_and_restoring_do_not_read_the_scope_for_each_message(mind):
    for _ in range(MESSAGES // 1_000):
        await mind.conversation("long").append(chain(1_000))
    talk = mind.conversation("branched")
    stem = await talk.append(chain(CHOSEN))
    # A branch from every message: each has a child that outlives it.
    branches = [NewMessage(Role.USER, f"aside {place}", parent=each.id) for place, each in enumerate(stem)]
    kept = await talk.append(branches)

    started = time.perf_counter()
    await talk.archive()
    archived = time.perf_counter() - started
    started = time.perf_counter()
    await talk.restore()
    restored = time.perf_counter() - started
    assert restored < 12 * archived + 1

    started = time.perf_counter()
    await mind.forget([each.id for each in stem])
    assert time.perf_counter() - started < 5
    assert {leaf.id for leaf in await talk.leaves(200)} == {each.id for each in kept[-200:]}
