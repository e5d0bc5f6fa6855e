"""The channel `date` proposes what happened in the times that a cue names, and reads no more of a scope than these."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import psycopg
import pytest

from recollect.channels.date import QUERIES, DateChannel, join_words
from recollect.core.dates.find import find_periods
from recollect.core.dates.periods import MAX_PERIODS
from recollect.core.recall.cues import parse_cue
from recollect.models.conversations import NewMessage
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory, Role, Triple
from recollect.models.recall import Cue, Period, QueryAnalysis
from recollect.store.database.filter import bind
from recollect.store.service.scopes import locate
from recollect.verbs.recall.channels import PlannedCue, ask_channels
from support.service.accesses import with_access

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def on(text, zone="UTC"):
    return tuple(find_periods(text, NOW, ZoneInfo(zone)))


async def propose(mind, periods, limit=10, **more):
    cue = Cue("whatever", **more)
    place = await locate(mind.access.parts.database, mind.access.scope)
    reading = replace(parse_cue(cue, None, now=NOW), facets=QueryAnalysis(periods=periods))
    [found] = await ask_channels(mind.access.parts, place, [PlannedCue(cue, reading, [DateChannel()], limit)])
    return found["date"]


async def store(mind, *memories):
    return [receipt.id for receipt in await mind.remember(list(memories))]


def at(moment, **more):
    return NewMemory("x", occurred_at=moment, **more)


def ids(proposal):
    return [candidate.id for candidate in proposal.candidates]


async def test_a_day_gives_what_happened_on_it_the_newest_first(mind):
    day = datetime(2026, 1, 20, tzinfo=UTC)
    _, first, second, _ = await store(
        mind, at(day - timedelta(seconds=1)), at(day), at(day + DAY - timedelta(microseconds=1)), at(day + DAY)
    )
    found = await propose(mind, on("What happened on 20 January?"))
    assert ids(found) == [second, first]
    assert [each.score for each in found.candidates] == [1, 1]
    assert found.method == "exact"


async def test_the_day_is_that_of_the_zone(mind):
    late = datetime(2026, 1, 19, 17, tzinfo=UTC)
    [stored] = await store(mind, at(late))
    assert ids(await propose(mind, on("1月20日", "Asia/Shanghai"))) == [stored]
    assert ids(await propose(mind, on("1月20日"))) == []
    assert ids(await propose(mind, on("January 19", "America/New_York"))) == [stored]


async def test_the_day_on_which_the_clocks_go_forward_has_23_hours(mind):
    zone = ZoneInfo("America/New_York")
    start = datetime(2025, 3, 9, tzinfo=zone).astimezone(UTC)
    first, last, _ = await store(mind, at(start), at(start + 23 * HOUR - timedelta(seconds=1)), at(start + 23 * HOUR))
    assert ids(await propose(mind, on("on 9 March 2025", zone.key))) == [last, first]


async def test_a_narrower_period_scores_higher_and_what_lies_in_two_counts_by_the_narrower(mind):
    month, day = on("in January 2026"), on("on 20 January")
    early, inside = await store(mind, at(datetime(2026, 1, 2, tzinfo=UTC)), at(datetime(2026, 1, 20, tzinfo=UTC)))
    found = await propose(mind, month + day)
    assert ids(found) == [inside, early]
    assert [each.score for each in found.candidates] == pytest.approx([1, 0.16795], abs=1e-5)


async def test_what_is_nearest_to_the_end_fills_the_limit(mind):
    days = [datetime(2026, 1, number, tzinfo=UTC) for number in range(1, 21)]
    stored = await store(mind, *[at(day) for day in days])
    assert ids(await propose(mind, on("in January"), limit=3)) == stored[:-4:-1]


async def test_a_cue_without_a_time_is_skipped(mind):
    await store(mind, at(NOW))
    found = await propose(mind, on("may I come in?"))
    assert ([*found.candidates], found.method) == ([], "skipped: the cue names no time")


async def test_kinds_trust_and_times_bound_what_is_proposed(mind):
    event, thought = await store(mind, at(NOW - DAY), at(NOW, kind=Kind.THOUGHT))
    period = on("in January")
    assert ids(await propose(mind, period)) == [thought, event]
    assert ids(await propose(mind, period, kinds=(Kind.EVENT, Kind.CHAT))) == [event]
    assert ids(await propose(mind, period, at=NOW - DAY)) == [event]
    assert ids(await propose(mind, period, as_of=NOW - 99 * DAY)) == []
    wary = with_access(mind, caller=replace(mind.access.caller, trust=20))
    [doubtful] = await store(wary, at(NOW + HOUR))
    assert ids(await propose(mind, period)) == [doubtful, thought, event]
    assert ids(await propose(mind, period, min_trust=21)) == [thought, event]


async def test_what_is_idle_expired_withheld_or_forgotten_is_not_proposed(mind, owner):
    period = (*on("today"), Period(datetime.now(UTC) - DAY, datetime.now(UTC) + DAY))
    await store(mind, at(NOW, triple=Triple("bed", "is", "idle")))
    expired, gone, kept = await store(
        mind, at(NOW, expires_at=datetime.now(UTC) + HOUR), at(NOW + HOUR), at(NOW + 2 * HOUR)
    )
    owner.execute("update memories set expires_at = now() - interval '1 s' where id = %s", [expired])
    assert ids(await propose(mind, period)) == [kept, gone]
    await mind.forget([gone])
    assert ids(await propose(mind, period)) == [kept]
    conversation = mind.conversation("c")
    [said] = await conversation.append([NewMessage(Role.USER, "hello")])
    assert set(ids(await propose(mind, period))) == {said.id, kept}
    await conversation.update(state="archived")
    assert ids(await propose(mind, period)) == [kept]


async def test_of_a_long_period_what_shares_words_with_the_cue_comes_first(mind):
    days = [at(NOW - number * DAY) for number in range(1, 20)]
    told = NewMemory("Anna bought a red bicycle", occurred_at=NOW - 15 * DAY)
    *_, bicycle = await store(mind, *days, told)
    answer = await mind.recall(Cue("the bicycle, last 30 days", channels=("date",), limit=3, now=NOW, touch=False))
    assert answer.hits[0].memory.id == bicycle


async def test_the_widest_of_many_periods_are_left_out(mind):
    days = [datetime(2026, 1, number, tzinfo=UTC) for number in range(1, MAX_PERIODS + 1)]
    [stored, _] = await store(mind, at(days[0]), at(datetime(2025, 6, 1, tzinfo=UTC)))
    periods = tuple(Period(day, day + DAY) for day in days)
    assert ids(await propose(mind, on("in 2025") + periods)) == [stored]


async def test_open_ends_are_no_trouble_for_the_database(mind):
    [stored] = await store(mind, at(NOW))
    assert ids(await propose(mind, on("before 2027"))) == [stored]
    assert ids(await propose(mind, (Period(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),)))


@pytest.mark.parametrize("text", ["on 5 May 2020", "between March and June 2020", "in 2020 and on 3 May 2021"])
async def test_only_the_period_is_read_of_a_large_scope(mind, addresses, owner, text):
    await mind.load([at(NOW - number * DAY) for number in range(5_000)])
    owner.execute("analyze memories")
    place = await locate(mind.access.parts.database, mind.access.scope)
    periods = on(text)
    bounds = {"scope_id": place.scope_id, "limit": 100, **bind(Filter(), tuple(Kind))}
    bounds |= {"starts": [period.start for period in periods], "ends": [period.end for period in periods]}
    bounds |= {"scores": [1.0] * len(periods), "words": join_words(["walk"]), "most": 1_000}
    with psycopg.connect(addresses.service) as service:
        service.execute("select set_config('recollect.tenant', %s, true)", [str(mind.access.scope.tenant_id)])
        rows = service.execute(
            "explain (analyze, costs off, timing off) " + QUERIES["within"].format(filter=""), bounds
        ).fetchall()
    plan = "\n".join(row[0] for row in rows)
    [condition] = [row[0] for row in rows if "Index Cond" in row[0] and "kind" in row[0]]
    assert "memories_by_time" in plan and "Seq Scan" not in plan
    assert all(column in condition for column in ("scope_id", "kind", "occurred_at >=", "occurred_at <"))


async def test_a_recall_finds_what_happened_on_the_day_that_its_cue_names(mind):
    [stored, _] = await store(
        mind, at(datetime(2026, 1, 19, 17, tzinfo=UTC)), at(datetime(2026, 1, 21, 17, tzinfo=UTC))
    )
    cue = Cue("1月20日我们做了什么？", zone="Asia/Shanghai", channels=("date",), now=NOW)
    answer = await mind.recall(cue)
    assert [hit.memory.id for hit in answer.hits] == [stored]
    assert [period.phrase for period in answer.facets.periods] == ["1月20日"]
    given = await mind.recall(replace(cue, since=NOW - 11 * DAY, until=NOW - 9 * DAY))
    assert [hit.memory.id for hit in given.hits] != [stored] and len(given.hits) == 1
