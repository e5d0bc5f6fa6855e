"""No channel holds an answer up: one that stalls is given up in time and named, and the others answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import psycopg
import pytest
from psycopg import sql

from recollect.channels.channel import Proposal, skipped
from recollect.channels.past import PastChannel
from recollect.channels.recent import RecentChannel
from recollect.channels.text import TextChannel
from recollect.channels.vector import VectorChannel
from recollect.core.recall.columns import Candidates, to_ids
from recollect.core.recall.cues import parse_cue
from recollect.errors import UnavailableError
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue, Status
from recollect.store.service.scopes import locate
from recollect.verbs.recall import channels as asking
from recollect.verbs.recall.channels import PlannedCue, ask_channels, send
from recollect.wiring import connected
from support.programs.waiting import WAIT_SECONDS
from support.service.accesses import with_options
from support.service.known_numbers import VECTORS
from support.service.made_settings import make_settings

BOX = 2.0
"""So many seconds a channel is waited for: a busy machine answers simple questions within them."""
LATE = f"skipped: it did not answer within {BOX:g} s"
AGES = 600.0
"""So many seconds no test lasts."""
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


async def at_once():
    """Wait for nothing."""


async def for_ever():
    """Wait for what never comes."""
    await asyncio.Event().wait()


@dataclass
class Sleeper:
    """A channel of somebody else's, that waits for something else than the database."""

    wait: Callable[[], Awaitable[object]]
    name: str = "sleeper"
    wait_before_asking: Callable[[], Awaitable[object]] = at_once

    async def send_query(self, connection, place, reading, limit):
        await self.wait_before_asking()

        async def answer():
            await self.wait()
            return Proposal(Candidates(), "exact")

        return answer


@dataclass
class Waiter:
    """A channel whose statement takes its time on the server; it sends another one before."""

    seconds: float
    name: str = "waiter"

    async def send_query(self, connection, place, reading, limit):
        await connection.execute("select 1")
        cursor = await connection.execute("select 'slept' from pg_sleep(%s)", [self.seconds])

        async def answer():
            await cursor.fetchall()
            return Proposal(Candidates(to_ids([UUID(int=1)]), np.ones(1)), "exact")

        return answer


@dataclass
class Asker:
    """A channel that reads its answer before it returns: a round trip of its own."""

    seconds: float
    name: str = "asker"
    unlimited: bool = False

    async def send_query(self, connection, place, reading, limit):
        if self.unlimited:
            await connection.execute("set local statement_timeout = 0")
        cursor = await connection.execute("select 'slept' from pg_sleep(%s)", [self.seconds])
        await cursor.fetchall()
        return skipped("it has answered")


@pytest.fixture
async def mind(addresses, embedder):
    settings = make_settings(embedder="fake", recall__channel_timeout_seconds=BOX, pool_size=2)
    async with connected(settings, addresses, embedder) as running:
        mind = await running.mind("ada", "li")
        await mind.remember([NewMemory("the green apple"), NewMemory("a red apple"), NewMemory("rivers")])
        yield mind


@pytest.fixture
def rounds(monkeypatch):
    """The seconds that are granted to each round of questions."""
    granted = []

    async def note_and_send(*given):
        granted.append(given[-1])
        return await send(*given)

    monkeypatch.setattr(asking, "send", note_and_send)
    return granted


@pytest.fixture
def lock(addresses):
    """Hold a table so that nobody else can even read it."""

    @contextmanager
    def hold(*tables):
        with psycopg.connect(addresses.owner) as connection:
            for table in tables:
                statement = sql.SQL("lock table {} in access exclusive mode")
                connection.execute(statement.format(sql.Identifier(table)))
            yield
            connection.rollback()

    return hold


async def ask(mind, channels, *texts, seconds=BOX):
    parts = with_options(mind.access.parts, channel_seconds=seconds)
    place = await locate(mind.access.parts.database, mind.access.scope)
    vector = (await mind.access.parts.embedder.embed(["apple"]))[0]
    step = [
        PlannedCue(cue, parse_cue(cue, vector, now=NOW), channels, 10)
        for cue in [Cue(text) for text in texts or ("apple",)]
    ]
    async with asyncio.timeout(WAIT_SECONDS):
        return await ask_channels(parts, place, step)


def methods(answers):
    return [{name: proposal.method for name, proposal in each.items()} for each in answers]


async def test_all_answer_where_nothing_stalls(mind):
    channels = [VectorChannel(), TextChannel(), PastChannel(), RecentChannel(), Sleeper(at_once), Waiter(0.01)]
    answers = await ask(mind, channels, "apple", "rivers")
    assert [list(each) for each in answers] == [[channel.name for channel in channels]] * 2
    assert [len(each["text"].candidates) for each in answers] == [2, 1]
    assert {method for each in methods(answers) for method in each.values()} == {
        "exact",
        "skipped: the cue names no time",
    }


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_channel_that_waits_for_a_lock_is_given_up_and_named(mind, lock, place):
    channels = [VectorChannel(), RecentChannel()]
    channels.insert(place, TextChannel())
    with lock("memory_terms"):
        [found] = await ask(mind, channels)
    assert list(found) == [channel.name for channel in channels]
    assert (found["text"].method, [*found["text"].candidates]) == (LATE, [])
    assert [len(found[name].candidates) for name in ("vector", "recent")] == [3, 3]
    assert (await ask(mind, channels))[0]["text"].method == "exact"


