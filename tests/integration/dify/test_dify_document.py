"""The document for Dify keeps every rule of its importer, and calls built from it as Dify builds them succeed."""

from __future__ import annotations

import copy
import json

import pytest

from conftest import http_client, new_key
from recollect.doors.dify.document import OFFERED, write_dify_document
from recollect.doors.http.app import create_app
from recollect.models.service import KeyBinding, Right
from recollect.settings import Settings
from support.dify import dify_rules
from support.dify.dify_tools import MissingParameterError, build, read_answer, read_tools

READ_SECONDS = 60
OFFENCES = {
    "check_server": lambda document: document.update(servers=[{"url": "/"}]),
    "check_names": lambda document: first(document).pop("operationId"),
    "check_descriptions": lambda document: first(document).pop("description"),
    "check_references": lambda document: put(
        document, "kind", {"$ref": "#/components/schemas/Kind", "description": "x"}
    ),
    "check_unions": lambda document: put(document, "kinds", {"anyOf": [{"type": "null"}, {"type": "array"}]}),
    "check_blanks": lambda document: put(document, "since", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    "check_types": lambda document: put(document, "anything", {"description": "x"}),
    "check_enums": lambda document: put(document, "kind", {"type": "string", "enum": ["event"], "description": "x"}),
    "check_levels": lambda document: document["paths"]["/dify/v1/recall"].update(parameters=[]),
    "check_headers": lambda document: first(document).update(parameters=[{"in": "header", "name": "Idempotency-Key"}]),
    "check_defaults": lambda document: put(document, "kinds", {"type": "array", "default": None}),
    "check_content": lambda document: first(document)["requestBody"]["content"].update({"text/plain": {"schema": {}}}),
    "check_answers": lambda document: first(document).update(responses={"204": {"description": "gone"}}),
    "check_security": lambda document: document.pop("components"),
}


def first(document):
    return document["paths"]["/dify/v1/memories"]["post"]


def put(document, name, field):
    first(document)["requestBody"]["content"]["application/json"]["schema"]["properties"][name] = field


@pytest.fixture(scope="module")
def whole():
    return create_app(Settings(embedder="fake")).openapi()


@pytest.fixture
def document(whole):
    return write_dify_document(copy.deepcopy(whole), "http://localhost")


@pytest.fixture
def tools(document):
    return read_tools(document)


# The document.


def test_the_document_keeps_every_rule(document):
    assert dify_rules.check(document) == []


def test_the_document_of_the_service_keeps_the_rules_for_all(whole):
    names = {operation["operationId"] for _, operation in dify_rules.operations(whole)}
    assert set(OFFERED) <= names
    # For Prometheus and for prompts: text on purpose. Files are for people, and changes are followed by programs.
    others = {"/metrics", "/v1/topics/text", "/v1/export", "/v1/import", "/v1/changes"}
    whole = {**whole, "paths": {path: item for path, item in whole["paths"].items() if path not in others}}
    assert [problem for rule in dify_rules.FOR_ALL for problem in rule(whole)] == []


@pytest.mark.parametrize("rule", dify_rules.RULES, ids=lambda rule: rule.__name__)
def test_every_rule_notices_its_offence(document, rule):
    assert rule(document) == []
    OFFENCES[rule.__name__](document)
    assert len(rule(document)) == 1


@pytest.mark.parametrize("servers", [[], [{"url": "http://a"}, {"url": "http://b"}], [{"url": "http://a/"}]])
def test_one_server_without_a_slash_at_its_end_is_demanded(document, servers):
    assert dify_rules.check_server({**document, "servers": servers}) != []


def test_a_union_that_dify_ignores_is_noticed(document):
    put(document, "kinds", {"oneOf": [{"type": "string"}], "description": "x"})
    assert len(dify_rules.check_unions(document)) == 1


def test_every_tool_waits_less_long_than_dify():
    assert Settings().request_timeout_seconds < READ_SECONDS


async def test_the_document_is_given_to_anybody_for_any_address(http):
    given = (await http.get("/openapi-dify.json", headers={"Authorization": ""})).json()
    assert given["servers"] == [{"url": "http://localhost"}]
    asked = await http.get("/openapi-dify.json", params={"base_url": "https://memory.example.com/inner/"})
    assert asked.json()["servers"] == [{"url": "https://memory.example.com/inner"}]
    assert dify_rules.check(asked.json()) == []
    assert list(asked.json()["paths"]) == list(given["paths"])


@pytest.mark.parametrize("address", ["/", "memory.example.com", "ftp://x", "https://", "https://x/?a=b", "https://x y"])
async def test_an_address_that_dify_could_not_call_is_refused(http, address):
    answer = await http.get("/openapi-dify.json", params={"base_url": address})
    assert answer.status_code == 422
    assert "base_url" in answer.json()["detail"]


# Calls, as Dify builds them from what was typed.


async def call(http, tools, name, **given):
    return await http.request(**build(tools[name], given))


async def test_what_is_typed_arrives(http, tools):
    told = await call(
        http, tools, "remember", agent="ada", user="li", content="Li 对花生过敏", kind="event", importance="7.5",
        keywords='["花生", "过敏"]', occurred_at="2026-01-31T12:00:00+08:00", metadata='{"source": "form"}',
    )  # fmt: skip
    [receipt] = read_answer(told)["memories"]
    found = read_answer(
        await call(http, tools, "recall", agent="ada", user="li", text="花生", limit="3", kinds='["event"]')
    )
    [hit] = found["hits"]
    assert hit["memory"]["id"] == receipt["id"]
    assert (hit["memory"]["importance"], hit["memory"]["keywords"]) == (7.5, ["花生", "过敏"])
    assert hit["memory"]["metadata"] == {"source": "form"}


async def test_what_was_left_blank_is_left_out(http, tools):
    """A field that was typed into and emptied again is sent by Dify as an empty text, whatever its type."""
    texts = {"agent": "ada", "content": "tea is ready", "conversation": "c-1", "question": "tea?", "text": "tea"}
    texts |= {"subject": "tea", "path": "", "memory_id": "", "answer": "yes"}
    for name in ("remember", "append", "recall", "show_block", "associate", "history", "context", "list_facts"):
        fields = {field: texts.get(field, "") for field in tools[name].parameters}
        # A form does not let a number go that is blank.
        fields = {field: value for field, value in fields.items() if tools[name].parameters[field] != "number"}
        answer = read_answer(await call(http, tools, name, **fields))
        assert answer, name
    assert read_answer(await call(http, tools, "recall", agent="ada", text="tea", limit="", since=""))["hits"]


async def test_what_was_never_touched_is_as_usual(http, tools):
    read_answer(await call(http, tools, "remember", agent="ada", content="tea is ready"))
    read_answer(await call(http, tools, "append", agent="ada", conversation="c-1", question="tea?", answer="yes"))
    assert read_answer(await call(http, tools, "recall", agent="ada", text="tea"))["hits"]
    shown = read_answer(await call(http, tools, "show_block", agent="ada", text="tea", budget="200"))
    assert "tea is ready" in shown["text"]
    assert len(read_answer(await call(http, tools, "history", agent="ada", conversation="c-1"))["messages"]) == 2
    made = read_answer(await call(http, tools, "context", agent="ada", conversation="c-1", text="tea?", budget="500"))
    assert made["messages"][-1]["content"] == "tea?"
    assert read_answer(await call(http, tools, "list_topics", agent="ada"))["topics"] == []
    assert read_answer(await call(http, tools, "list_facts", agent="ada", limit="5"))["facts"] == []


async def test_lists_of_objects_arrive_as_typed_json_and_as_values(http, tools):
    memories = [{"content": "one"}, {"content": "two", "importance": 9}]
    for given in (json.dumps(memories), memories):
        told = read_answer(await call(http, tools, "remember", agent="ada", memories=given))
        assert len(told["memories"]) == 2
    messages = json.dumps([{"role": "user", "content": "hello"}])
    assert read_answer(await call(http, tools, "append", agent="ada", conversation="c", messages=messages))["messages"]
    triples = json.dumps([{"subject": "Maria Lopez"}])
    assert read_answer(await call(http, tools, "associate", agent="ada", triples=triples))["associations"]


async def test_what_is_forgotten_is_named_by_one_id_or_by_several(http, tools):
    told = read_answer(
        await call(http, tools, "remember", agent="ada", memories='[{"content": "a"}, {"content": "b"}]')
    )
    first_id, second_id = (receipt["id"] for receipt in told["memories"])
    gone = read_answer(await call(http, tools, "forget_one", agent="ada", memory_id=first_id))
    assert gone == {"forgotten": [first_id]}
    gone = read_answer(await call(http, tools, "forget", agent="ada", ids=json.dumps([second_id])))
    assert gone == {"forgotten": [second_id]}


async def test_switches_arrive_as_they_stand(http, tools):
    read_answer(await call(http, tools, "remember", agent="ada", content="tea"))
    for touch, accessed in (("false", 0), ("true", 1), (False, 0)):
        found = read_answer(await call(http, tools, "recall", agent="ada", text="tea", touch=touch))
        assert len(found["accessed"]) == accessed


async def test_a_bound_key_needs_no_agent(recollect, tools):
    caller = await recollect.operator.act_for("default")
    _, secret = await recollect.create_key(caller, "dify", [Right.READ, Right.WRITE], 50, KeyBinding("ada", "li"))
    async with http_client(recollect, secret) as http:
        read_answer(await call(http, tools, "remember", content="tea"))
        assert read_answer(await call(http, tools, "recall", text="tea"))["hits"]
        assert "topics" in read_answer(await call(http, tools, "list_topics"))
        assert (await call(http, tools, "recall", agent="bob", text="tea")).status_code == 403
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        answer = await call(http, tools, "recall", text="tea")
        assert answer.status_code == 422
        assert "agent" in answer.text


async def test_an_error_is_a_short_text_that_says_what_to_do(http, tools):
    answer = await call(http, tools, "remember", agent="ada", content="x", importance="99")
    assert answer.status_code == 422
    assert "importance" in answer.text
    assert len(answer.text) < 600
    answer = await call(http, tools, "remember", agent="ada")
    assert "send `memories` or `content`." in answer.text
    with pytest.raises(MissingParameterError):
        await call(http, tools, "append", agent="ada", question="x")
    blank = build(tools["recall"], {"agent": "ada"}) | {"content": "not json"}
    assert (await http.request(**blank)).status_code in {400, 422}
    assert (await http.request(**blank | {"content": "[1]"})).status_code == 422


async def test_without_a_key_nothing_is_read(recollect, tools):
    async with http_client(recollect, "") as http:
        answer = await call(http, tools, "recall", agent="ada", text="tea")
        assert answer.status_code == 401


# The bodies that became flat.


async def test_one_memory_needs_no_list(http):
    answer = await http.post("/v1/memories", json={"agent": "ada", "content": "tea", "kind": "thought"})
    assert answer.status_code == 201
    memory_id = answer.json()["memories"][0]["id"]
    read = (await http.get(f"/v1/memories/{memory_id}", params={"agent": "ada"})).json()
    assert (read["kind"], read["content"]) == ("thought", "tea")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"content": "x", "memories": [{"content": "y"}]},
        {"importance": 9, "memories": [{"content": "y"}]},
        {"memories": [{"content": ""}]},
        {"content": ""},
    ],
)
async def test_a_memory_beside_a_list_is_refused(http, fields):
    assert (await http.post("/v1/memories", json={"agent": "ada", **fields})).status_code == 422


async def test_one_triple_needs_no_list(http):
    body = {"agent": "ada", "content": "Maria drinks", "subject": "Maria", "predicate": "drinks", "object": "tea"}
    await http.post("/v1/memories", json=body)
    found = await http.post("/v1/associate", json={"agent": "ada", "subject": "Maria"})
    assert len(found.json()["associations"][0]["events"]) == 1
    for fields in ({}, {"subject": "x", "triples": [{"subject": "x"}]}):
        assert (await http.post("/v1/associate", json={"agent": "ada", **fields})).status_code == 422
