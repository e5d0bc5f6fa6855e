"""The two times of a read travel through every door, and absurd ones are refused there."""

from __future__ import annotations

import pytest

from conftest import new_key
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.models.conversations import HistoryOptions, NewMessage
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory, Role, Triple
from recollect.models.recall import Cue
from support.memories.past import amend, moment, state, year
from support.service.serving import serving

SCOPE = {"agent": "ada", "user": "li"}


@pytest.fixture
async def then(mind, owner):
    """The moment before everything changed."""
    first = await state(mind, owner, "Ann lives in Paris.", year(2020))
    await mind.remember(NewMemory("An early talk", Kind.CHAT, keywords=("ann",), occurred_at=year(2020)))
    await mind.conversation("c").append([NewMessage(Role.USER, "first"), NewMessage(Role.ASSISTANT, "1")])
    before = moment(owner)
    await amend(mind, owner, first, "Ann lives in Rome.", year(2020), year(2090))
    await mind.remember(NewMemory("A late talk", Kind.CHAT, keywords=("ann",), occurred_at=year(2021)))
    await mind.remember(NewMemory("Ann ran", keywords=("ann",), occurred_at=year(2021)))
    await mind.conversation("c").append([NewMessage(Role.USER, "second"), NewMessage(Role.ASSISTANT, "2")])
    return before


def contents(memories):
    return {memory["content"] for memory in memories}


async def test_http(http, then):
    as_of = {"as_of": then.isoformat()}
    found = (await http.post("/v1/recall", json=SCOPE | as_of | {"text": "Where does Ann live?"})).json()
    assert found["methods"]["past"] == "exact"
    [fact] = [hit["memory"] for hit in found["hits"] if hit["memory"]["kind"] == "fact"]
    assert (fact["content"], fact["valid_at"]) == ("Ann lives in Paris.", "2020-01-01T00:00:00Z")
    assert fact["superseded_at"] is not None
    cues = [
        {"text": "Ann", "kinds": ["fact"]} | as_of,
        {"text": "Ann", "kinds": ["fact"], "at": "2010-01-01T00:00:00Z"},
    ]
    answers = (await http.post("/v1/recall-each", json=SCOPE | {"cues": cues})).json()["recollections"]
    assert [[hit["memory"]["content"] for hit in each["hits"]] for each in answers] == [["Ann lives in Paris."], []]
    page = (await http.get("/v1/memories", params=SCOPE | as_of)).json()
    assert contents(page["memories"]) == {"Ann lives in Paris.", "An early talk", "first", "1"}
    page = (await http.get("/v1/memories", params=SCOPE | {"at": "2020-06-01T00:00:00+08:00"})).json()
    assert contents(page["memories"]) == {"Ann lives in Rome.", "An early talk"}
    chats = {"keyword": "Ann", "kinds": "chat", "order": "newest", "limit": 1}
    [chat] = (await http.get("/v1/memories", params=SCOPE | as_of | chats)).json()["memories"]
    assert chat["content"] == "An early talk"
    triples = {"triples": [{"subject": "Ann"}]}
    asked = [{}, as_of, {"at": "2020-06-01T00:00:00Z"}]
    found = [(await http.post("/v1/associate", json=SCOPE | triples | times)).json()["associations"] for times in asked]
    assert [len(each[0]["events"]) for each in found] == [1, 0, 0]
    conversation = SCOPE | {"conversation": "c"}
    said = (await http.post("/v1/history", json=conversation | as_of)).json()
    assert [message["content"] for message in said["messages"]] == ["first", "1"]
    prompt = (await http.post("/v1/context", json=conversation | as_of | {"text": "Where does Ann live?"})).json()
    assert "Ann lives in Paris." in prompt["block"]
    assert "second" not in str(prompt["messages"])


@pytest.mark.parametrize("value", ["2026-01-31T12:00:00", "1767225600", "9999-12-31T23:59:59Z", "yesterday", ""])
@pytest.mark.parametrize("field", ["as_of", "at"])
async def test_moments_that_cannot_be_are_refused(http, field, value):
    wrong = {field: value}
    answers = [
        await http.post("/v1/recall", json=SCOPE | {"text": "x"} | wrong),
        await http.get("/v1/memories", params=SCOPE | wrong),
        await http.post("/v1/associate", json=SCOPE | {"triples": [{"subject": "x"}]} | wrong),
        await http.post("/v1/history", json=SCOPE | {"conversation": "c"} | wrong),
        await http.post("/v1/context", json=SCOPE | {"conversation": "c", "text": "x"} | wrong),
    ]
    assert [answer.status_code for answer in answers] == [422] * 5
    assert all(field in answer.text for answer in answers)


async def test_the_client_asks_as_the_mind_does(recollect, mind, then):
    _, secret = await new_key(recollect)
    async with serving(create_app(recollect=recollect)) as url, Client(url, secret) as client:
        remote = await client.mind("ada", "li")
        for times in ({}, {"as_of": then}, {"at": year(2021)}, {"as_of": then, "at": year(2010)}):
            assert await remote.list(filter=Filter(**times)) == await mind.list(filter=Filter(**times))
            chats = Filter(kinds=(Kind.CHAT,), **times)
            assert await remote.list(keyword="Ann", filter=chats) == await mind.list(keyword="Ann", filter=chats)
            assert await remote.associate(Triple("Ann"), **times) == await mind.associate(Triple("Ann"), **times)
            window = HistoryOptions(**times)
            assert await remote.conversation("c").history(window) == await mind.conversation("c").history(window)
            cue = Cue("Where does Ann live?", touch=False, **times)
            hits = [(await each.recall(cue)).hits for each in (remote, mind)]
            assert [hit.memory.id for hit in hits[0]] == [hit.memory.id for hit in hits[1]]
            prompts = [await each.conversation("c").context(cue) for each in (remote, mind)]
            assert prompts[0].messages == prompts[1].messages
