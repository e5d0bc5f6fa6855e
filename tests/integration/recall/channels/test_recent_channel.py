"""The channel `recent` proposes the newest memories by when they happened, and reads no more of a scope than these."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from recollect.channels.recent import QUERIES, RecentChannel
from recollect.core.recall.cues import parse_cue
from recollect.models.conversations import NewMessage
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory, Role, Triple
from recollect.models.recall import Cue
from recollect.store.database.filter import bind
from recollect.store.service.scopes import locate
from recollect.verbs.recall.channels import PlannedCue, ask_channels
from support.service.accesses import with_access

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DAY = timedelta(days=1)


async def propose(mind, limit=10, **more):
    cue = Cue("whatever", **more)
    place = await locate(mind.access.parts.database, mind.access.scope)
    reading = parse_cue(cue, None, now=NOW)
    [found] = await ask_channels(mind.access.parts, place, [PlannedCue(cue, reading, [RecentChannel()], limit)])
    return found["recent"]


async def store(mind, *memories):
    return [receipt.id for receipt in await mind.remember(list(memories))]


def ids(proposal):
    return [candidate.id for candidate in proposal.candidates]


async def test_the_newest_come_first_and_the_score_falls_with_the_place(mind):
    moments = [NOW - 3 * DAY, NOW, NOW - DAY, NOW - 2 * DAY]
    oldest, newest, second, third = await store(mind, *[NewMemory("x", occurred_at=moment) for moment in moments])
    found = await propose(mind)
    assert ids(found) == [newest, second, third, oldest]
    assert [each.score for each in found.candidates] == pytest.approx([1, 1 / 1.1, 1 / 1.2, 1 / 1.3])
    assert found.method == "exact"
    assert ids(await propose(mind, limit=2)) == [newest, second]


async def test_of_one_moment_what_was_stored_last_comes_first(mind):
    stored = await store(mind, *[NewMemory("x", kind, occurred_at=NOW) for kind in (Kind.EVENT, Kind.FACT, Kind.CHAT)])
    assert ids(await propose(mind)) == stored[::-1]


async def test_kinds_trust_and_times_bound_what_is_proposed(mind):
    event, thought = await store(
        mind, NewMemory("a", occurred_at=NOW - DAY), NewMemory("b", Kind.THOUGHT, occurred_at=NOW)
    )
    assert ids(await propose(mind, kinds=(Kind.EVENT, Kind.CHAT))) == [event]
    assert ids(await propose(mind, at=NOW - DAY)) == [event]
    assert ids(await propose(mind, as_of=NOW - 9 * DAY)) == []
    wary = with_access(mind, caller=replace(mind.access.caller, trust=20))
    [doubtful] = await store(wary, NewMemory("c", occurred_at=NOW + DAY))
    assert ids(await propose(mind)) == [doubtful, thought, event]
    assert ids(await propose(mind, min_trust=21)) == [thought, event]


async def test_what_is_idle_expired_withheld_or_forgotten_is_not_proposed(mind, owner):
    await store(mind, NewMemory("nothing", triple=Triple("bed", "is", "idle")))
    expired, gone, kept = await store(
        mind, NewMemory("a", expires_at=datetime.now(UTC) + timedelta(hours=1)), NewMemory("b"), NewMemory("c")
    )
    owner.execute("update memories set expires_at = now() - interval '1 s' where id = %s", [expired])
    assert ids(await propose(mind)) == [kept, gone]
    await mind.forget([gone])
    assert ids(await propose(mind)) == [kept]
    conversation = mind.conversation("c")
    [said] = await conversation.append([NewMessage(Role.USER, "hello")])
    assert ids(await propose(mind)) == [said.id, kept]
    await conversation.update(state="archived")
    assert ids(await propose(mind)) == [kept]


async def test_an_empty_scope_gives_nothing(mind, recollect):
    [stored] = await store(mind, NewMemory("x"))
    await mind.forget([stored])
    found = await propose(mind)
    assert ([*found.candidates], found.method) == ([], "exact")


async def test_only_the_newest_are_read_of_a_large_scope(mind, addresses, owner):
    memories = [NewMemory(f"{number}", occurred_at=NOW - number * DAY) for number in range(5_000)]
    stored = await mind.load(memories)
    assert ids(await propose(mind, limit=3)) == stored[:3]
    owner.execute("analyze memories")
    place = await locate(mind.access.parts.database, mind.access.scope)
    bounds = {"scope_id": place.scope_id, "limit": 100, **bind(Filter(), tuple(Kind))}
    with psycopg.connect(addresses.service) as service:
        service.execute("select set_config('recollect.tenant', %s, true)", [str(mind.access.scope.tenant_id)])
        rows = service.execute(
            "explain (analyze, costs off, timing off) " + QUERIES["newest"].format(filter=""), bounds
        ).fetchall()
    plan = "\n".join(row[0] for row in rows)
    assert "memories_by_time" in plan
    assert "Seq Scan" not in plan
