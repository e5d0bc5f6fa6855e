"""The MCP door in the process itself: tools, resources and the prompt, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import json
from typing import get_args
from uuid import UUID, uuid4

import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.shared.exceptions import MCPError

from recollect.doors.mcp.arguments import KindName, choose_names, parse_list
from recollect.doors.mcp.server import build_server
from recollect.errors import ForbiddenError, UnavailableError
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import NewFact
from recollect.models.memories import Kind, NewMemory, Role, Triple
from recollect.models.service import KeyBinding

TOOLS = ["remember", "recall", "associate", "history", "context", "update_memory", "forget"]
MODES = ["auto", "legacy"]


@pytest.fixture
def server(recollect):
    async def open_mind(_ctx, agent, user):
        return await recollect.mind(*choose_names(KeyBinding("ada", "li"), agent, user))

    return build_server(open_mind)


@pytest.fixture(params=MODES)
async def client(request, server):
    """A session in a task of its own: it must be closed where it was opened, and fixtures are not."""
    opened, done = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def hold():
        async with Client(server, mode=request.param) as connected:
            opened.set_result(connected)
            await done.wait()

    holder = asyncio.create_task(hold())
    yield await opened
    done.set()
    await holder


async def call(client, tool, **arguments):
    """Call a tool that must succeed; give its value, which must fit the schema that the tool announces."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content[0].text
    schema = next(each.output_schema for each in (await client.list_tools()).tools if each.name == tool)
    Draft202012Validator(schema).validate(answer.structured_content)
    return answer.structured_content, answer.content[0].text


