"""Topics over HTTP, through the SDK and its blocking twin, and on the command line: the same answers everywhere."""

from __future__ import annotations

import asyncio

import pytest
from typer.testing import CliRunner

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.doors.cli.main import app
from recollect.doors.http.app import create_app
from recollect.errors import ConflictError, NotFoundError
from recollect.models.memories import NewMemory
from recollect.models.service import Right
from recollect.models.topics import LinkStrength, NewTopicLink
from support.service.serving import serving

SCOPE = {"agent": "ada", "user": "li"}


@pytest.fixture
async def filed(mind):
    """Two memories under travel->Japan, one of which leads to food."""
    receipts = await mind.remember(
        [
            NewMemory("a ryokan in Kyoto", topic="travel->Japan", related_topics=("food",)),
            NewMemory("the bullet train", topic="travel->Japan"),
        ]
    )
    return [receipt.id for receipt in receipts]


async def test_every_way_in_gives_the_same_answer(recollect, mind, filed):
    async with serving(create_app(recollect=recollect)) as url:
        _, secret = await new_key(recollect)
        async with Client(url, secret) as client:
            remote = await client.mind("ada", "li")
            there, here = remote.topics, mind.topics
            assert await there.tree() == await here.tree()
            assert await there.tree("travel", 1) == await here.tree("travel", 1)
            assert await there.links("travel->Japan") == await here.links("travel->Japan")
            assert await there.links(memory_id=filed[0]) == await here.links(memory_id=filed[0])
            assert await there.tree("travel->Japan") == await here.tree("travel->Japan")
            topic = await there.link(
                "food->noodles", [filed[1], NewTopicLink(filed[0], LinkStrength(0.1, 0.2, 0.3), ("sea",))]
            )
            assert (topic.path, topic.memories) == ("food->noodles", 2)
            assert {link.reach for link in await here.links("food->noodles")} == {
                LinkStrength(),
                LinkStrength(0.1, 0.2, 0.3),
            }
            assert await there.unlink("food->noodles", [filed[1]]) == [filed[1]]
            assert (await there.update("food", name="meals")).path == "meals"
            assert (await there.update("meals->noodles", parent="travel")).path == "travel->noodles"
            assert (await there.update("travel->noodles", into="travel->Japan")).memories == 2
            [receipt] = await remote.remember(NewMemory("sushi", topic="meals", reach=LinkStrength(1, 1, 1)))
            [link] = await there.links(memory_id=receipt.id)
            assert (link.path, link.reach) == ("meals", LinkStrength(1, 1, 1))
            with pytest.raises(NotFoundError):
                await there.update("nowhere", parent="")
            with pytest.raises(ConflictError):
                await there.update("meals", name="travel")

        def block():
            with sync.using(Client(url, secret)) as opened:
                topics = opened.mind("ada", "li").topics
                return topics.tree(), topics.links("meals"), topics.update("sea", name="Sea")

        tree, links, renamed = await asyncio.to_thread(block)
    assert (links, renamed.path) == (await mind.topics.links("meals"), "Sea")
    assert [topic.path for topic in tree.topics] == ["meals", "sea", "travel", "travel->Japan"]


async def test_http_speaks_of_topics(recollect, http, filed):
    answer = (await http.get("/v1/topics", params=SCOPE)).json()
    assert [(each["path"], each["memories"], each["below"]) for each in answer["topics"]] == [
        ("food", 0, 0),
        ("travel", 0, 2),
        ("travel->Japan", 2, 0),
    ]
    text = await http.get("/v1/topics/text", params=SCOPE | {"path": "travel"})
    assert text.headers["content-type"].startswith("text/plain")
    assert text.text == "travel [root] {memories: 0}\ntravel->Japan {memories: 2}\n"
    body = SCOPE | {"path": "a", "memories": [{"memory_id": str(filed[0]), "activation": 2}]}
    assert (await http.post("/v1/topics/links", json=body)).status_code == 422
    assert (await http.get("/v1/topics", params=SCOPE | {"path": "nowhere"})).status_code == 404
    assert (await http.get("/v1/topics/links", params=SCOPE)).status_code == 422
    assert (await http.patch("/v1/topics", json=SCOPE | {"path": "food", "name": "travel"})).status_code == 409
    body = SCOPE | {"memories": [{"content": "miso", "topic": "food", "related_topics": ["->"]}]}
    assert (await http.post("/v1/memories", json=body)).status_code == 422
    _, secret = await new_key(recollect, rights=(Right.READ,))
    async with http_client(recollect, secret) as reader:
        assert (await reader.get("/v1/topics", params=SCOPE)).status_code == 200
        assert (await reader.patch("/v1/topics", json=SCOPE | {"path": "food", "name": "meals"})).status_code == 403


async def test_the_command_line_shows_and_changes_topics(addresses, mind, filed, monkeypatch):
    monkeypatch.setenv("RECOLLECT_DATABASE_URL", addresses.service)
    monkeypatch.setenv("RECOLLECT_OWNER_DATABASE_URL", addresses.owner)
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")

    async def call(*words):
        run = asyncio.to_thread(CliRunner().invoke, app, ["mind", "topics", *words, "--agent", "ada", "--user", "li"])
        return (await run).output

    assert "Japan 2" in await call("tree")
    assert await call("tree", "--text", "--path", "travel->Japan") == "travel->Japan {memories: 2}\n"
    assert "more than 1" in await call("tree", "--limit", "1")
    assert "ryokan" in await call("links", "travel->Japan")
    assert "food" in await call("related", "travel->Japan")
    assert "food->tea: 1 memories, 0 below it" in await call("link", "food->tea", str(filed[1]), "--related", "rest")
    assert "trips: 0 memories, 2 below it" in await call("update", "travel", "--name", "trips")
    assert "Japan: 2 memories" in await call("update", "trips->Japan", "--parent", "")
    assert "Japan: 2 memories" in await call("merge", "food->tea", "Japan")
    assert "1 memories taken" in await call("unlink", "Japan", str(filed[1]))
    assert [topic.path for topic in (await mind.topics.tree()).topics] == ["food", "Japan"]
