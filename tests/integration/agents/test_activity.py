"""How many memories were stored on which day, counted by a range of the key."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.core.memories.ids import first_ids_of_days, memory_id
from recollect.errors import InvalidInputError
from recollect.mind import agents
from recollect.models.agents import DailyCount
from recollect.models.memories import Kind, NewMemory
from recollect.models.service import Right
from recollect.store.agents.overview import QUERIES
from support.database import plans
from support.service.mcp_doors import listening

SCOPE = {"agent": "ada", "user": "li"}
FILL = """
    insert into memory_features
        (scope_id, id, kind, importance, occurred_at, length, tells, pinned, speaker, origin, state)
    select %(scope)s, unnest(%(ids)s::uuid[]), %(kind)s, 5, now(), 1, 0, false, '', 'test', %(state)s
"""


def put(owner, moments, kind="event", state="current", scope=None):
    """Write what is counted, as of moments long past."""
    number = scope or owner.execute("select id from scopes order by id").fetchone()[0]
    ids = [memory_id(moment, place, bytes(8)) for place, moment in enumerate(moments)]
    owner.execute(FILL, {"scope": number, "ids": ids, "kind": kind, "state": state})


def test_days_begin_as_they_do_in_a_zone():
    zone = ZoneInfo("Europe/Berlin")
    # The clocks go forward in between: that day has 23 hours.
    starts = dict(first_ids_of_days(date(2026, 3, 30), 3, zone))
    assert [*starts] == [date(2026, 3, 28), date(2026, 3, 29), date(2026, 3, 30)]
    moments = [datetime.fromtimestamp((first.int >> 80) / 1000, UTC) for first in starts.values()]
    assert [moment.hour for moment in moments] == [23, 23, 22]
    last = memory_id(moments[1] - timedelta(milliseconds=1), 4_095, b"\xff" * 8)
    assert last < starts[date(2026, 3, 29)] <= memory_id(moments[1], 0, bytes(8))


async def test_by_day_and_kind(mind, owner):
    await mind.remember(["one", "two", NewMemory("three", kind=Kind.THOUGHT)])
    now = datetime.now(UTC)
    today = now.date()
    noon = datetime(now.year, now.month, now.day, 12, tzinfo=UTC)
    put(owner, [noon - timedelta(days=3)] * 2)
    put(owner, [noon - timedelta(days=40)])
    put(owner, [noon - timedelta(days=2)], state="deleted")
    put(owner, [noon - timedelta(days=1)], kind="fact", state="past")
    assert (await mind.overview(days=30)).activity == (
        DailyCount(today - timedelta(days=3), Kind.EVENT, 2),
        DailyCount(today - timedelta(days=1), Kind.FACT, 1),
        DailyCount(today, Kind.EVENT, 2),
        DailyCount(today, Kind.THOUGHT, 1),
    )
    assert [each.memories for each in (await mind.overview(days=1)).activity] == [2, 1]
    assert sum(each.memories for each in (await mind.overview(days=366)).activity) == 7


async def test_a_zone_moves_what_happened_at_night(mind, owner, monkeypatch):
    await mind.remember("one")
    late = datetime.combine(datetime.now(UTC).date() - timedelta(days=5), datetime.min.time(), UTC) - timedelta(hours=1)
    put(owner, [late])
    by_zone = {zone: (await mind.overview(days=30, zone=zone)).activity[0].day for zone in ("UTC", "Asia/Shanghai")}
    assert by_zone["UTC"] == late.date()
    assert by_zone["Asia/Shanghai"] == late.date() + timedelta(days=1)
    monkeypatch.setattr(agents, "local_timezone", lambda: "Asia/Shanghai")
    assert (await mind.overview(days=30)).activity[0].day == by_zone["Asia/Shanghai"]


async def test_what_is_deleted_does_not_count_and_other_scopes_do_not(recollect, mind):
    await mind.conversation("c").append("a message")
    await mind.remember("an event")
    for other in (await recollect.mind("ada", "wu"), await recollect.mind("ada", "li", tenant="other")):
        assert (await other.overview(days=30)).activity == ()
        await other.remember("theirs")
    await mind.conversation("c").delete()
    assert [(each.kind, each.memories) for each in (await mind.overview(days=30)).activity] == [(Kind.EVENT, 1)]


async def test_over_http_and_by_both_clients(recollect, mind):
    _, secret = await new_key(recollect, rights=(Right.READ,))
    await mind.remember("one")
    here = await mind.overview(days=7, zone="Asia/Shanghai")
    assert here.activity and not (await mind.overview()).activity
    async with http_client(recollect, secret) as http:
        [day] = (await http.get("/v1/overview", params=SCOPE | {"days": 30})).json()["activity"]
        assert (day["kind"], day["memories"]) == ("event", 1) and date.fromisoformat(day["day"])
        for wrong in ({"days": -1}, {"days": 367}, {"zone": "Mars"}):
            assert (await http.get("/v1/overview", params=SCOPE | wrong)).status_code == 422
    with pytest.raises(InvalidInputError):
        await mind.overview(days=-1)

    def without_a_loop(url):
        with sync.connect(url, secret) as client:
            return client.mind("ada", "li").overview(days=7, zone="Asia/Shanghai")

    async with listening(recollect) as url, Client(url, secret) as client:
        assert await (await client.mind("ada", "li")).overview(days=7, zone="Asia/Shanghai") == here
        assert await asyncio.to_thread(without_a_loop, url) == here


@pytest.mark.parametrize("mode", plans.MODES)
async def test_what_is_older_is_not_read(mind, owner, addresses, mode):
    await mind.remember("one")
    now = datetime.now(UTC)
    for week in range(10, 30):
        put(owner, [now - timedelta(weeks=week)] * 500)
    owner.execute("vacuum analyze memory_features")
    starts = [first for _, first in first_ids_of_days(now.date(), 30, UTC)]
    with plans.planning(addresses, mind.access.scope.tenant_id, mode) as connection:
        plan = plans.explain(connection, QUERIES["activity"], SCOPE | {"starts": starts})
    nodes = [node for node in plans.flatten(plan) if node.get("Relation Name") == "memory_features"]
    assert sum(map(plans.rows_of, nodes)) <= 5, plan
