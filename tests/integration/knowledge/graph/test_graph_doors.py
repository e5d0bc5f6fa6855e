"""The graph over HTTP, through the SDK and its blocking twin, and on the command line: the same answers everywhere."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from uuid import uuid4
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.doors.cli.main import app
from recollect.doors.http.app import create_app
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import GraphFormat, NewFact
from recollect.models.memories import Role
from recollect.models.service import Right
from support.service.serving import serving

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
SCOPE = {"agent": "ada", "user": "li"}
MARKUP = "{http://graphml.graphdrawing.org/xmlns}"


@pytest.fixture
async def known(mind):
    """What a caller stated: Ada works at Acme, which lies in Berlin, where Bob lives."""
    stated = await mind.knowledge.add(
        [
            NewFact("Ada", "works at", "Acme", valid_at=LONG_AGO),
            NewFact("Acme", "lies in", "Berlin", valid_at=LONG_AGO),
            NewFact("Bob", "lives in", "Berlin", valid_at=LONG_AGO),
        ]
    )
    page = await mind.knowledge.entities()
    assert len(stated) == 3
    return {entity.name: entity.id for entity in page.entities}


async def test_stated_facts_are_followed(mind, known):
    found = await mind.knowledge.neighbors(known["Ada"], 3)
    assert {each.entity.name: each.depth for each in found.neighbors} == {"Acme": 1, "Berlin": 2, "Bob": 3}
    [path] = await mind.knowledge.paths(known["Ada"], known["Bob"])
    assert [entity.name for entity in path.entities] == ["Ada", "Acme", "Berlin", "Bob"]


async def test_a_correction_leaves_the_graph_and_stays_on_the_timeline(mind, known):
    [job] = (await mind.knowledge.facts(known["Ada"], at="any")).facts
    moved = NewFact("Ada", "works at", "Zeta", valid_at=datetime(2025, 1, 1, tzinfo=UTC), replaces=(job.id,))
    await mind.knowledge.add(moved)
    found = await mind.knowledge.neighbors(known["Ada"])
    assert [each.entity.name for each in found.neighbors] == ["Zeta"]
    then = await mind.knowledge.neighbors(known["Ada"], at=datetime(2024, 1, 1, tzinfo=UTC))
    assert [each.entity.name for each in then.neighbors] == ["Acme"]
    versions = (await mind.knowledge.facts(known["Ada"], at="any")).facts
    assert [(each.object_name, each.version) for each in versions] == [("Acme", 1), ("Acme", 2), ("Zeta", 1)]


async def test_every_way_in_gives_the_same_answer(recollect, mind, known):
    async with serving(create_app(recollect=recollect)) as url:
        _, secret = await new_key(recollect)
        async with Client(url, secret) as client:
            there = (await client.mind("ada", "li")).knowledge
            ends = known["Ada"], known["Bob"]
            assert await there.neighbors(ends[0], 2) == await mind.knowledge.neighbors(ends[0], 2)
            assert await there.paths(*ends) == await mind.knowledge.paths(*ends)
            assert await there.facts(ends[0], at="any") == await mind.knowledge.facts(ends[0], at="any")
            written = "".join([piece async for piece in there.export()])
            assert written == "".join([piece async for piece in mind.knowledge.export()])
            with pytest.raises(NotFoundError):
                await there.neighbors(uuid4())
            with pytest.raises(InvalidInputError):
                await there.paths(ends[0], ends[0])
            with pytest.raises(NotFoundError):
                [piece async for piece in client.stream("/v1/nowhere", {})]

        def block():
            with sync.using(Client(url, secret)) as opened:
                knowledge = opened.mind("ada", "li").knowledge
                return knowledge.neighbors(known["Ada"], 2), "".join(knowledge.export(GraphFormat.GRAPHML))

        blocked, exported = await asyncio.to_thread(block)
    assert (blocked, exported) == (await mind.knowledge.neighbors(known["Ada"], 2), written)


async def test_http_speaks_of_the_graph(http, known):
    ada, bob = known["Ada"], known["Bob"]
    answer = (await http.get(f"/v1/entities/{ada}/neighbors", params=SCOPE | {"hops": 2})).json()
    assert [(each["entity"]["name"], each["depth"]) for each in answer["neighbors"]] == [("Acme", 1), ("Berlin", 2)]
    assert answer["whole"] is True
    assert answer["relations"][0]["text"]
    answer = (await http.get("/v1/graph/paths", params=SCOPE | {"start": str(ada), "end": str(bob)})).json()
    assert [len(path["relations"]) for path in answer["paths"]] == [3]
    answer = (await http.get("/v1/facts", params=SCOPE | {"about": str(ada), "at": "any"})).json()
    assert (len(answer["facts"]), answer["next_cursor"]) == (1, None)
    for wrong in ({"hops": 4}, {"hops": 0}, {"beam": 501}):
        assert (await http.get(f"/v1/entities/{ada}/neighbors", params=SCOPE | wrong)).status_code == 422
    assert (await http.get(f"/v1/entities/{uuid4()}/neighbors", params=SCOPE)).status_code == 404


async def test_an_export_is_xml_or_json_and_can_be_refused(recollect, http, known):
    answer = await http.get("/v1/graph", params=SCOPE)
    assert answer.headers["content-type"].startswith("application/xml")
    edges = list(ElementTree.fromstring(answer.content).iter(f"{MARKUP}edge"))
    assert len(edges) == 3
    answer = await http.get("/v1/graph", params=SCOPE | {"format": "cypher"})
    assert answer.headers["content-type"].startswith("application/json")
    assert [len(each["parameters"]) for each in answer.json()["statements"]] == [1, 1]
    before = await http.get("/v1/graph", params=SCOPE | {"as_of": "2020-01-01T00:00:00Z", "format": "cypher"})
    assert before.json() == {"statements": []}
    assert (await http.get("/v1/graph", params={"agent": "nobody"})).status_code == 200
    assert (await http.get("/v1/graph", params=SCOPE | {"format": "dot"})).status_code == 422
    _, secret = await new_key(recollect, rights=(Right.WRITE,))
    async with http_client(recollect, secret) as writer:
        assert (await writer.get("/v1/graph", params=SCOPE)).status_code == 403


async def test_an_export_goes_page_by_page_and_leaves_out_what_is_out_of_sight(mind, known, monkeypatch):
    monkeypatch.setattr("recollect.store.knowledge.graph.PAGE", 2)
    [said] = await mind.conversation("talk").append(NewMessage(Role.USER, "Bob knows a </secret>."))
    await mind.knowledge.add(NewFact("Bob", "knows", "a </secret>", evidence=(said.id,)))

    async def export():
        pieces = [piece async for piece in mind.knowledge.export(GraphFormat.GRAPHML)]
        graph = ElementTree.fromstring("".join(pieces)).find(f"{MARKUP}graph")
        return len(pieces), [each.tag.removeprefix(MARKUP) for each in graph], "".join(pieces)

    pieces, order, text = await export()
    assert (pieces, order.count("node"), order.count("edge")) == (4, 5, 4)
    assert "a &lt;/secret&gt;" in text
    await mind.conversation("talk").delete()
    pieces, order, text = await export()
    assert (order.count("node"), order.count("edge"), "secret" in text) == (4, 3, False)


def test_the_command_line_draws_and_writes(addresses, embedder, tmp_path, monkeypatch):
    monkeypatch.setenv("RECOLLECT_DATABASE_URL", addresses.service)
    monkeypatch.setenv("RECOLLECT_OWNER_DATABASE_URL", addresses.owner)
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "fake")
    monkeypatch.setenv("COLUMNS", "160")
    with sync.open() as opened:
        knowledge = opened.mind("ada", "li").knowledge
        knowledge.add([NewFact("Ada", "works at", "[b]Acme"), NewFact("Bob", "owns", "[b]Acme")])

    def run(*words):
        return CliRunner().invoke(app, ["mind", "graph", *words, "--agent", "ada", "--user", "li"])

    shown = run("neighbors", "ada", "--hops", "2").stdout
    assert "works at → [b]Acme" in shown
    assert "← owns Bob" in shown
    assert "Ada - [b]Acme - Bob" in run("paths", "Ada", "Bob").stdout
    file = tmp_path / "facts.json"
    assert "written to" in run("export", str(file), "--format", "cypher").stdout
    assert len(json.loads(file.read_text(encoding="utf-8"))["statements"]) == 2
    assert isinstance(run("neighbors", "Nobody").exception, NotFoundError)
