"""What perceived triples remind of, by the keywords they share with what is remembered."""

from __future__ import annotations

import math
import random
from collections import Counter
from uuid import UUID

import pytest
from psycopg import sql

from recollect.errors import InvalidInputError
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory, Triple
from recollect.store.memories.keywords import QUERIES
from recollect.store.memories.memories import RowQuery
from support.imports.generative_agents import read_golden, read_mind
from support.memories.past import last_chat


def event(subject: str, predicate: str, thing: str, kind: Kind = Kind.EVENT) -> NewMemory:
    return NewMemory(f"{subject} {predicate} {thing}", kind, triple=Triple(subject, predicate, thing))


def contents(memories) -> list[str]:
    return [memory.content for memory in memories]


async def test_events_and_thoughts_under_any_part_of_the_triple_are_found(mind):
    await mind.remember(
        [
            event("Maria Lopez", "drink", "coffee"),
            event("Klaus", "read", "book"),
            event("the Ville:Oak Hill:Cafe", "is", "open"),
            event("Maria Lopez", "walk", "park", Kind.THOUGHT),
            event("Klaus", "walk", "forest", Kind.THOUGHT),
            event("Maria Lopez", "chat with", "Klaus", Kind.CHAT),
        ]
    )
    [found] = await mind.associate(Triple("MARIA  LOPEZ", "walk", "the Ville:Cafe"))
    assert found.triple == Triple("MARIA  LOPEZ", "walk", "the Ville:Cafe")
    assert sorted(contents(found.events)) == ["Maria Lopez drink coffee", "the Ville:Oak Hill:Cafe is open"]
    # An event is not filed under its predicate, a thought is.
    assert sorted(contents(found.thoughts)) == ["Klaus walk forest", "Maria Lopez walk park"]


async def test_more_and_rarer_keywords_come_first_and_then_what_is_newest(mind):
    await mind.remember([event("maria", "see", f"thing {number}") for number in range(8)])
    await mind.remember([event("klaus", "see", "zeppelin"), event("maria", "see", "zeppelin")])
    await mind.remember(event("maria", "see", "the newest"))
    [found] = await mind.associate(Triple("maria", "", "zeppelin"), limit=4)
    assert contents(found.events) == [
        "maria see zeppelin",
        "klaus see zeppelin",
        "maria see the newest",
        "maria see thing 7",
    ]


async def test_what_only_idle_memories_have_counts_nothing_but_is_found(mind):
    await mind.remember([event("Bed", "is", "idle"), event("Maria", "make", "Bed"), event("Desk", "is", "idle")])
    [found] = await mind.associate(Triple("bed", "is", "idle"))
    assert contents(found.events) == ["Bed is idle", "Maria make Bed", "Desk is idle"]
    assert [memory.idle for memory in found.events] == [True, False, True]


async def test_several_triples_are_answered_in_their_order_each_with_its_own_lists(mind, recollect):
    await mind.remember([event("maria", "see", "river"), event("klaus", "read", "book")])
    stranger = await recollect.mind("ada", "stranger")
    await stranger.remember(event("maria", "see", "nothing of mine"))
    asked = [Triple("klaus"), Triple("nobody"), Triple("maria"), Triple("klaus"), Triple()]
    found = await mind.associate(asked)
    assert [each.triple for each in found] == asked
    assert [contents(each.events) for each in found] == [
        ["klaus read book"],
        [],
        ["maria see river"],
        ["klaus read book"],
        [],
    ]


async def test_the_original_manner_finds_lower_case_only_without_limit_and_newest_first(mind):
    await mind.remember([event("Maria", "see", f"river {number}") for number in range(40)])
    await mind.remember([event("Klaus", "see", "maria")])
    [ours] = await mind.associate(Triple("Maria", "see", "x"), limit=1)
    [theirs] = await mind.associate(Triple("Maria", "see", "x"), limit=1, original=True)
    [lower] = await mind.associate(Triple("maria", "see", "x"), limit=1, original=True)
    assert (len(ours.events), len(theirs.events)) == (1, 0)
    assert contents(lower.events) == ["Klaus see maria", *(f"Maria see river {number}" for number in range(39, -1, -1))]


