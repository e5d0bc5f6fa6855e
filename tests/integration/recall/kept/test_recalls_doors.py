"""Kept recalls through every door: HTTP, the SDK, blocking code, and the command line."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from conftest import http_client, new_key
from integration.recall.kept.test_recalls_kept import APPLES, KEPT, hits_of, of
from recollect import sync
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.models import Cue
from recollect.models.service import Right
from support.programs import command_line
from support.programs.command_line import settings_of
from support.service.serving import serving

SCOPE = {"agent": "ada", "user": "li"}


async def ask(http, **more):
    found = await http.post("/v1/recall", json=SCOPE | {"text": KEPT.text, "keep": True} | more)
    return found.json()


async def test_http_lists_explains_and_replays(http, mind):
    await mind.remember(APPLES)
    found = await ask(http, limit=2)
    [listed] = (await http.get("/v1/recalls", params=SCOPE)).json()["recalls"]
    assert (listed["recall_id"], listed["text"], listed["hits"]) == (found["recall_id"], KEPT.text, 2)
    told = (await http.get(f"/v1/recalls/{found['recall_id']}", params=SCOPE)).json()
    assert told["same"] is True
    assert [each["rank"] for each in told["placings"]] == [1, 2, 0, 0]
    assert [each["score"] for each in told["placings"][:2]] == [hit["score"] for hit in found["hits"]]
    assert told["placings"][0]["memory"]["content"] == found["hits"][0]["memory"]["content"]
    assert told["placings"][0]["channels"].keys() == found["hits"][0]["channels"].keys()
    assert len(told["proposals"]["vector"]) == 4
    path = f"/v1/recalls/{found['recall_id']}/replay"
    same = (await http.post(path, json=SCOPE)).json()
    assert (same["same"], [each["before"] for each in same["placings"]]) == (True, [1, 2])
    other = (await http.post(path, json=SCOPE | {"weights": {"text": 0, "vector": 1}})).json()
    assert (other["same"], other["weights"]["text"]) == (False, 0)
    moment = datetime.now(UTC).isoformat()
    again = await http.post(path, json=SCOPE | {"as_of": moment})
    assert (again.status_code, len(again.json()["placings"])) == (200, 2)


async def test_http_keeps_rights_and_bounds(recollect, http, mind):
    await mind.remember(APPLES)
    found = await ask(http)
    path = f"/v1/recalls/{found['recall_id']}"
    _, secret = await new_key(recollect, rights=(Right.READ,))
    async with http_client(recollect, secret) as reader:
        assert (await reader.get(path, params=SCOPE)).status_code == 200
        assert (await reader.post(f"{path}/replay", json=SCOPE)).status_code == 200
        # To have a recall kept is to have something written.
        assert (await reader.post("/v1/recall", json=SCOPE | {"text": "x", "keep": True})).status_code == 403
        assert (await reader.post("/v1/recall", json=SCOPE | {"text": "x", "keep": False})).status_code == 200
        for wrong in ({"weights": {"text": -1}}, {"weights": {"text": "1"}}, {"as_of": "soon"}, {"x": 1}):
            assert (await reader.post(f"{path}/replay", json=SCOPE | wrong)).status_code == 422, wrong
        assert (await reader.get("/v1/recalls", params=SCOPE | {"limit": 0})).status_code == 422
        missing = await reader.get(f"/v1/recalls/{uuid4()}", params=SCOPE)
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    _, stranger = await new_key(recollect, "another")
    async with http_client(recollect, stranger) as other:
        assert (await other.get(path, params=SCOPE)).status_code == 404
        assert (await other.get("/v1/recalls", params=SCOPE)).json() == {"recalls": [], "next_cursor": None}


async def test_the_sdk_and_blocking_code_say_the_same_as_the_mind(recollect, mind):
    await mind.remember(APPLES)
    found = await mind.recall(KEPT)
    explained = await mind.recalls.explain(found.recall_id)
    _, secret = await new_key(recollect)
    app = create_app(recollect=recollect)
    app.state.recollect = recollect
    async with serving(app) as address:
        async with Client(address, secret) as client:
            remote = await client.mind("ada", "li")
            assert (await remote.recall(replace(KEPT, touch=False))).recall_id is not None
            assert await remote.recalls.explain(found.recall_id) == explained
            assert of((await remote.recalls.replay(found.recall_id)).placings) == hits_of(found)
            assert not (await remote.recalls.replay(found.recall_id, {"vector": 0.0})).same
            late = await remote.recalls.replay(found.recall_id, as_of=datetime.now(UTC))
            assert len(late.placings) == 4
            page = await remote.recalls.list(limit=1)
            assert (await remote.recalls.list(page.next_cursor)).recalls[0].recall_id == found.recall_id

        def block():
            with sync.using(Client(address, secret)) as opened:
                mind = opened.mind("ada", "li")
                recalls = mind.recalls
                return recalls.list(), recalls.explain(found.recall_id), recalls.replay(found.recall_id)

        listed, again, replayed = await asyncio.to_thread(block)
    assert len(listed.recalls) == 2
    assert again == explained
    assert replayed.same


@pytest.mark.slow
async def test_the_command_line_says_why(mind, addresses):
    await mind.remember(APPLES)
    settings = settings_of(addresses) | {"COLUMNS": "220"}

    async def run(*words, code=0):
        words = (*words, "--agent", "ada", "--user", "li")
        ended = await asyncio.to_thread(command_line.call, *words, settings=settings)
        assert ended.code == code, ended.stderr
        return ended.said

    found = await mind.recall(Cue(KEPT.text, limit=2, keep=True))
    recall_id = str(found.recall_id)
    assert recall_id in await run("mind", "recalls", "list")
    shown = await run("mind", "recalls", "explain", recall_id)
    assert KEPT.text in shown
    assert found.hits[0].memory.content in shown
    assert re.search(r"vector.*│ 4 ", shown)
    assert f"{found.hits[0].score:.4f}" in shown
    assert "2 other candidates" in shown
    assert "below" in await run("mind", "recalls", "explain", recall_id, "--all")
    assert "those of the recall" in await run("mind", "recalls", "replay", recall_id)
    assert "hits are new" in await run("mind", "recalls", "replay", recall_id, "--weight", "vector=0")
    assert found.hits[0].memory.content in await run("mind", "recalls", "replay", recall_id, "--as-of", "2090-01-01")
    assert "not saved" in await run("mind", "recalls", "explain", str(uuid4()), code=1)
    assert "text=0.5" in await run("mind", "recalls", "replay", recall_id, "--weight", "text", code=1)
