"""The channel `keyword` recalls what is filed under the words of a cue, held against a pure oracle."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from recollect.channels import keyword as channel
from recollect.channels.keyword import KeywordChannel
from recollect.core.recall.cues import parse_cue
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory, Triple
from recollect.models.recall import Cue, QueryAnalysis
from recollect.store.database.filter import bind
from recollect.store.service.scopes import locate
from recollect.verbs.recall.channels import PlannedCue, ask_channels
from support.service.accesses import with_access

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


async def propose(mind, *keywords, limit=10, names=(), **more):
    cue = Cue("x", **more)
    reading = replace(parse_cue(cue, None, now=NOW), facets=QueryAnalysis(keywords=keywords, names=names))
    place = await locate(mind.access.parts.database, mind.access.scope)
    [found] = await ask_channels(mind.access.parts, place, [PlannedCue(cue, reading, [KeywordChannel()], limit)])
    return found["keyword"]


def filed(content, *keywords, **more):
    return NewMemory(content, keywords=keywords, **more)


async def store(mind, *memories):
    return [receipt.id for receipt in await mind.remember(list(memories))]


def ids(proposal):
    return [candidate.id for candidate in proposal.candidates]


async def test_the_rarer_keyword_comes_first_and_the_newest_among_equals(mind):
    old, new, rare, both, other = await store(
        mind,
        filed("a", "tea"),
        filed("b", "Tea"),
        filed("c", "umbrella"),
        filed("d", "tea", "umbrella"),
        filed("e", "boat"),
    )
    found = await propose(mind, "tea", "UMBRELLA", "nothing")
    assert ids(found) == [both, rare, new, old]
    assert found.method == "exact"
    tea, umbrella = math.log(1 + 5 / 3), math.log(1 + 5 / 2)
    assert [each.score for each in found.candidates] == pytest.approx([tea + umbrella, umbrella, tea, tea])
    assert other not in ids(found)
    assert ids(await propose(mind, "tea", limit=2)) == [both, new]


async def test_names_are_keywords_too_and_triples_file_by_themselves(mind):
    [stored] = await store(mind, NewMemory("seen", triple=Triple("the Ville:Klaus Mueller", "reads", "a book")))
    assert ids(await propose(mind, names=("klaus mueller",))) == [stored]
    assert ids(await propose(mind, "a book")) == [stored]
    assert ids(await propose(mind, "reads")) == []


async def test_a_cue_without_keywords_is_said_to(mind):
    await store(mind, filed("a", "tea"))
    assert (await propose(mind)).method == "skipped: the cue has no keywords"
    assert (await propose(mind, "", "  ")).method == "skipped: the cue has no keywords"
    assert (await propose(mind, "coffee")).method == "exact"


async def test_chinese_keywords_are_found(mind):
    [stored] = await store(mind, filed("张伟在腾讯工作", "张伟", "腾讯"))
    assert ids(await propose(mind, "腾讯")) == [stored]


async def test_kinds_trust_and_times_bound_what_is_proposed(mind):
    early = datetime(2025, 1, 1, tzinfo=UTC)
    event, thought, chat, fact = await store(
        mind,
        filed("a", "tea", occurred_at=early),
        filed("b", "tea", kind=Kind.THOUGHT),
        filed("c", "tea", kind=Kind.CHAT),
        filed("d", "tea", kind=Kind.FACT),
    )
    assert set(ids(await propose(mind, "tea"))) == {event, thought, chat, fact}
    assert ids(await propose(mind, "tea", kinds=(Kind.THOUGHT,))) == [thought]
    assert ids(await propose(mind, "tea", kinds=(Kind.CHAT, Kind.FACT))) == [fact, chat]
    assert ids(await propose(mind, "tea", at=early)) == [event]
    assert ids(await propose(mind, "tea", at=early - timedelta(days=1))) == []
    stored_at = (await mind.get(chat)).created_at
    assert len(ids(await propose(mind, "tea", as_of=stored_at))) == 4
    assert ids(await propose(mind, "tea", as_of=early)) == []


async def test_the_least_trust_bounds_it_too(mind, recollect):
    await store(mind, filed("a", "tea"))
    wary = with_access(mind, caller=replace(mind.access.caller, trust=20))
    await store(wary, filed("b", "tea"))
    assert len(ids(await propose(mind, "tea"))) == 2
    assert len(ids(await propose(mind, "tea", min_trust=21))) == 1


async def test_what_is_idle_withheld_or_forgotten_is_not_proposed(mind, owner):
    idle, gone, withheld, kept = await store(
        mind,
        filed("nothing happens", "tea", triple=Triple("pot", "is", "idle")),
        filed("a", "tea"),
        filed("b", "tea"),
        filed("c", "tea"),
    )
    assert ids(await propose(mind, "tea")) == [kept, withheld, gone]
    owner.execute("select withhold_memories(scope_id, array[id], 'archived') from memories where id = %s", [withheld])
    assert ids(await propose(mind, "tea")) == [kept, gone]
    await mind.forget([gone])
    assert ids(await propose(mind, "tea")) == [kept]
    assert idle not in ids(await propose(mind, "tea", kinds=(Kind.EVENT,)))


async def test_long_lists_are_read_from_the_newest_on_and_the_rest_is_looked_up(mind, monkeypatch):
    monkeypatch.setattr(channel, "MAX_MEMORIES_PER_KEYWORD", 4)
    rare, *often = await store(
        mind, filed("both", "tea", "umbrella"), *[filed(f"tea {number}", "tea") for number in range(20)]
    )
    found = await propose(mind, "tea", "umbrella", limit=3)
    assert ids(found) == [rare, often[-1], often[-2]]
    assert next(iter(found.candidates)).score == pytest.approx(math.log(1 + 21 / 21) + math.log(1 + 21 / 1))
    assert found.method == "exact"
    await store(mind, *[filed(f"boat {number}", "boat") for number in range(9)])
    assert (await propose(mind, "tea", "boat")).method == "approximate"


async def test_it_equals_its_pure_twin(mind):
    chance = random.Random(6)
    words = ["tea", "boat", "rain", "lamp", "hat"]
    kinds = [Kind.EVENT, Kind.THOUGHT, Kind.FACT, Kind.CHAT]
    memories = [
        filed(f"{number}", *chance.sample(words, chance.randint(0, 3)), kind=chance.choice(kinds))
        for number in range(300)
    ]
    stored = await store(mind, *memories)
    for _ in range(10):
        asked = chance.sample(words, chance.randint(1, 4))
        among = tuple(chance.sample(kinds, chance.randint(0, 3)))
        allowed = [
            (memory_id, memory)
            for memory_id, memory in zip(stored, memories, strict=True)
            if not among or memory.kind in among
        ]
        weights = {
            word: math.log(1 + 300 / max(1, sum(word in memory.keywords for _, memory in allowed))) for word in asked
        }
        scores = {
            memory_id: sum(weights[word] for word in asked if word in memory.keywords) for memory_id, memory in allowed
        }
        ranked = sorted(((round(score, 9), memory_id) for memory_id, score in scores.items() if score), reverse=True)
        found = await propose(mind, *asked, kinds=among, limit=50)
        assert [(round(each.score, 9), each.id) for each in found.candidates] == ranked[:50]


async def test_only_the_newest_are_read_of_a_long_list(mind, addresses, owner):
    await mind.load([filed(f"{number}", "tea") for number in range(5_000)])
    await store(mind, filed("both", "tea", "umbrella"))
    assert len(ids(await propose(mind, "tea", "umbrella", limit=100))) == 100
    owner.execute("analyze memory_keywords")
    place = await locate(mind.access.parts.database, mind.access.scope)
    bounds = {"scope_id": place.scope_id, **bind(Filter(), tuple(Kind))}
    bounds |= {"keywords": ["tea", "umbrella", "boat"], "memory_count": 5_001, "longest": 1_000, "limit": 100}
    with psycopg.connect(addresses.service) as service:
        service.execute("select set_config('recollect.tenant', %s, true)", [str(mind.access.scope.tenant_id)])
        query = "explain (analyze, costs off, timing off) " + channel.QUERIES["filed"].format(filter="")
        plan = [row[0] for row in service.execute(query, bounds).fetchall()]
    assert not any("Seq Scan" in line for line in plan)
    read = [
        float(rows[1]) for line in plan if "memory_keywords" in line and (rows := re.search(r"rows=([\d.]+)", line))
    ]
    assert read and max(read) <= 1_000
