"""Entities that may be one are listed for a person to accept, at every door; nothing is merged by itself."""

from __future__ import annotations

import asyncio

import pytest

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.errors import ChatModelError
from recollect.models.knowledge import MergeReason, NewFact
from recollect.settings import Settings
from recollect.verbs.knowledge import proposals
from recollect.wiring import connected
from support.models.fake_chat import FakeChatModel
from support.programs import command_line
from support.service.serving import serving

FACTS = [
    NewFact("Katherine Miller", "works at", "Acme"),
    NewFact("Catherine Miller", "lives in", "Berlin"),
    NewFact("Zoe", "knows", "Katherine Miller"),
]


@pytest.fixture
async def knowledge(mind):
    await mind.knowledge.add(FACTS)
    return mind.knowledge


def names(found):
    return [(each.kept.name, each.absorbed.name, each.reason) for each in found.proposals]


async def test_near_spellings_are_proposed_once_and_not_merged(knowledge):
    found = await knowledge.duplicates()
    assert names(found) == [("Katherine Miller", "Catherine Miller", MergeReason.SPELLING)]
    assert found.next_cursor is None
    [proposal] = found.proposals
    assert 0.6 <= proposal.alike < 1 and proposal.confirmed is None
    assert len((await knowledge.entities()).entities) == 5


async def test_what_is_merged_is_no_longer_proposed_and_what_is_split_is_again(knowledge):
    [proposal] = (await knowledge.duplicates()).proposals
    await knowledge.merge(proposal.kept.id, proposal.absorbed.id)
    assert (await knowledge.duplicates()).proposals == ()
    await knowledge.split(proposal.absorbed.id)
    assert len((await knowledge.duplicates()).proposals) == 1


async def test_what_is_near_in_meaning_is_proposed(recollect, mind, owner):
    await mind.knowledge.add([NewFact("Bill", "is", "kind"), NewFact("Xenia", "is", "far")])
    await recollect.operator.embed_waiting(mind, lambda _: None)
    assert names(await mind.knowledge.duplicates()) == []
    owner.execute(
        "update entity_vectors set embedding = (select embedding from entity_vectors other join entities using "
        "(scope_id, id) where name = 'Bill') where id = (select id from entities where name = 'Xenia')"
    )
    assert names(await mind.knowledge.duplicates()) == [("Bill", "Xenia", MergeReason.MEANING)]


async def test_every_pair_is_on_one_page(knowledge, monkeypatch):
    monkeypatch.setattr(proposals, "COMPARED", 2)
    pages, cursor = [], None
    while not pages or cursor:
        page = await knowledge.duplicates(cursor=cursor)
        pages.append(page)
        cursor = page.next_cursor
    assert len(pages) == 3
    assert [name for page in pages for name in names(page)] == names(await unpaged(knowledge, monkeypatch))


async def unpaged(knowledge, monkeypatch):
    monkeypatch.setattr(proposals, "COMPARED", 200)
    return await knowledge.duplicates()


@pytest.mark.parametrize(
    ("answer", "confirmed"), [([{"name": 1, "known": 1}], True), ([{"name": 1, "known": 0}], False)]
)
async def test_the_model_confirms_by_one_question(addresses, embedder, script, answer, confirmed):
    script.matches = {"matches": answer}
    async with connected(Settings(embedder="fake"), addresses, embedder, FakeChatModel(script)) as running:
        knowledge = (await running.mind("ada", "li")).knowledge
        await knowledge.add(FACTS)
        [proposal] = (await knowledge.duplicates(judge=True)).proposals
        assert (proposal.confirmed, len(script.asked)) == (confirmed, 1)
        [(_, prompt)] = script.asked
        assert "Catherine Miller" in prompt and "Zoe" not in prompt
        sums = (await running.ledger.read_costs(await running.operator.act_for("default"), "ada", "li")).sums
        assert [each.step for each in sums] == ["propose"]
        assert len((await knowledge.entities()).entities) == 5, "what a model says merges nothing"


async def test_a_model_that_fails_confirms_nothing(addresses, embedder):
    def refuse(prompt, answer):
        raise ChatModelError("no")

    async with connected(Settings(embedder="fake"), addresses, embedder, FakeChatModel(refuse)) as running:
        knowledge = (await running.mind("ada", "li")).knowledge
        await knowledge.add(FACTS)
        [proposal] = (await knowledge.duplicates(judge=True)).proposals
        assert proposal.confirmed is None


async def test_over_http_and_by_both_clients(recollect, knowledge):
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        shown = (await http.get("/v1/entities/duplicates", params={"agent": "ada", "user": "li"})).json()
    assert (shown["proposals"][0]["reason"], shown["next_cursor"]) == ("spelling", None)
    async with serving(create_app(recollect=recollect)) as url:
        async with Client(url, secret) as client:
            assert await (await client.mind("ada", "li")).knowledge.duplicates() == await knowledge.duplicates()

        def block():
            with sync.connect(url, secret) as opened:
                return opened.mind("ada", "li").knowledge.duplicates(limit=1)

        assert len((await asyncio.to_thread(block)).proposals) == 1


async def test_on_the_command_line(addresses, knowledge):
    settings = command_line.settings_of(addresses)
    said = command_line.run("mind", "graph", "duplicates", "--agent", "ada", "--user", "li", settings=settings)
    assert "Katherine" in said and "spelling" in said
    nothing = command_line.run("mind", "graph", "duplicates", "--agent", "nobody", settings=settings)
    assert "No two entities look like one." in nothing
