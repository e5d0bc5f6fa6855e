"""Entities are listed by how many facts speak of them: where a look at the graph may begin."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.errors import InvalidInputError
from recollect.models import EntityType, NewFact
from recollect.models.service import Right
from support.service.mcp_doors import listening

SCOPE = {"agent": "ada", "user": "li"}
PAST = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def facts(mind):
    """Ann is spoken of by three facts that stand and one that is over, Bo by two, all others by one."""
    person = {"subject_type": EntityType.PERSON}
    await mind.knowledge.add(
        [
            *(NewFact("Ann", "likes", thing, **person) for thing in ("tea", "rain")),
            NewFact("Ann", "knows", "Bo", object_type=EntityType.PERSON, **person),
            NewFact("Ann", "lives in", "Rome", invalid_at=PAST, **person),
            NewFact("Bo", "likes", "sun", **person),
        ]
    )


def told(page):
    return [(each.name, each.facts) for each in page.entities]


async def test_most_facts_come_first_and_what_is_over_does_not_count(mind, facts):
    page = await mind.knowledge.entities(order="facts")
    assert told(page)[:2] == [("Ann", 3), ("Bo", 2)]
    assert {*told(page)[2:]} == {("tea", 1), ("rain", 1), ("sun", 1)}
    assert (page.next_cursor, page.ordered_by) == (None, "facts")
    assert [each.facts for each in (await mind.knowledge.entities()).entities] == [None] * 6


async def test_page_by_page_by_name_and_by_type(mind, facts):
    whole = told(await mind.knowledge.entities(order="facts"))
    found, cursor = [], None
    while True:
        page = await mind.knowledge.entities(order="facts", cursor=cursor, limit=2)
        found += told(page)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == whole
    assert told(await mind.knowledge.entities("BO", order="facts")) == [("Bo", 2)]
    assert told(await mind.knowledge.entities(order="facts", type=EntityType.PERSON, limit=1)) == [("Ann", 3)]
    for wrong in ({"order": "names"}, {"order": "facts", "as_of": PAST}, {"order": "meaning"}):
        with pytest.raises(InvalidInputError):
            await mind.knowledge.entities(**wrong)


async def test_a_merged_entity_has_the_facts_of_both(recollect, mind, facts):
    entities = {each.name: each.id for each in (await mind.knowledge.entities()).entities}
    await mind.knowledge.merge(entities["Ann"], entities["Bo"])
    # That the two know each other is no fact of one.
    assert told(await mind.knowledge.entities(order="facts")) == [("Ann", 3), ("sun", 1), ("rain", 1), ("tea", 1)]
    assert told(await (await recollect.mind("ada", "wu")).knowledge.entities(order="facts")) == []


async def test_over_http_and_by_both_clients(recollect, mind, facts):
    _, secret = await new_key(recollect, rights=(Right.READ,))
    here = await mind.knowledge.entities(order="facts", limit=2)
    async with http_client(recollect, secret) as http:
        page = (await http.get("/v1/entities", params=SCOPE | {"order": "facts", "limit": 2})).json()
        assert [(each["name"], each["facts"]) for each in page["entities"]] == told(here)
        assert page["next_cursor"] == str(here.next_cursor)

    def without_a_loop(url):
        with sync.connect(url, secret) as client:
            return client.mind("ada", "li").knowledge.entities(order="facts", limit=2)

    async with listening(recollect) as url, Client(url, secret) as client:
        assert told(await (await client.mind("ada", "li")).knowledge.entities(order="facts", limit=2)) == told(here)
        assert told(await asyncio.to_thread(without_a_loop, url)) == told(here)
