"""Memories are derived from a conversation while it is purged: none survives it.

RECOLLECT_RACES sets how many races are run (200 unless told); the same races without the locks show that a leak
would be noticed.
"""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import suppress

from recollect.errors import InvalidInputError, NotFoundError, UnavailableError
from recollect.models import Kind, NewMemory, NewMessage, Role
from recollect.store import lifecycle, memories

RACES = int(os.environ.get("RECOLLECT_RACES", "200"))
WORD = "leakage"
SOURCES = """select id, trust, depth from memories
where scope_id = (select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s)
  and id = any (%(ids)s)"""


async def derive(mind, sources, pause):
    """Derive from a source, then from what was derived, as often as it is allowed."""
    await asyncio.sleep(pause)
    with suppress(InvalidInputError, UnavailableError):
        [first] = await mind.remember(NewMemory(f"{WORD} of one", Kind.THOUGHT, evidence=(sources[0],)))
        [_] = await mind.remember(NewMemory(f"{WORD} of two", Kind.SUMMARY, evidence=(first.id, sources[1])))
        await mind.remember(NewMemory(f"{WORD} of both", Kind.THOUGHT, evidence=(first.id, sources[-1])))


async def race(mind, number, kept):
    """Let derived memories race with a purge that began at some moment before, during or after them."""
    talk = mind.conversation(f"c{number}")
    said = await talk.append([NewMessage(Role.USER, f"{WORD} {part}") for part in range(2)])
    sources = [*(each.id for each in said), kept]

    async def purge():
        await asyncio.sleep(random.uniform(0, 0.1))
        with suppress(NotFoundError, UnavailableError):
            await talk.purge()

    await asyncio.gather(purge(), *(derive(mind, sources, random.uniform(0, 0.03)) for _ in range(2)))


async def run_races(recollect, mind, races):
    """Race again and again; a deadlock that ends one of the two is part of the race, and jobs finish what is left."""
    [kept] = await mind.remember("something to keep")
    for number in range(races):
        await race(mind, number, kept.id)
    await recollect.work(until_empty=True)


def count_leaks(owner):
    said = owner.execute("select count(*) from memories where content like %s", [f"%{WORD}%"]).fetchone()[0]
    loose = owner.execute(
        "select count(*) from evidence where not exists "
        "(select from memories m where (m.scope_id, m.id) = (evidence.scope_id, evidence.source_id))"
    ).fetchone()[0]
    return said, loose


async def test_nothing_derived_slips_through_a_purge(recollect, mind, owner):
    await run_races(recollect, mind, RACES)
    assert count_leaks(owner) == (0, 0)
    derived, stale = owner.execute(
        "select sum((removed ->> 'derived')::int), sum((removed ->> 'stale')::int) from purge_receipts"
    ).fetchone()
    print(f"{RACES} races: {derived} derived memories erased, {stale} made stale, 0 leaks")
    assert derived > 0
    assert stale > 0
    total = owner.execute("select count(*) from memories where withheld is null").fetchone()[0]
    assert owner.execute("select memory_count from scopes").fetchone()[0] == total == 1


async def test_without_the_locks_it_would(recollect, mind, owner, monkeypatch):
    monkeypatch.setitem(memories.QUERIES, "sources", SOURCES)
    monkeypatch.setitem(lifecycle.QUERIES, "lock", lifecycle.QUERIES["lock"].replace("for no key update", ""))
    erase = lifecycle.erase
    monkeypatch.setattr(lifecycle, "erase", lambda connection, *others: erase(Slow(connection), *others))
    await run_races(recollect, mind, max(20, RACES // 10))
    said, _ = count_leaks(owner)
    assert said > 0


class Slow:
    """A connection that thinks a while after every question."""

    def __init__(self, connection):
        self.connection = connection

    async def execute(self, *arguments):
        answer = await self.connection.execute(*arguments)
        await asyncio.sleep(0.02)
        return answer