async def refusal(client, tool, **arguments):
    """Call a tool that must fail; give the text that tells the model what to do."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    assert answer.structured_content is None
    return answer.content[0].text


# Tools.


async def test_every_tool_is_described_plainly(client):
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == TOOLS
    for tool in tools:
        schema, text = tool.input_schema, json.dumps(tool.input_schema)
        Draft202012Validator.check_schema(schema)
        Draft202012Validator.check_schema(tool.output_schema)
        assert "$ref" not in text, "some clients do not follow references"
        assert "anyOf" not in text, "some clients cannot fill in a choice"
        assert list(schema["properties"])[-2:] == ["agent", "user"]
        assert all(field["description"] for field in schema["properties"].values())
        assert tool.description.endswith(".")
    hints = {tool.name: tool.annotations for tool in tools}
    assert [name for name in TOOLS if not hints[name].read_only_hint] == ["remember", "update_memory", "forget"]
    assert [name for name in TOOLS if hints[name].destructive_hint] == ["forget"]
    assert [name for name in TOOLS if not hints[name].idempotent_hint] == ["remember"]


def test_kinds_are_the_models_own():
    assert get_args(KindName) == tuple(Kind)


async def test_what_is_remembered_is_recalled_and_forgotten(client, recollect):
    stored, told = await call(
        client, "remember", content="Li drinks green tea", importance=7, keywords=["tea"], topic="drinks->tea"
    )
    assert stored["id"] in told
    found, lines = await call(client, "recall", text="what does Li drink", limit=3)
    assert [(hit["id"], hit["content"]) for hit in found["hits"]] == [(stored["id"], "Li drinks green tea")]
    shown = lines.splitlines()[2:-1]
    assert (len(shown), stored["id"] in shown[0], found["status"]) == (1, True, "ok")
    gone, _ = await call(client, "forget", ids=[stored["id"]])
    assert gone["forgotten"] == [stored["id"]]
    await (await recollect.mind("ada", "zoe")).remember("Zoe drinks coffee")
    empty, nothing = await call(client, "recall", text="what does Li drink")
    assert "zoe" not in str(empty), "other users than the command's are not named"
    assert (empty["hits"], nothing) == ([], "No memories found: agent ada has no memories for user li.")


async def test_a_call_that_is_named_is_stored_once(client, mind):
    first, _ = await call(client, "remember", content="the key is under the mat", once="note-1")
    again, _ = await call(client, "remember", content="the key is under the mat", once="note-1")
    assert first["id"] == again["id"]
    assert len((await mind.list()).memories) == 1


async def test_a_recall_goes_by_kind_time_and_topic(client, mind):
    told = ((Kind.EVENT, "tea in spring", "drinks"), (Kind.THOUGHT, "tea is calming", "mood"))
    await mind.remember([NewMemory(text, kind, topic=topic) for kind, text, topic in told])
    thoughts, _ = await call(client, "recall", text="tea", kinds=["thought"])
    assert [hit["kind"] for hit in thoughts["hits"]] == ["thought"]
    later, _ = await call(client, "recall", text="tea", since="2020-01-01T00:00:00Z", until="2020-02-01T00:00:00+08:00")
    assert later["status"]
    filed, _ = await call(client, "recall", text="anything", topics='["mood"]')
    assert "tea is calming" in [hit["content"] for hit in filed["hits"]]


async def test_something_perceived_reminds_of_events_and_thoughts(client, mind):
    await mind.remember(NewMemory("Maria drinks coffee", triple=Triple("Maria", "drinks", "coffee")))
    await mind.remember(NewMemory("coffee keeps Maria awake", Kind.THOUGHT, keywords=("coffee",)))
    found, lines = await call(client, "associate", subject="Maria", object="coffee")
    assert [memory["content"] for memory in found["events"]] == ["Maria drinks coffee"]
    assert [memory["content"] for memory in found["thoughts"]] == ["coffee keeps Maria awake"]
    assert lines.count("id ") == 2


async def test_a_conversation_is_read_and_made_a_context_of(client, mind):
    conversation = mind.conversation("tea-time")
    await conversation.append([NewMessage(Role.USER, "I moved to Kyoto"), NewMessage(Role.ASSISTANT, "How nice")])
    await mind.remember("Li likes temples")
    said, text = await call(client, "history", conversation="tea-time", max_tokens=500)
    assert [message["content"] for message in said["messages"]] == ["I moved to Kyoto", "How nice"]
    assert "Kyoto" in text
    assert said["complete"]
    within, _ = await call(client, "context", text="which temples does Li like", conversation="tea-time", budget=2000)
    assert "How nice" in within["text"]
    assert "Li likes temples" in within["text"]
    alone, _ = await call(client, "context", text="which temples does Li like", budget=500)
    assert "Li likes temples" in alone["text"]
    assert len(alone["memory_ids"]) > 0
    assert await refusal(client, "history", conversation="never-held") == "No such conversation in this scope."


@pytest.mark.parametrize(
    ("tool", "arguments", "hint"),
    [
        ("recall", {"text": "x", "limit": 500}, "limit: Input should be less than or equal to 50"),
        ("context", {}, "text: Field required"),
        ("recall", {"text": "x", "kinds": ["dream"]}, "'message', 'event'"),
        ("recall", {"text": "x", "since": "yesterday"}, "since must be written as in 2026-01-31T12:00:00+08:00"),
        ("recall", {"text": "x", "since": "2026-01-01T00:00:00"}, "with the offset"),
        ("recall", {"text": "x", "zone": "Mars/Olympus"}, "zone"),
        ("recall", {"query": "x"}, "`query` is not known here; did you mean `text`?"),
        ("recall", {"text": "x", "top_k": 1}, "`top_k` is not known here; did you mean `limit`?"),
        ("remember", {"text": "x"}, "`text` is not known here; did you mean `content`?"),
        ("history", {"conversation": "x", "zzz": 1}, "known are `conversation`, `max_tokens`, `agent`, `user`"),
        ("remember", {"content": "  "}, "content must not be blank"),
        ("remember", {"content": "x", "importance": 11}, "importance"),
        ("associate", {}, "name at least one of subject, predicate and object"),
        ("history", {"conversation": "a b"}, "conversation"),
        ("forget", {"ids": ["hush-hush"]}, "ids.0"),
        ("forget", {"ids": []}, "ids"),
    ],
)
async def test_arguments_that_cannot_be_accepted_are_explained(client, tool, arguments, hint):
    text = await refusal(client, tool, **arguments)
    assert hint in text
    assert "hush" not in text, "what the caller sent is not repeated"


async def test_lists_may_come_as_text(client):
    stored, _ = await call(client, "remember", content="tea", keywords='["green", "tea"]')
    one, _ = await call(client, "recall", text="tea", kinds="event", limit="5", topics="")
    assert len(one["hits"]) == 1
    gone, _ = await call(client, "forget", ids=stored["id"])
    assert gone["forgotten"] == [stored["id"]]
    assert (parse_list("[1"), parse_list(" "), parse_list(None), parse_list([2])) == (["[1"], [], [], [2])


async def test_an_unknown_tool_is_an_error_of_the_protocol(client):
    with pytest.raises(MCPError, match="the tools are remember, recall"):
        await client.call_tool("hush-hush", {})


async def test_forgetting_what_is_not_there_forgets_nothing(client):
    gone, _ = await call(client, "forget", ids=[str(uuid4())])
    assert gone["forgotten"] == []


# Names.


async def test_other_names_than_the_commands_are_refused_alike(client, recollect):
    await (await recollect.mind("bob", "")).remember("a secret of Bob")
    texts = {
        await refusal(client, "recall", text="secret", **names)
        for names in ({"agent": "bob"}, {"agent": "nobody"}, {"user": "zoe"}, {"agent": "ada", "user": "zoe"})
    }
    assert texts == {"agent and user are fixed on this server: leave them empty"}
    found, _ = await call(client, "recall", text="secret", agent="ada", user="li")
    assert found["hits"] == []


@pytest.mark.parametrize(
    ("bounds", "names", "chosen"),
    [
        ((None, None), ("ada", ""), ("ada", "")),
        (("ada", None), ("", "li"), ("ada", "li")),
        (("ada", ""), ("", ""), ("ada", "")),
        (("ada", "li"), ("", ""), ("ada", "li")),
    ],
)
def test_names_are_filled_in(bounds, names, chosen):
    assert choose_names(KeyBinding(*bounds), *names) == chosen


@pytest.mark.parametrize(
    ("bounds", "names"), [(("ada", ""), ("", "li")), (("ada", None), ("bob", "")), (("ada", "li"), ("", "zoe"))]
)
def test_names_are_kept_within_bounds(bounds, names):
    with pytest.raises(ForbiddenError):
        choose_names(KeyBinding(*bounds), *names)


# Resources and the prompt.


async def test_topics_entities_and_memories_are_resources(client, mind):
    await mind.remember([NewMemory("temples of Kyoto", topic="travel->Japan"), NewMemory("other")])
    await mind.knowledge.add(NewFact("Ann Li", "lives in", "Kyoto"))
    listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
    templates = {each.uri_template for each in (await client.list_resource_templates()).resource_templates}
    assert listed == {"memory://topics", "memory://entities"}
    assert {each.split("{")[0] for each in templates} == {
        "memory://topics/",
        "memory://entities/",
        "memory://memories/",
    }
    tree = await read(client, "memory://topics")
    assert "travel->Japan {memories: 1}" in tree
    topic = json.loads(await read(client, "memory://topics/travel-%3EJapan"))
    assert [memory["content"] for memory in topic["memories"]] == ["temples of Kyoto"]
    entities = json.loads(await read(client, "memory://entities"))["entities"]
    assert [entity["name"] for entity in entities] == ["Ann Li", "Kyoto"]
    for name in ("Ann%20Li", "ann%20li", entities[0]["id"]):
        known = json.loads(await read(client, f"memory://entities/{name}"))
        assert (known["entity"]["name"], [fact["predicate"] for fact in known["facts"]]) == ("Ann Li", ["lives in"])
    memory_id = topic["memories"][0]["id"]
    assert json.loads(await read(client, f"memory://memories/{memory_id}"))["content"] == "temples of Kyoto"


async def read(client, uri):
    [content] = (await client.read_resource(uri)).contents
    return content.text


@pytest.mark.parametrize(
    "uri",
    [
        *("memory://nowhere", "memory://memories", "memory://memories/x", f"memory://memories/{UUID(int=5)}"),
        *(
            "memory://entities/nobody",
            f"memory://entities/{UUID(int=5)}",
            "file:///etc/passwd",
            "memory://topics?agent=bob",
        ),
    ],
)
async def test_what_is_no_resource_is_an_error(client, uri):
    with pytest.raises(MCPError) as refused:
        await client.read_resource(uri)
    assert "passwd" not in refused.value.message


async def test_an_empty_scope_has_empty_resources(client):
    assert await read(client, "memory://topics") == "There are no topics yet.\n"
    assert json.loads(await read(client, "memory://entities"))["entities"] == []


async def test_the_prompt_puts_memories_before_the_question(client, mind):
    [prompt] = (await client.list_prompts()).prompts
    assert (prompt.name, [each.name for each in prompt.arguments if each.required]) == ("with_memory", ["question"])
    bare = await client.get_prompt("with_memory", {"question": "what tea does Li like?"})
    assert bare.messages[0].content.text == "what tea does Li like?"
    await mind.remember("Li likes oolong tea")
    filled = await client.get_prompt("with_memory", {"question": "what tea does Li like?", "budget": "300"})
    text = filled.messages[0].content.text
    assert "Li likes oolong tea" in text
    assert text.endswith("what tea does Li like?")
    for arguments in ({}, {"question": "x", "budget": "many"}, {"question": "x", "user": "zoe"}):
        with pytest.raises(MCPError):
            await client.get_prompt("with_memory", arguments)
    with pytest.raises(MCPError, match="Available: with_memory"):
        await client.get_prompt("hush", {})


# Failures.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (UnavailableError("No answer within 1 seconds; try again."), "try again"),
        (RuntimeError("the vault opens with 4711"), "See the server log"),
    ],
)
async def test_failures_are_told_without_content(mode, problem, told, caplog):
    async def open_mind(_ctx, _agent, _user):
        raise problem

    async with Client(build_server(open_mind), mode=mode) as client:
        text = await refusal(client, "recall", text="the vault")
        with pytest.raises(MCPError) as read_failure:
            await client.read_resource("memory://topics")
    assert told in text
    assert told in read_failure.value.message
    assert "4711" not in text + read_failure.value.message + caplog.text