async def test_a_recall_goes_on_without_it_and_says_so(mind, lock):
    await mind.remember(NewMemory("a yellow apple", keywords=("apple",)))
    with lock("memory_keywords"):
        found = await mind.recall("apple")
    assert (found.methods["keyword"], found.methods["text"], found.methods["vector"]) == (LATE, "exact", "exact")
    assert found.status is Status.OK and found.hits


@pytest.mark.parametrize(
    "stalled",
    [
        Waiter(AGES),
        Sleeper(for_ever),
        Sleeper(at_once, wait_before_asking=for_ever),
        Asker(AGES),
        Asker(AGES, unlimited=True),
    ],
    ids=["on the server", "elsewhere", "before it asks", "while it asks", "while the server ends nothing"],
)
async def test_whatever_a_channel_waits_for_it_is_given_up(mind, stalled):
    [found] = await ask(mind, [TextChannel(), stalled, VectorChannel()])
    assert (len(found[stalled.name].candidates), found[stalled.name].method) == (0, LATE)
    assert [len(found[name].candidates) for name in ("text", "vector")] == [2, 3]


async def test_several_that_stall_are_each_given_up(mind, lock):
    with lock("memory_terms", VECTORS):
        [found] = await ask(mind, [TextChannel(), RecentChannel(), VectorChannel(), Waiter(0.01)])
    assert [found[name].method for name in ("text", "vector")] == [LATE, LATE]
    assert len(found["recent"].candidates) == 3 and len(found["waiter"].candidates) == 1


@pytest.mark.parametrize(("large", "method"), [(True, "exact"), (False, LATE)])
async def test_in_a_large_scope_two_searches_go_side_by_side(mind, monkeypatch, large, method):
    # Neither asks before the other does; over one connection, each would be given up.
    monkeypatch.setattr(asking, "SIDE_BY_SIDE", 1 if large else 1_000)
    both = asyncio.Barrier(2)
    channels = [Sleeper(at_once, name=name, wait_before_asking=both.wait) for name in ("vector", "text")]
    # Where both must be answered, they have all the time that a busy machine needs.
    [found] = await ask(mind, channels, seconds=WAIT_SECONDS if large else BOX)
    assert {each.method for each in found.values()} == {method}


async def test_channels_that_wait_elsewhere_wait_side_by_side(mind):
    # None is answered before all wait; one by one, each would be given up.
    meeting = asyncio.Barrier(5)
    channels = [Sleeper(meeting.wait, f"sleeper {number}") for number in range(5)]
    [found] = await ask(mind, [TextChannel(), *channels])
    assert {proposal.method for proposal in found.values()} == {"exact"}


async def test_what_stalls_for_one_cue_is_given_up_for_all_of_them(mind, lock, rounds):
    with lock("memory_terms"):
        answers = await ask(mind, [VectorChannel(), TextChannel()], "apple", "rivers", "red")
    assert methods(answers) == [{"vector": "exact", "text": LATE}] * 3
    assert len(rounds) == 2


async def test_a_channel_that_is_alone_keeps_nobody_waiting(mind):
    [found] = await ask(mind, [Waiter(2 * BOX)])
    assert found["waiter"].method == "exact"


async def test_asking_leaves_time_to_fetch(mind, rounds):
    hasty = with_options(mind.access.parts, channel_seconds=5.0)
    hasty.database.deadline_seconds = 0.8
    place = await locate(hasty.database, mind.access.scope)
    channels = [Waiter(AGES, f"waiter {number}") for number in range(6)]
    cue = Cue("apple")
    [found] = await ask_channels(hasty, place, [PlannedCue(cue, parse_cue(cue, None, now=NOW), channels, 10)])
    # Each round is granted what those before it left over of three quarters of the deadline.
    assert rounds[0] == pytest.approx(0.3)
    assert sum(rounds) < 0.61
    assert found["waiter 0"].method == "skipped: it did not answer within 0.3 s"
    assert found["waiter 5"].method == "skipped: there was no time left to ask it"
    assert not any(proposal.answered for proposal in found.values())


async def test_a_database_that_is_away_is_no_stalled_channel(mind):
    class Broken:
        name = "broken"

        async def send_query(self, connection, place, reading, limit):
            cursor = await connection.execute("select from vectors_999")
            return cursor.fetchall

    with pytest.raises(UnavailableError):
        await ask(mind, [TextChannel(), Broken()])
