"""Facts at any time: those that are over, and every version of what was corrected."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.errors import InvalidInputError
from recollect.models import NewFact
from recollect.models.service import Right
from support.service.mcp_doors import listening

SCOPE = {"agent": "ada", "user": "li"}
YEAR = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def facts(mind):
    """Ann has lived in Rome, which is over, lives in Oslo, which was corrected, and likes tea."""
    await mind.knowledge.add(NewFact("Ann", "lives in", "Rome", valid_at=YEAR, invalid_at=YEAR + timedelta(days=99)))
    [oslo] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=YEAR + timedelta(days=99)))
    await mind.knowledge.end(oslo.id, datetime.now(UTC) + timedelta(days=9))
    await mind.knowledge.add(NewFact("Ann", "likes", "tea"))
    return datetime.now(UTC)


def told(page):
    return [(fact.object_name, fact.version) for fact in page.facts]


async def test_any_time_has_what_is_over_and_every_version(mind, facts):
    assert told(await mind.knowledge.facts()) == [("Oslo", 2), ("tea", 1)]
    every = await mind.knowledge.facts(at="any")
    assert told(every) == [("Rome", 1), ("Oslo", 1), ("Oslo", 2), ("tea", 1)]
    first = await mind.knowledge.facts(at="any", limit=2)
    rest = await mind.knowledge.facts(at="any", limit=2, cursor=first.next_cursor)
    assert told(first) + told(rest) == told(every) and rest.next_cursor is None
    assert told(await mind.knowledge.facts(predicate="likes", at="any")) == [("tea", 1)]


async def test_with_a_time_of_belief_it_is_what_was_believed_then(mind, facts):
    assert told(await mind.knowledge.facts(at="any", as_of=facts)) == [("Rome", 1), ("Oslo", 2), ("tea", 1)]
    with pytest.raises(InvalidInputError):
        await mind.knowledge.facts(at="soon")


async def test_over_http_and_by_both_clients(recollect, mind, facts):
    _, secret = await new_key(recollect, rights=(Right.READ,))
    here = await mind.knowledge.facts(at="any")
    async with http_client(recollect, secret) as http:
        found = (await http.get("/v1/facts", params=SCOPE | {"at": "any"})).json()["facts"]
        assert [(each["object_name"], each["version"]) for each in found] == told(here)
        assert (await http.get("/v1/facts", params=SCOPE | {"at": "soon"})).status_code == 422

    def without_a_loop(url):
        with sync.connect(url, secret) as client:
            return client.mind("ada", "li").knowledge.facts(at="any")

    async with listening(recollect) as url, Client(url, secret) as client:
        assert await (await client.mind("ada", "li")).knowledge.facts(at="any") == here
        assert await asyncio.to_thread(without_a_loop, url) == here