async def test_nothing_counts_as_accessed(mind, owner):
    await mind.remember(event("maria", "see", "river"))
    await mind.associate(Triple("maria"))
    counts = [owner.execute(f"select count(*) from {table}").fetchone()[0] for table in ("access_log", "accesses")]
    assert counts == [0, 0]


async def test_the_last_chat_with_somebody_is_the_newest_one(mind):
    assert await last_chat(mind, "Klaus") is None
    await mind.remember([event("Klaus", "chat with", f"Maria {number}", Kind.CHAT) for number in range(3)])
    await mind.remember(event("Klaus", "chat with", "Isabella"))
    found = await last_chat(mind, " KLAUS ")
    assert found is not None
    assert (found.content, found.kind) == ("Klaus chat with Maria 2", Kind.CHAT)
    assert await last_chat(mind, "Isabella") is None


async def test_what_was_forgotten_reminds_of_nothing(mind):
    [receipt, _] = await mind.remember([event("maria", "see", "river"), event("maria", "see", "sea")])
    await mind.forget([receipt.id])
    [found] = await mind.associate(Triple("maria"))
    assert contents(found.events) == ["maria see sea"]


async def test_a_scope_not_written_to_reminds_of_nothing(recollect):
    mind = await recollect.mind("nobody")
    [found] = await mind.associate(Triple("maria"))
    assert (found.events, found.thoughts) == ((), ())
    assert await last_chat(mind, "maria") is None


@pytest.mark.parametrize(
    ("triples", "limit"),
    [([], 30), ([Triple("a")] * 101, 30), (Triple("a"), 0), (Triple("a"), 1001), ([Triple("a")] * 11, 1000)],
)
async def test_more_than_one_answer_can_hold_is_refused(mind, triples, limit):
    with pytest.raises(InvalidInputError):
        await mind.associate(triples, limit=limit)


@pytest.mark.parametrize("text", ["\0", "two\nlines", "x" * 2000, "\ud800"])
async def test_texts_that_cannot_be_looked_up_are_refused(mind, text):
    with pytest.raises(InvalidInputError):
        await mind.associate(Triple(subject=text))
    with pytest.raises(InvalidInputError):
        await last_chat(mind, text)


def rank(filed: list[tuple[int, Kind, frozenset[str], bool]], kind: Kind, asked: set[str]) -> list[int]:
    """The pure twin of the ranking: numbers in the order of writing, best first."""
    of_kind = [each for each in filed if each[1] is kind]
    strengths = Counter(keyword for _, _, keywords, idle in of_kind if not idle for keyword in keywords)
    scores = {
        number: (
            sum(math.log1p(len(of_kind) / strengths[keyword]) for keyword in keywords & asked if strengths[keyword]),
            len(keywords & asked),
            number,
        )
        for number, _, keywords, _ in of_kind
        if keywords & asked
    }
    return sorted(scores, key=lambda number: [round(part, 9) for part in scores[number]], reverse=True)


async def test_the_ranking_equals_its_pure_twin(mind):
    chosen = random.Random(5)
    words = [f"word{number}" for number in range(12)]
    new, filed = [], []
    for number in range(300):
        kind, idle = chosen.choice([Kind.EVENT, Kind.THOUGHT, Kind.CHAT]), chosen.random() < 0.3
        keywords = tuple(words[min(int(chosen.expovariate(0.4)), 11)] for _ in range(chosen.randint(1, 4)))
        triple = Triple("x", "is", "idle" if idle else "busy")
        new.append(NewMemory(str(number), kind, triple=triple, keywords=keywords))
        filed.append((number, kind, frozenset(keywords), idle))
    await mind.remember(new)
    asked = [Triple(*chosen.sample(words, 3)) for _ in range(20)]
    for triple, found in zip(asked, await mind.associate(asked, limit=25), strict=True):
        terms = {triple.subject, triple.predicate, triple.object}
        for kind, memories in ((Kind.EVENT, found.events), (Kind.THOUGHT, found.thoughts)):
            assert [int(memory.content) for memory in memories] == rank(filed, kind, terms)[:25]


