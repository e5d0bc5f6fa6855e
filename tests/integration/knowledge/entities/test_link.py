"""What a segment says becomes entities and facts: resolved in SQL, by one question where that is not enough."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.core.knowledge.entities import AnyNameMatches
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import EntityType, NewFact, ValidTime
from recollect.models.memories import Role
from recollect.verbs.knowledge.enrich import enrich
from support.memories.past import versions_of
from support.models.scripted_extractions import entity, fact
from support.service.known_numbers import first_number

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
async def mind(running):
    return await running.mind("ada", "li")


async def learn_from(mind, text, conversation="c", days=0):
    """Say something, and let the segment close and be learned from."""
    said = mind.conversation(conversation)
    at = NOON + timedelta(days=days)
    await said.append(
        [
            NewMessage(Role.USER, text, occurred_at=at),
            NewMessage(Role.ASSISTANT, "I see.", occurred_at=at + timedelta(seconds=5)),
        ]
    )
    await said.update(close_segment=True)
    await enrich(mind.access.parts, first_number(mind))
    return said


async def facts_of(mind, **bounds):
    return [(each.text, each.span) for each in (await mind.knowledge.facts(**bounds)).facts]


async def names_of(mind):
    return {(each.name, each.type.value): each.aliases for each in (await mind.knowledge.entities()).entities}


async def test_a_segment_becomes_entities_and_facts(mind, script, owner):
    script.extraction(
        [entity("Ann", "person", "Annie", description="A friend."), entity("Oslo", "place")],
        [fact("Ann", "lives in", "Oslo")],
    )
    said = await learn_from(mind, "Ann lives in Oslo, I call her Annie")
    assert await facts_of(mind) == [("Ann lives in Oslo.", ValidTime(NOON))]
    assert await names_of(mind) == {("Ann", "person"): ("Annie",), ("Oslo", "place"): ()}
    [ann] = (await mind.knowledge.entities("anni")).entities
    assert ann.description == "A friend."
    [stored] = (await mind.knowledge.facts()).facts
    memory = await mind.get(stored.memory_id)
    assert (memory.importance, memory.origin, memory.trust) == (7, "enrich", 100)
    assert set(memory.evidence) == {row[0] for row in owner.execute("select id from messages").fetchall()}
    assert (memory.triple.subject, memory.occurred_at) == ("Ann", NOON)
    assert [segment.state for segment in await said.segments()] == ["enriched"]


async def test_known_names_are_found_without_a_model(mind, script):
    script.extraction([entity("Ann", "person", "Annie"), entity("Oslo", "place")], [fact("Ann", "lives in", "Oslo")])
    await learn_from(mind, "Ann lives in Oslo")
    script.extraction(
        [entity("annie", "person"), entity("OSLO.", "place"), entity("Rome", "place")],
        [
            fact("annie", "visits", "Rome"),
            fact("annie", "lives in", "OSLO."),
        ],
    )
    await learn_from(mind, "Annie visits Rome", days=1)
    assert set(await names_of(mind)) == {("Ann", "person"), ("Oslo", "place"), ("Rome", "place")}
    assert len(await facts_of(mind)) == 2, "what was said again is one fact"
    assert script.count(AnyNameMatches) == 0


async def test_names_that_are_much_alike_are_asked_about_once_for_all(mind, script):
    script.extraction(
        [entity("Jonathan Smith"), entity("Catherine Jones"), entity("Oslo", "place")],
        [fact("Jonathan Smith", "lives in", "Oslo")],
    )
    await learn_from(mind, "Jonathan Smith lives in Oslo")
    script.extraction(
        [entity("Jonathan Smyth"), entity("Catherine Joness"), entity("Rome", "place")],
        [fact("Jonathan Smyth", "works in", "Rome"), fact("Catherine Joness", "works in", "Rome")],
    )
    script.matches = {"matches": [{"name": 1, "known": 1}, {"name": 2, "known": 0}, {"name": 9, "known": 1}]}
    await learn_from(mind, "Jonathan Smyth works in Rome", days=1)
    assert script.count(AnyNameMatches) == 1
    known = await names_of(mind)
    assert known[("Jonathan Smith", "person")] == ("Jonathan Smyth",)
    assert ("Catherine Joness", "person") in known
    [prompt] = [prompt for answer, prompt in script.asked if answer is AnyNameMatches]
    assert "Jonathan Smyth" in prompt
    assert not any(str(each.id) in prompt for each in (await mind.knowledge.entities()).entities)


@pytest.mark.parametrize("garbage", ["", "no", '{"matches": 5}', '{"matches": [{"name": 1, "known": "all"}', "[1, 2]"])
async def test_whatever_the_model_says_of_names_a_doubt_is_then_somebody_new(mind, script, garbage):
    script.extraction([entity("Jonathan Smith")])
    await learn_from(mind, "Jonathan Smith is here")
    script.extraction([entity("Jonathan Smyth")])
    script.matches = garbage
    await learn_from(mind, "Jonathan Smyth is here", days=1)
    assert script.count(AnyNameMatches) == 1
    assert set(await names_of(mind)) == {("Jonathan Smith", "person"), ("Jonathan Smyth", "person")}


async def test_a_change_closes_what_was_shown_and_nothing_else(mind, script):
    script.extraction([entity("Ann"), entity("Oslo", "place")], [fact("Ann", "lives in", "Oslo", "2020-01-01")])
    await learn_from(mind, "Ann has lived in Oslo since 2020")
    script.extraction(
        [entity("Ann"), entity("Rome", "place")],
        [fact("Ann", "lives in", "Rome", "2026-03-01", replaces=[1, 7])],
    )
    await learn_from(mind, "Ann moved to Rome on the first of March", days=1)
    begun = datetime(2026, 3, 1, tzinfo=UTC)
    assert await facts_of(mind) == [("Ann lives in Rome.", ValidTime(begun))]
    assert await facts_of(mind, at=datetime(2025, 1, 1, tzinfo=UTC)) == [
        ("Ann lives in Oslo.", ValidTime(datetime(2020, 1, 1, tzinfo=UTC), begun))
    ]


async def test_a_segment_that_is_read_again_says_nothing_twice(mind, script, owner):
    script.extraction([entity("Ann"), entity("Oslo", "place")], [fact("Ann", "lives in", "Oslo")])
    await learn_from(mind, "Ann lives in Oslo")
    before = await facts_of(mind)
    owner.execute("update segments set state = 'closed'")
    await enrich(mind.access.parts, first_number(mind))
    assert await facts_of(mind) == before
    assert len(await versions_of(mind.knowledge, (await mind.knowledge.facts()).facts[0].id)) == 1


async def test_a_company_and_a_fruit_are_asked_about_and_a_hobby_and_a_skill_are_not(mind, script):
    await mind.knowledge.add(
        [
            NewFact("Ann", "works at", "Apple", object_type=EntityType.ORGANIZATION),
            NewFact("Ann", "likes", "rowing", object_type=EntityType.ACTIVITY),
        ]
    )
    script.extraction([entity("apple", "thing"), entity("Rowing", "skill")])
    await learn_from(mind, "I ate an apple and rowed")
    assert script.count(AnyNameMatches) == 1
    known = await names_of(mind)
    assert {("Apple", "organization"), ("apple", "thing"), ("rowing", "activity")} <= set(known)
    assert ("Rowing", "skill") not in known


async def test_chinese_names(mind, script):
    script.extraction([entity("张伟"), entity("腾讯", "organization")], [fact("张伟", "在…工作", "腾讯", "2021-01-01")])
    await learn_from(mind, "张伟在腾讯工作")
    script.extraction(
        [entity("张伟", "person", "小张"), entity("清华大学", "organization")], [fact("张伟", "毕业于", "清华大学")]
    )
    await learn_from(mind, "小张毕业于清华大学", days=1)
    script.extraction([entity("小张"), entity("清华", "organization")], [fact("小张", "想念", "清华")])
    script.matches = {"matches": [{"name": 1, "known": 1}]}
    await learn_from(mind, "小张想念清华", days=2)
    known = await names_of(mind)
    assert set(known) == {("张伟", "person"), ("腾讯", "organization"), ("清华大学", "organization")}
    assert (known[("张伟", "person")], known[("清华大学", "organization")]) == (("小张",), ("清华",))
