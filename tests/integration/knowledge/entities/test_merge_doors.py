"""Entities are merged and split over HTTP, by both clients and on the command line."""

from __future__ import annotations

import asyncio

import pytest

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.errors import ConflictError
from recollect.models.knowledge import EntityOrder, NewFact
from recollect.models.service import Right
from support.programs import command_line
from support.service.serving import serving

SCOPE = {"agent": "ada", "user": "li"}


@pytest.fixture
async def pair(mind):
    await mind.knowledge.add([NewFact("Bill", "works at", "Acme"), NewFact("William", "lives in", "Berlin")])
    found = {each.name: each.id for each in (await mind.knowledge.entities()).entities}
    return found["Bill"], found["William"]


async def test_over_http(http, pair):
    kept, absorbed = map(str, pair)
    merged = await http.post(f"/v1/entities/{kept}/merge", json=SCOPE | {"absorbed": absorbed})
    assert (merged.status_code, merged.json()["aliases"]) == (200, ["William"])
    again = await http.post(f"/v1/entities/{kept}/merge", json=SCOPE | {"absorbed": absorbed})
    assert again.status_code == 409
    [shown] = (await http.get("/v1/entities", params=SCOPE | {"ids": absorbed})).json()["entities"]
    assert shown["merged_into"] == kept
    near = (await http.get("/v1/entities", params=SCOPE | {"search": "William", "order": "meaning"})).json()
    assert (near["ordered_by"], near["entities"][0]["id"]) == ("words", kept)
    alone = await http.post(f"/v1/entities/{absorbed}/split", json=SCOPE)
    assert (alone.status_code, alone.json()["merged_into"]) == (200, None)
    assert (await http.post(f"/v1/entities/{absorbed}/split", json=SCOPE)).status_code == 404


async def test_by_both_clients(recollect, mind, pair):
    kept, absorbed = pair
    async with serving(create_app(recollect=recollect)) as url:
        _, secret = await new_key(recollect)
        async with Client(url, secret) as client:
            there = (await client.mind("ada", "li")).knowledge
            assert (await there.merge(kept, absorbed)).aliases == ("William",)
            assert (await there.entities()).ordered_by is EntityOrder.AGE
            with pytest.raises(ConflictError):
                await there.merge(kept, absorbed)

        def block():
            with sync.using(Client(url, secret)) as opened:
                return opened.mind("ada", "li").knowledge.split(absorbed)

        assert (await asyncio.to_thread(block)).id == absorbed


async def test_a_reader_may_not_merge(recollect, pair):
    kept, absorbed = map(str, pair)
    _, secret = await new_key(recollect, rights=(Right.READ,))
    async with http_client(recollect, secret) as reader:
        assert (await reader.post(f"/v1/entities/{kept}/merge", json=SCOPE | {"absorbed": absorbed})).status_code == 403
        assert (await reader.post(f"/v1/entities/{absorbed}/split", json=SCOPE)).status_code == 403


async def test_on_the_command_line(addresses, mind, pair):
    _, absorbed = pair
    of = {"settings": command_line.settings_of(addresses)}
    scope = ("--agent", "ada", "--user", "li")
    said = await asyncio.to_thread(command_line.run, "mind", "graph", "merge", "Bill", "William", *scope, **of)
    assert str(absorbed) in said.replace("\n", "")
    listed = await asyncio.to_thread(command_line.run, "mind", "entities", "Bill", *scope, "--order", "meaning", **of)
    assert "Bill" in listed
    await asyncio.to_thread(command_line.run, "mind", "graph", "split", str(absorbed), *scope, **of)
    assert (await mind.knowledge.entities(ids=[absorbed])).entities[0].merged_into is None
