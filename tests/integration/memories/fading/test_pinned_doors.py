"""A memory can be pinned when it is stored and later, through every door."""

from __future__ import annotations

import asyncio
from uuid import UUID

from conftest import http_client, new_key
from integration.mcp.test_mcp import call
from recollect import sync
from recollect.client import Client
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue
from support.programs import command_line
from support.programs.command_line import settings_of
from support.service.mcp_doors import listening, over_http

SCOPE = {"agent": "ada", "user": "li"}


async def pinned(recollect):
    mind = await recollect.mind("ada", "li")
    return {each.content for each in (await mind.list(limit=100)).memories if each.pinned}


async def test_over_http(recollect):
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        stored = await http.post("/v1/memories", json=SCOPE | {"content": "a", "pinned": True})
        [first] = stored.json()["memories"]
        [second] = (await http.post("/v1/memories", json=SCOPE | {"content": "b"})).json()["memories"]
        assert await pinned(recollect) == {"a"}
        answer = (await http.patch(f"/v1/memories/{second['id']}", json=SCOPE | {"pinned": True})).json()
        assert (answer["id"], answer["version"], answer["changed"]) == (second["id"], 1, True)
        assert await pinned(recollect) == {"a", "b"}
        await http.patch(f"/v1/memories/{first['id']}", json=SCOPE | {"pinned": False})
        found = (await http.post("/v1/recall", json=SCOPE | {"text": "a b", "pinned": True})).json()
    assert [hit["memory"]["content"] for hit in found["hits"]] == ["b"]


async def test_by_both_clients(recollect):
    _, secret = await new_key(recollect)

    def without_a_loop(url, memory_id):
        with sync.connect(url, secret) as client:
            mind = client.mind("ada", "li")
            mind.remember(NewMemory("blocking", pinned=True))
            return mind.update(memory_id, pinned=False).id

    async with listening(recollect) as url, Client(url, secret) as client:
        mind = await client.mind("ada", "li")
        [kept] = await mind.remember(NewMemory("kept", pinned=True))
        [plain] = await mind.remember("plain")
        assert (await mind.update(plain.id, pinned=True)).id == plain.id
        assert await pinned(recollect) == {"kept", "plain"}
        assert await asyncio.to_thread(without_a_loop, url, kept.id) == kept.id
        assert await pinned(recollect) == {"plain", "blocking"}
        found = await mind.recall(Cue("kept plain blocking", pinned=True))
        assert {hit.memory.content for hit in found.hits} == {"plain", "blocking"}


async def test_from_the_command_line(recollect, addresses):
    def run(*words):
        return command_line.run(*words, "--agent", "ada", "--user", "li", settings=settings_of(addresses))

    first = UUID((await asyncio.to_thread(run, "remember", "a", "--pin")).split()[0])
    second = UUID((await asyncio.to_thread(run, "remember", "b")).split()[0])
    assert await pinned(recollect) == {"a"}
    assert str(second) in await asyncio.to_thread(run, "update", str(second), "--pin")
    assert await pinned(recollect) == {"a", "b"}
    assert str(first) in await asyncio.to_thread(run, "update", str(first), "--unpin")
    assert await pinned(recollect) == {"b"}


async def test_by_mcp(recollect):
    _, secret = await new_key(recollect)
    async with listening(recollect) as url, over_http(url, secret) as client:
        stored, _ = await call(client, "remember", content="a", pinned=True, **SCOPE)
        assert await pinned(recollect) == {"a"}
        gone, text = await call(client, "update_memory", id=stored["id"], pinned=False, **SCOPE)
    assert (gone["changed"], text) == (True, f"Updated: it is {stored['id']} now.")
    assert await pinned(recollect) == set()