async def test_associating_uses_the_indexes_of_the_key(mind, owner):
    await mind.load([event(f"person {number % 500}", "see", f"thing {number}") for number in range(20_000)])
    owner.execute("analyze memory_keywords, keyword_strengths, scopes")
    parameters = {"positions": [0, 0, 1], "keywords": ["person 7", "thing 7", "person 8"], "limit": 30, "newest": False}
    plan = explain(owner, mind, "associate", parameters)
    assert scans(plan, "memory_keywords") == {("Index Only Scan", "memory_keywords_pkey")}
    # A hashed look-up would read the whole list of a keyword that may have all memories.
    assert not [node for node in walk(plan) if "hashed" in node.get("Filter", "")]
    assert scans(plan, "keyword_strengths") == {("Index Scan", "keyword_strengths_pkey")}
    asked = RowQuery(
        only=Filter(kinds=(Kind.CHAT,)), cursor=UUID(int=2**128 - 1), limit=1, backwards=True, keyword="person 7"
    )
    plan = explain(owner, mind, asked.compose(), asked.bind(mind.access.scope))
    assert scans(plan, "memory_keywords") == {("Index Only Scan", "memory_keywords_pkey")}
    [page] = [node for node in walk(plan) if "memory_keywords" in {each.get("Alias") for each in node.get("Plans", [])}]
    assert page["Node Type"] == "Limit"


def explain(owner, mind, query, parameters):
    """Plan a query as the service's role, bound to the mind's tenant."""
    text = query.as_string(None) if isinstance(query, sql.SQL) else QUERIES[query].format(filter="")
    named = {**parameters, "agent": mind.access.scope.agent, "user": mind.access.scope.user}
    with owner.transaction(force_rollback=True):
        owner.execute("set local role recollect_service")
        owner.execute("select set_config('recollect.tenant', %s, true)", [str(mind.access.scope.tenant_id)])
        return owner.execute("explain (format json) " + text, named).fetchone()[0][0]["Plan"]


def walk(plan):
    yield plan
    for part in plan.get("Plans", []):
        yield from walk(part)


def scans(plan, table):
    """Say how a table is read."""
    return {(node["Node Type"], node.get("Index Name")) for node in walk(plan) if node.get("Relation Name") == table}


DATASETS = ("ga_july1_step_3_12/maria_lopez", "ga_july1_step_3_20/isabella_rodriguez", "ga_zh_25_1/ayesha_khan")


@pytest.mark.parametrize("name", DATASETS)
async def test_associations_equal_those_of_the_original_code(recollect, shared, name):
    golden = next(
        each for each in read_golden(shared, "golden_keyword_retrieve")["datasets"] if each["dataset"] == name
    )
    mind = await recollect.mind("saved")
    ids = await mind.load([from_node(node) for node in read_mind(shared, name).nodes])
    numbers = {memory_id: f"node_{number}" for number, memory_id in enumerate(ids, start=1)}
    triples = [Triple(*case["spo"]) for case in golden["cases"]]
    fixed = [found for triple in triples for found in await mind.associate(triple, limit=1000)]
    original = await mind.associate(triples, original=True)
    for case, ours, theirs in zip(golden["cases"], fixed, original, strict=True):
        for column, found in (("fixed", ours), ("original", theirs)):
            assert {numbers[memory.id] for memory in found.events} == set(case[column]["events"])
            assert {numbers[memory.id] for memory in found.thoughts} == set(case[column]["thoughts"])
        assert theirs.events == tuple(sorted(theirs.events, key=lambda memory: memory.id, reverse=True))
    for person, node in golden["last_chat"].items():
        chat = await last_chat(mind, person.title())
        assert chat is not None
        assert numbers[chat.id] == node


def from_node(node) -> NewMemory:
    triple = Triple(node["subject"], node["predicate"], node["object"])
    return NewMemory(node["description"], Kind(node["type"]), triple=triple, keywords=tuple(node["keywords"]))


async def test_what_can_be_filed_can_be_asked_for(mind):
    longest = "the Ville:" + "很" * 490
    await mind.remember(NewMemory("far away", triple=Triple(longest, "is", "open")))
    [found] = await mind.associate(Triple(longest))
    assert contents(found.events) == ["far away"]
