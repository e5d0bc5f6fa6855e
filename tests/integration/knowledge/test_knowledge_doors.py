"""Facts and entities through every door: HTTP, the client, without an event loop, and the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from conftest import http_client, new_key
from recollect import sync, wiring
from recollect.client import Client
from recollect.doors.cli import main
from recollect.errors import ConflictError, InvalidInputError
from recollect.models.knowledge import EntityType, NewFact, ValidTime
from recollect.models.service import Right
from recollect.settings import Settings
from recollect.wiring import connected
from support.memories.past import versions_of

SCOPE = {"agent": "ada", "user": "li"}
FROM, UNTIL = datetime(2020, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)


def fact(object_, **more):
    return {"subject": "Ann", "subject_type": "person", "predicate": "lives in", "object": object_} | more


async def test_facts_over_http(http):
    body = SCOPE | {"facts": [fact("Oslo", object_type="place", valid_at="2020-01-01T00:00:00Z")]}
    answer = await http.post("/v1/facts", json=body)
    assert answer.status_code == 201
    [oslo] = answer.json()["facts"]
    assert (oslo["text"], oslo["version"], oslo["subject_name"]) == ("Ann lives in Oslo", 1, "Ann")
    moved = fact("Rome", valid_at="2024-01-01T00:00:00Z", replaces=[oslo["id"]])
    [rome] = (await http.post("/v1/facts", json=SCOPE | {"facts": [moved]})).json()["facts"]

    listed = (await http.get("/v1/facts", params=SCOPE | {"about": oslo["subject"]})).json()
    assert ([each["id"] for each in listed["facts"]], listed["next_cursor"]) == ([rome["id"]], None)
    then = (await http.get("/v1/facts", params=SCOPE | {"at": "2022-01-01T00:00:00Z"})).json()["facts"]
    assert [(each["text"], each["version"]) for each in then] == [("Ann lives in Oslo", 2)]
    believed = (await http.get("/v1/facts", params=SCOPE | {"as_of": oslo["created_at"]})).json()["facts"]
    assert [each["memory_id"] for each in believed] == [oslo["memory_id"]]
    versions = (await http.get("/v1/facts", params=SCOPE | {"about": oslo["id"], "at": "any"})).json()["facts"]
    assert [each["superseded_at"] for each in versions] == [rome["created_at"], None]

    ended = await http.patch(f"/v1/facts/{rome['id']}", json=SCOPE | {"invalid_at": "2025-01-01T00:00:00Z"})
    assert (ended.json()["version"], ended.json()["span"]["invalid_at"][:10]) == (2, "2025-01-01")
    found = (await http.get("/v1/entities", params=SCOPE | {"search": "os", "type": "place"})).json()["entities"]
    assert [each["name"] for each in found] == ["Oslo"]
    asked = SCOPE | {"ids": [oslo["object"], str(uuid4()), oslo["subject"]]}
    named = (await http.get("/v1/entities", params=asked)).json()["entities"]
    assert [each["name"] for each in named] == ["Oslo", "Ann"]
    assert named[1] == {"id": oslo["subject"], "name": "Ann", "type": "person", "aliases": [], "description": ""} | {
        "merged_into": None,
        "facts": None,
    }


async def test_what_http_refuses(recollect, http):
    for wrong in (
        fact("Oslo", valid_at="2020-01-01T00:00:00Z", invalid_at="2019-01-01T00:00:00Z"),
        fact("Oslo", replaces=[str(uuid4())]),
        fact("Oslo", evidence=[str(uuid4())]),
        fact("", object_id=str(uuid4())),
        fact(""),
        fact("ann"),
        fact("Oslo", valid_at="2020-01-01T00:00:00"),
        fact("Oslo", object_type="planet"),
    ):
        answer = await http.post("/v1/facts", json=SCOPE | {"facts": [wrong]})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    for more in ({"search": "x"}, {"order": "facts"}, {"type": "place"}, {"ids": [str(uuid4())] * 201}):
        assert (await http.get("/v1/entities", params=SCOPE | {"ids": str(uuid4())} | more)).status_code == 422
    ending = SCOPE | {"invalid_at": "2025-01-01T00:00:00Z"}
    assert (await http.patch(f"/v1/facts/{uuid4()}", json=ending)).status_code == 404
    _, secret = await new_key(recollect, rights=(Right.READ,))
    async with http_client(recollect, secret) as reader:
        assert (await reader.post("/v1/facts", json=SCOPE | {"facts": [fact("Oslo")]})).status_code == 403
        assert (await reader.get("/v1/facts", params=SCOPE)).json() == {"facts": [], "next_cursor": None}


async def test_a_replay_over_http(http):
    key = {"Idempotency-Key": "k"}
    first = await http.post("/v1/facts", json=SCOPE | {"facts": [fact("Oslo")]}, headers=key)
    again = await http.post("/v1/facts", json=SCOPE | {"facts": [fact("Oslo")]}, headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    other = await http.post("/v1/facts", json=SCOPE | {"facts": [fact("Rome")]}, headers=key)
    assert other.status_code == 409


async def check_knowledge(known):
    """The same words do the same here and on a server."""
    [oslo] = await known.add(NewFact("Ann", "lives in", "Oslo", valid_at=FROM, object_type=EntityType.PLACE))
    [rome] = await known.add([NewFact(oslo.subject, "lives in", "Rome", valid_at=UNTIL, replaces=(oslo.id,))])
    assert [each.span for each in await versions_of(known, oslo.id)] == [ValidTime(FROM), ValidTime(FROM, UNTIL)]
    assert (await known.facts(oslo.subject, "lives in", limit=1)).facts == (rome,)
    assert [each.text for each in (await known.facts(as_of=oslo.created_at)).facts] == ["Ann lives in Oslo"]
    assert (await known.end(rome.id, datetime(2025, 1, 1, tzinfo=UTC))).version == 2
    assert (await known.entities("osl", type=EntityType.PLACE)).entities == (
        await known.entities(ids=[uuid4(), oslo.object])
    ).entities
    assert [each.name for each in (await known.entities(ids=[oslo.object, oslo.subject] * 2)).entities] == [
        "Oslo",
        "Ann",
    ]
    assert (await known.entities(ids=[uuid4()])).entities == ()
    with pytest.raises(InvalidInputError):
        await known.entities(ids=[oslo.object] * 201)
    with pytest.raises(InvalidInputError):
        await known.add(NewFact("Ann", "likes", "Ann"))
    await known.add(NewFact("Bob", "likes", "tea"), idempotency_key="k")
    with pytest.raises(ConflictError):
        await known.add(NewFact("Bob", "likes", "milk"), idempotency_key="k")


async def test_a_mind_and_a_client_know_the_same_words(recollect, mind):
    await check_knowledge(mind.knowledge)
    _, secret = await new_key(recollect)
    client = Client("http://test", secret)
    async with http_client(recollect, secret) as http:
        client._transport._http = http
        await check_knowledge((await client.mind("ada", "wu")).knowledge)


def test_without_an_event_loop(addresses, embedder):
    with sync.using(connected(Settings(embedder="fake"), addresses, embedder)) as recollect:
        known = recollect.mind("ada").knowledge
        [fact] = known.add(NewFact("Ann", "lives in", "Oslo", valid_at=FROM))
        assert known.facts().facts == (fact,)
        assert known.facts(fact.id, at="any").facts == (fact,)
        assert known.end(fact.id, UNTIL).version == 2
        assert [each.name for each in known.entities().entities] == ["Ann", "Oslo"]
        assert known.entities(ids=[fact.subject]).entities[0].name == "Ann"


def test_the_command_line(addresses, embedder, monkeypatch):
    monkeypatch.setattr(
        wiring, "open_recollect", lambda *_, **__: connected(Settings(embedder="fake"), addresses, embedder)
    )
    monkeypatch.setenv("COLUMNS", "200")
    run = CliRunner()
    assert "nothing known" in run.invoke(main.app, ["mind", "facts", "list", "--agent", "ada"]).output
    assert "nobody known" in run.invoke(main.app, ["mind", "entities", "--agent", "ada"]).output
    with sync.using(connected(Settings(embedder="fake"), addresses, embedder)) as recollect:
        known = recollect.mind("ada").knowledge
        [fact] = known.add(NewFact("Ann", "lives in", "Oslo", valid_at=FROM, object_type=EntityType.PLACE))
        known.end(fact.id, UNTIL)
        known.add(NewFact("Ann", "likes", "tea"))
    shown = run.invoke(
        main.app, ["mind", "facts", "list", "--agent", "ada", "--limit", "1", "--at", "2021-01-01"]
    ).output
    assert "Ann lives in Oslo" in shown
    assert "2020-01-01 00:00 - 2024-01-01 00:00" in shown
    versions = run.invoke(main.app, ["mind", "facts", "versions", str(fact.id), "--agent", "ada"]).output
    assert versions.count("Ann lives in Oslo") == 2
    assert f"m{fact.id.hex[-8:]}" in versions
    timeline = run.invoke(main.app, ["mind", "facts", "timeline", "Ann", "--agent", "ada"]).output
    assert timeline.count("Ann lives in Oslo") == 2 and "Ann likes tea" in timeline
    assert "Oslo" in run.invoke(main.app, ["mind", "entities", "osl", "--agent", "ada", "--type", "place"]).output
    assert (
        "There are more than 1." in run.invoke(main.app, ["mind", "entities", "--agent", "ada", "--limit", "1"]).output
    )
