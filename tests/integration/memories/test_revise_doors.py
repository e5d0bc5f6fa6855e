"""A memory is revised, and its versions are listed, through every door."""

from __future__ import annotations

import asyncio

from conftest import http_client, new_key
from integration.mcp.test_mcp import call
from recollect import sync
from recollect.client import Client
from support.programs import command_line
from support.programs.command_line import settings_of
from support.service.mcp_doors import listening, over_http

SCOPE = {"agent": "ada", "user": "li"}


async def contents(recollect):
    mind = await recollect.mind("ada", "li")
    return {each.content: each for each in (await mind.list(limit=100)).memories}


async def test_over_http(recollect):
    _, secret = await new_key(recollect, trust=80)
    _, weaker = await new_key(recollect, trust=20)
    async with http_client(recollect, secret) as http, http_client(recollect, weaker) as stranger:
        stored = await http.post("/v1/memories", json=SCOPE | {"content": "at four", "metadata": {"a": 1}})
        [first] = stored.json()["memories"]
        path = f"/v1/memories/{first['id']}"
        body = SCOPE | {"content": "at five", "importance": 9, "keywords": ["time"], "topic": "day", "pinned": True}
        answer = await http.patch(f"{path}", json=body)
        revised = answer.json()
        assert (answer.status_code, revised["version"], revised["changed"], revised["contested"]) == (
            200,
            2,
            True,
            False,
        )
        again = await http.patch(f"{path}", json=SCOPE | {"content": "at six"})
        assert again.status_code == 409 and revised["id"] in again.json()["detail"]
        tried = await stranger.patch(f"/v1/memories/{revised['id']}", json=SCOPE | {"content": "never"})
        assert tried.json()["contested"] is True
        listed = (await http.get(f"{path}/evidence", params=SCOPE)).json()["versions"]
        assert [(each["content"], each["contested"]) for each in listed] == [
            ("at four", False), ("at five", False), ("never", True)
        ]  # fmt: skip
        assert (await http.patch(f"{path}", json=SCOPE)).status_code == 422
        assert (await http.patch(f"{path}", json=SCOPE | {"contents": "x"})).status_code == 422
        unknown = first["id"][:-4] + "0000"
        assert (await http.patch(f"/v1/memories/{unknown}", json=SCOPE | {"content": "x"})).status_code == 404
        assert (await http.get(f"/v1/memories/{unknown}/evidence", params=SCOPE)).status_code == 404
    [now] = (await contents(recollect)).values()
    assert (now.importance, now.keywords, now.pinned, now.metadata, now.trust) == (9, ("time",), True, {"a": 1}, 80)


async def test_by_both_clients(recollect):
    _, secret = await new_key(recollect)

    def without_a_loop(url, memory_id):
        with sync.connect(url, secret) as client:
            mind = client.mind("ada", "li")
            mind.update(memory_id, content="blocking", metadata={})
            return [each.content for each in mind.evidence(memory_id).versions]

    async with listening(recollect) as url, Client(url, secret) as client:
        mind = await client.mind("ada", "li")
        [first] = await mind.remember("first")
        second = await mind.update(first.id, content="second", importance=3)
        assert (await mind.update(first.id, content="second", importance=3)).id == second.id
        assert [each.content for each in (await mind.evidence(first.id)).versions] == ["first", "second"]
        assert await asyncio.to_thread(without_a_loop, url, second.id) == ["first", "second", "blocking"]


async def test_from_the_command_line(recollect, addresses):
    def run(*words):
        return command_line.run(*words, "--agent", "ada", "--user", "li", settings=settings_of(addresses))

    first = (await asyncio.to_thread(run, "remember", "at four")).split()[0]
    asked = ("update", first, "at five", "--importance", "8", "--keyword", "time", "--topic", "day", "--pin")
    second, state = (await asyncio.to_thread(run, *asked)).split()
    assert state in {"embedded", "stored"}
    assert (await asyncio.to_thread(run, "update", second, "at five")).split() == [second, "unchanged"]
    shown = await asyncio.to_thread(run, "update", second, "--versions")
    assert first[-8:] in shown and second[-8:] in shown
    [now] = (await contents(recollect)).values()
    assert (now.content, now.importance, now.keywords, now.pinned) == ("at five", 8, ("time",), True)


async def test_by_mcp(recollect):
    _, secret = await new_key(recollect)
    async with listening(recollect) as url, over_http(url, secret) as client:
        stored, _ = await call(client, "remember", content="at four", **SCOPE)
        answer, text = await call(client, "update_memory", id=stored["id"], content="at five", importance=8, **SCOPE)
        assert answer["version"] == 2 and answer["id"] in text
        same, text = await call(client, "update_memory", id=answer["id"], content="at five", **SCOPE)
        assert same["changed"] is False and text.startswith("Nothing changed")
    assert {*await contents(recollect)} == {"at five"}
