"""Blocks through every door: HTTP, the SDK, blocking code and the command line."""

from __future__ import annotations

import asyncio
import json

import pytest

from conftest import http_client, new_key
from recollect import NewMemory, sync
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.errors import NotFoundError
from recollect.models import Kind
from recollect.models.recall import Cue
from support.programs import command_line
from support.programs.command_line import settings_of
from support.service.serving import serving

SCOPE = {"agent": "ada", "user": "li"}
CUE = "Which train to Ghent is late?"


async def remember(mind):
    [source] = await mind.remember("Train 7 to Ghent is late.")
    await mind.remember(NewMemory("Trains to Ghent are late.", Kind.THOUGHT, evidence=(source.id,)))
    return source.id


async def test_http_shows_resolves_and_does_not_repeat(http, mind):
    source = await remember(mind)
    body = SCOPE | {"text": CUE, "conversation": "talk", "zone": "Asia/Shanghai"}
    made = (await http.post("/v1/blocks", json=body)).json()
    assert [line["kind"] for line in made["lines"]] == ["thought", "event"]
    assert made["messages"] == [{"role": "system", "content": made["text"]}]
    assert made["tokens"] <= made["budget"] == 2_000
    again = (await http.post("/v1/blocks", json=body)).json()
    assert (again["text"], again["lines"], again["not_repeated"]) == ("", [], 2)
    repeated = (await http.post("/v1/blocks", json=body | {"repeat": True})).json()
    assert [line["again"] for line in repeated["lines"]] == [True, True]
    short_id = made["lines"][0]["short_id"]
    found = (await http.get(f"/v1/memories/{short_id}", params=SCOPE | {"conversation": "talk"})).json()
    assert found["content"] == "Trains to Ghent are late."
    assert found["evidence"] == [str(source)]
    assert (await http.get(f"/v1/memories/{short_id}", params=SCOPE)).json() == found
    assert (await http.get(f"/v1/memories/{short_id}", params=SCOPE | {"conversation": "x"})).status_code == 404


async def test_http_keeps_tenants_and_bounds(recollect, http, mind):
    await remember(mind)
    for wrong in ({"budget": 0}, {"budget": "9"}, {"repeat": 1}, {"conversation": "no such name"}, {"x": 1}):
        answer = await http.post("/v1/blocks", json=SCOPE | {"text": CUE} | wrong)
        assert answer.status_code == 422, wrong
    for wrong in ("m12", "1a2", "mxyzz", "m" + "a" * 33):
        assert (await http.get(f"/v1/memories/{wrong}", params=SCOPE)).status_code == 422
    made = (await http.post("/v1/blocks", json=SCOPE | {"text": CUE, "conversation": "talk"})).json()
    _, stranger = await new_key(recollect, "another")
    async with http_client(recollect, stranger) as other:
        assert (await other.post("/v1/blocks", json=SCOPE | {"text": CUE})).json()["lines"] == []
        for more in ({}, {"conversation": "talk"}):
            path = f"/v1/memories/{made['lines'][0]['short_id']}"
            assert (await other.get(path, params=SCOPE | more)).status_code == 404


async def test_the_sdk_and_blocking_code_say_the_same(recollect, mind):
    await remember(mind)
    cue = Cue(CUE, touch=False)

    def block(url, secret):
        with sync.using(Client(url, secret)) as client:
            view = client.mind("ada", "li")
            made = view.blocks.show(cue, 500)
            return made, view.get(f"[{made.lines[0].short_id}]")

    async with serving(create_app(recollect=recollect)) as url:
        _, secret = await new_key(recollect)
        async with Client(url, secret) as client:
            there = await client.mind("ada", "li")
            made = await there.blocks.show(cue, 500)
            assert made == await mind.blocks.show(cue, 500)
            assert await there.get(made.lines[0].short_id) == await mind.get(made.lines[0].short_id)
            assert (await there.blocks.show(CUE, conversation="talk", repeat=True)).lines[0].again is False
            assert (await there.get(made.lines[0].short_id, "talk")).id == made.lines[0].memory_id
            with pytest.raises(NotFoundError):
                await there.get("m0000", "talk")
        blocking, resolved = await asyncio.to_thread(block, url, secret)
    assert blocking == made
    assert resolved.id == made.lines[0].memory_id


def test_the_command_line_shows_blocks_and_gets_by_short_ids(addresses):
    def run(*words, fails=False):
        ended = command_line.call(*words, "--agent", "ada", settings=settings_of(addresses))
        assert (ended.code != 0) == fails, ended.said
        return ended

    identity = run("remember", "The [bold] train to Ghent is late.").stdout.split()[0]
    shown = run("recall", "--prompt", CUE, "--conversation", "talk", "--budget", "300")
    assert "<memories>\nEvents:\n[m" in shown.stdout
    assert "The [bold] train to Ghent is late." in shown.stdout
    assert "of 300 tokens by o200k_base" in shown.stderr
    again = run("recall", "--prompt", CUE, "--conversation", "talk")
    assert "nothing to show" in again.stdout
    assert "1 were shown before" in again.stderr
    made = json.loads(run("recall", "--prompt", CUE, "--conversation", "talk", "--repeat", "--json").stdout)
    [line] = made["lines"]
    assert line["memory_id"] == identity
    assert identity in run("get", line["short_id"]).stdout
    assert "not_found" in run("get", "m0000", fails=True).stderr
    assert "require --prompt" in run("recall", CUE, "--budget", "300", fails=True).stderr
