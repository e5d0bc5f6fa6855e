"""Who follows a scope that moves hears of every change once and in order, by a cursor or while it is followed."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import psycopg
import pytest

from recollect.errors import CursorExpiredError
from recollect.verbs.service.moves import Moves
from shards import quiet

pytest_plugins = ("moving_shards",)


async def stored(changes, count):
    """Take what was stored by so many writes."""
    found = []
    async for change in changes:
        if change.operation == "stored":
            found.append(change)
        if len(found) == count:
            return found
    raise AssertionError("it ended early")


async def remember(mind, *texts):
    return [(await mind.remember(text))[0].id for text in texts]


async def test_a_cursor_holds_after_a_move_and_after_the_next_one(many, layout):
    mind, moves = await many.mind("ada", "li", tenant="one"), Moves(layout.owner)
    async with aclosing(mind.changes()) as changes:
        cursor = (await anext(changes)).cursor
    expected = await remember(mind, "On the first shard.")
    for target in ("south", "north"):
        await moves.move("one", target, quiet, (0, 4095) if target == "south" else None)
        expected += await remember(mind, f"On {target}.")
        async with aclosing(mind.changes(cursor)) as changes:
            found = await stored(changes, len(expected))
        assert [change.ids[0] for change in found] == expected
        numbers = [change.number for change in found]
        assert numbers == sorted(numbers)
        async with aclosing(mind.changes(found[0].cursor)) as changes:
            assert [each.number for each in await stored(changes, len(expected) - 1)] == numbers[1:]


@pytest.mark.promise("Who follows a scope that moves to another shard hears of every change once and in order")
async def test_a_follower_goes_along_while_it_is_written(many, layout):
    mind = await many.mind("ada", "li", tenant="one")
    await mind.remember("The first.")
    written, stop = [], asyncio.Event()

    async def write():
        while not stop.is_set():
            written.extend(await remember(mind, f"Number {len(written)}."))

    async with aclosing(mind.changes()) as changes:
        began = await anext(changes)
        assert began.operation == "began"
        writer = asyncio.create_task(write())
        await Moves(layout.owner).move("one", "south", quiet)
        await asyncio.sleep(0.5)
        stop.set()
        await writer
        found = await stored(changes, len(written))
        assert [change.ids[0] for change in found] == written
        [last] = await remember(mind, "The last.")
        assert [change.ids[0] for change in await stored(changes, 1)] == [last]


async def test_a_cursor_from_before_a_restored_backup_is_refused_where_the_scope_is_now(many, layout):
    mind = await many.mind("ada", "li", tenant="one")
    async with aclosing(mind.changes()) as changes:
        cursor = (await anext(changes)).cursor
    await mind.remember("On the first shard.")
    await Moves(layout.owner).move("one", "south", quiet)
    async with aclosing(mind.changes(cursor)) as changes:
        await stored(changes, 1)
    with psycopg.connect(layout.shards["south"][1], autocommit=True) as owner:
        owner.execute("select renew_incarnation()")
    with pytest.raises(CursorExpiredError):
        await anext(mind.changes(cursor))
