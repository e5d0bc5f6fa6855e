"""What is derived from a conversation while it is purged: none survives it; without the locks, some would."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from recollect.errors import InvalidInputError, NotFoundError, UnavailableError
from recollect.models.conversations import NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.store.conversations import lifecycle
from recollect.store.memories import memories
from support.measuring.sizes import Sizes

RACES = Sizes("races", ci=40, long=200)
UNLOCKED = Sizes("races", ci=36, long=60)
DERIVERS, STEPS, MOST_TRIES = 2, 3, 8
PAUSE_SECONDS = 0.015
WORD = "leakage"
SOURCES = """select id, trust, depth from memories
where scope_id = (select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s)
  and id = any (%(ids)s)"""


async def derive(mind, sources, taken, pause):
    """Derive from a source, then from what was derived, as often as it is allowed; each step is told."""
    try:
        with suppress(InvalidInputError, UnavailableError):
            [first] = await mind.remember(NewMemory(f"{WORD} of one", Kind.THOUGHT, evidence=(sources[0],)))
            taken.release()
            await asyncio.sleep(pause)
            [_] = await mind.remember(NewMemory(f"{WORD} of two", Kind.SUMMARY, evidence=(first.id, sources[1])))
            taken.release()
            await asyncio.sleep(pause)
            await mind.remember(NewMemory(f"{WORD} of both", Kind.THOUGHT, evidence=(first.id, sources[-1])))
    finally:
        # Nobody waits for what is not derived any more.
        for _ in range(STEPS):
            taken.release()


async def race(mind, number, kept, pause):
    """Let derived memories race with a purge that begins before, between or after them, by turns."""
    conversation = mind.conversation(f"c{number}")
    said = await conversation.append([NewMessage(Role.USER, f"{WORD} {part}") for part in range(2)])
    sources = [*(each.id for each in said), kept]

    taken = asyncio.Semaphore(0)

    async def purge():
        for _ in range(number % (DERIVERS * STEPS + 1)):
            await taken.acquire()
        with suppress(NotFoundError, UnavailableError):
            await conversation.purge()

    await asyncio.gather(purge(), *(derive(mind, sources, taken, pause) for _ in range(DERIVERS)))


async def run_races(recollect, mind, races, first=0, pause=0.0):
    """Race again and again; a deadlock that ends one of the two is part of the race, and jobs finish what is left."""
    [kept] = await mind.remember("something to keep")
    for number in range(first, first + races):
        await race(mind, number, kept.id, pause)
    await recollect.work(until_empty=True)


def count_leaks(owner):
    said = owner.execute("select count(*) from memories where content like %s", [f"%{WORD}%"]).fetchone()[0]
    loose = owner.execute(
        "select count(*) from evidence where not exists "
        "(select from memories m where (m.scope_id, m.id) = (evidence.scope_id, evidence.source_id))"
    ).fetchone()[0]
    return said, loose


@pytest.mark.promise("Nothing derived from a conversation survives its purge, however they race", RACES)
async def test_nothing_derived_slips_through_a_purge(recollect, mind, owner, figure):
    await run_races(recollect, mind, RACES.now)
    leaks = count_leaks(owner)
    derived, to_rederive = owner.execute(
        "select sum((removed ->> 'derived')::int), sum((removed ->> 'to_rederive')::int) from purge_receipts"
    ).fetchone()
    figure(f"{derived} derived memories erased, {to_rederive} to rederive, {sum(leaks)} leaks")
    assert leaks == (0, 0)
    assert derived > 0
    assert to_rederive > 0
    total = owner.execute("select count(*) from memories where withheld is null").fetchone()[0]
    assert owner.execute("select memory_count from scopes").fetchone()[0] == total == 1


@pytest.mark.promise("The test of the purge notices what its locks keep from leaking", UNLOCKED)
async def test_without_the_locks_it_would(recollect, mind, owner, monkeypatch, figure):
    monkeypatch.setitem(memories.QUERIES, "sources", SOURCES)
    monkeypatch.setitem(lifecycle.QUERIES, "lock", lifecycle.QUERIES["lock"].replace("for no key update", ""))
    erase = lifecycle.erase
    monkeypatch.setattr(lifecycle, "erase", lambda connection, *others: erase(Slow(connection), *others))
    said, tries = 0, 0
    while not said and tries < MOST_TRIES:
        # How fast the machine is decides when the two meet: those who derive take longer with every try.
        await run_races(recollect, mind, UNLOCKED.now, tries * UNLOCKED.now, tries * PAUSE_SECONDS)
        said, _ = count_leaks(owner)
        tries += 1
    figure(f"{said} leaks, as there must be")
    assert said > 0


class Slow:
    """A connection that thinks a while after every question."""

    def __init__(self, connection):
        self.connection = connection

    async def execute(self, *arguments):
        answer = await self.connection.execute(*arguments)
        await asyncio.sleep(0.02)
        return answer
