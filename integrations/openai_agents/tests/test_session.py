"""RecollectSession against SQLiteSession, operation by operation, and in runs with a scripted model."""

from __future__ import annotations

import asyncio
import json
import os
from uuid import uuid4

import pytest
from agents import Agent, Runner, SQLiteSession, function_tool
from agents.memory import Session, SessionSettings
from agents.testing import ScriptedModel, assistant_message, function_call
from hypothesis import given
from hypothesis import strategies as st
from recollect_openai_agents import RecollectSession, memory_tools

from recollect.client import Client
from recollect.models import Cue, NewMemory, NewMessage, Role

ITEMS = [
    {"role": "user", "content": "I prefer green tea."},
    {"type": "message", "role": "developer", "content": "Be brief."},
    {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "Noted: 绿茶 🍵", "annotations": [], "logprobs": [1e-7, -0.0]},
            {"type": "refusal", "refusal": "No more."},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 30_000, "detail": "auto"},
            {"type": "input_file", "file_id": "f-1"},
        ],
    },
    {"role": "user", "content": ""},
    {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "x" * 20_000},
    {"type": "reasoning", "id": "r2", "summary": [{"type": "summary_text", "text": "Thinking of tea."}]},
    {"type": "function_call", "call_id": "c1", "name": "brew", "arguments": '{"tea":"green"}', "id": "f1"},
    {"type": "function_call", "call_id": "c2", "name": "brew\n" + "w" * 300, "arguments": json.dumps(["é"] * 9_000)},
    {"type": "function_call_output", "call_id": "c1", "output": "brewed \x00 and \ud800 steeped"},
    {"type": "function_call_output", "call_id": "c2", "output": '"leaf"\n' * 60_000},
    {"type": "function_call_output", "call_id": "c3", "output": [{"type": "input_text", "text": "茶" * 90_000}]},
    {"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search", "query": "sencha"}},
    {"type": "computer_call_output", "call_id": "c4", "output": {"type": "computer_screenshot", "file_id": "s1"}},
    {
        "type": "mcp_call",
        "id": "p1",
        "server_label": "s",
        "name": "t",
        "arguments": "{}",
        "output": "ok",
        "error": None,
    },
    {"type": "item_reference", "id": "m1"},
    {"type": "compaction", "encrypted_content": "abc", "nested": {"a": [{"b": {"c": [[[[[[[1]]]]]]]}}]}},
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TYPES = ("message", "reasoning", "function_call", "function_call_output", "shell_call_output", "x")
LOOSE = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES)},
    optional={
        "role": st.sampled_from(("user", "assistant", "system", "developer")),
        "content": st.text() | st.lists(st.fixed_dictionaries({"type": st.just("input_text"), "text": st.text()})),
        "output": st.text() | JSON,
        "call_id": st.text(max_size=300),
        "name": st.text(max_size=9),
        "arguments": st.text(),
        "other": JSON,
    },
)
OPERATIONS = st.lists(
    st.tuples(st.just("add"), st.lists(st.sampled_from(ITEMS) | LOOSE, max_size=4))
    | st.tuples(st.just("get"), st.none() | st.integers(-1, 9))
    | st.tuples(st.sampled_from(("pop", "pop", "clear")), st.none()),
    max_size=8,
)


async def apply(session, name: str, argument):
    match name:
        case "add":
            return await session.add_items(argument)
        case "get":
            return await session.get_items(argument)
        case "pop":
            return await session.pop_item()
        case _:
            return await session.clear_session()


@given(operations=OPERATIONS)
def test_the_same_operations_give_the_same_items(operations) -> None:
    if "RECOLLECT_URL" not in os.environ:
        pytest.skip("RECOLLECT_URL names no server")

    async def compare() -> None:
        async with Client(os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_KEY"], timeout_seconds=60) as client:
            ours = RecollectSession(f"s-{uuid4().hex}", await client.mind("agents", "oracle"))
            theirs = SQLiteSession("s")
            for name, argument in [*operations, ("get", None)]:
                expected = json.dumps(await apply(theirs, name, argument))
                assert json.dumps(await apply(ours, name, argument)) == expected
            theirs.close()

    asyncio.run(compare())


async def test_every_type_of_item_comes_back_as_it_was(mind) -> None:
    session = RecollectSession("all", mind)
    assert isinstance(session, Session)
    await session.add_items(ITEMS)
    assert json.dumps(await session.get_items()) == json.dumps(ITEMS)
    assert await session.get_items(3) == ITEMS[-3:]
    for item in reversed(ITEMS):
        assert await session.pop_item() == item
    assert await session.pop_item() is None
    assert await session.get_items() == []


async def test_what_was_said_is_recalled_and_shown_in_a_prompt(mind) -> None:
    session = RecollectSession("tea", mind)
    output = {"type": "function_call_output", "call_id": "c1", "output": "The shop closes at six. " * 1_500}
    await session.add_items([ITEMS[0], ITEMS[7], output, ITEMS[2]])
    found = await mind.recall("Which tea is preferred?", limit=1)
    assert found.hits[0].memory.content == "I prefer green tea."
    prompt = (await session.conversation.history(100_000)).prompt
    assert prompt[0] == {"role": "user", "content": "I prefer green tea."}
    assert prompt[1]["tool_calls"][0]["function"] == {"name": "brew", "arguments": '{"tea":"green"}'}
    assert prompt[2] == {"role": "tool", "content": output["output"], "tool_call_id": "c1"}
    assert prompt[3] == {"role": "assistant", "content": "Noted: 绿茶 🍵\nNo more."}
    assert "openai_item" not in json.dumps(prompt)


async def test_a_long_thread_is_read_to_its_beginning(mind, monkeypatch) -> None:
    monkeypatch.setattr("recollect_openai_agents.session.PAGE_TOKENS", 300)
    monkeypatch.setattr("recollect_openai_agents.session.MAX_MESSAGES", 40)
    items = [{"role": ("user", "assistant")[n % 2], "content": f"word {n} " * 10} for n in range(101)]
    session = RecollectSession("long", mind)
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(60) == items[-60:]


async def test_a_limit_is_taken_from_the_settings(mind) -> None:
    session = RecollectSession("limited", mind, SessionSettings(limit=2))
    await session.add_items(ITEMS[:3])
    assert await session.get_items() == ITEMS[1:3]
    assert await session.get_items(1) == ITEMS[2:3]


async def test_clearing_forgets_what_was_said(mind) -> None:
    session = RecollectSession("cleared", mind)
    await session.clear_session()
    await session.add_items(ITEMS[:1])
    await session.clear_session()
    assert (await mind.recall("tea")).hits == ()
    await session.add_items(ITEMS[1:2])
    assert await session.get_items() == ITEMS[1:2]


async def test_any_text_can_name_a_session(mind) -> None:
    names = ["plain-1", "a/b", "with space", "..", "用户", "x" * 200, "\ud800", ""]
    for number, name in enumerate(names):
        await RecollectSession(name, mind).add_items([{"role": "user", "content": str(number)}])
    for number, name in enumerate(names):
        assert await RecollectSession(name, mind).get_items() == [{"role": "user", "content": str(number)}]


async def test_a_conversation_of_others_is_gone_on_with(mind) -> None:
    session = RecollectSession("joined", mind)
    await session.conversation.append(
        ["Hello.", NewMessage(Role.ASSISTANT, "Hi."), NewMessage(Role.TOOL, "12 degrees"), NewMessage(Role.SYSTEM, "S")]
    )
    said = [("user", "Hello."), ("assistant", "Hi."), ("assistant", "12 degrees"), ("system", "S")]
    assert await session.get_items() == [{"role": role, "content": content} for role, content in said]


async def test_scopes_and_sessions_do_not_mix(client, mind) -> None:
    other = await client.mind("agents", f"o-{uuid4().hex}")
    sessions = [RecollectSession("same", mind), RecollectSession("second", mind), RecollectSession("same", other)]
    await asyncio.gather(*(s.add_items([{"role": "user", "content": str(n)}]) for n, s in enumerate(sessions)))
    for number, session in enumerate(sessions):
        assert await session.get_items() == [{"role": "user", "content": str(number)}]


async def test_two_writers_lose_nothing_and_two_takers_take_nothing_twice(mind) -> None:
    one, two = RecollectSession("shared", mind), RecollectSession("shared", mind)
    pairs = [[{"role": "user", "content": f"{n}?"}, {"role": "assistant", "content": f"{n}!"}] for n in range(10)]
    await asyncio.gather(*((one, two)[n % 2].add_items(pair) for n, pair in enumerate(pairs)))
    items = await one.get_items()
    assert sorted(map(str, items)) == sorted(str(item) for pair in pairs for item in pair)
    assert all(items[n + 1]["content"] == items[n]["content"].replace("?", "!") for n in range(0, 20, 2))
    popped = await asyncio.gather(*((one, two)[n % 2].pop_item() for n in range(12)))
    assert sorted(map(str, popped)) == sorted(map(str, items[8:]))
    assert await two.get_items() == items[:8]


@function_tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"Rain in {city}. " * 2_000


async def test_a_run_grows_the_history_and_the_next_run_sees_it(mind) -> None:
    model = ScriptedModel(
        [
            [function_call("weather", {"city": "Rome"}, call_id="call-1")],
            [assistant_message("It rains in Rome.")],
            [assistant_message("As I said: rain.")],
        ]
    )
    agent = Agent(name="Ada", model=model, tools=[weather])
    session = RecollectSession("run", mind)
    first = await Runner.run(agent, "How is the weather in Rome?", session=session)
    assert first.final_output == "It rains in Rome."
    items = await session.get_items()
    assert [item.get("type", "user") for item in items] == ["user", "function_call", "function_call_output", "message"]
    assert len(items[2]["output"]) > 16_384
    # Another session object, as in another process.
    await Runner.run(agent, "And now?", session=RecollectSession("run", mind))
    seen = model.calls[-1].input
    assert json.dumps(seen[:4]) == json.dumps(items)
    assert seen[4]["content"] == "And now?"
    assert len(await session.get_items()) == 6


async def test_an_agent_remembers_and_recalls_by_tools(mind) -> None:
    model = ScriptedModel(
        [
            [function_call("remember", {"text": "Li is allergic to peanuts."}, call_id="t1")],
            [assistant_message("I will keep that in mind.")],
            [function_call("recall", {"cue": "Which allergies are there?"}, call_id="t2")],
            [assistant_message("No peanuts.")],
        ]
    )
    agent = Agent(name="Ada", model=model, tools=memory_tools(mind))
    await Runner.run(agent, "I can not eat peanuts.")
    await Runner.run(agent, "What should I avoid?")
    answer = model.calls[-1].input[-1]["output"]
    assert "allergic to peanuts" in answer


async def test_a_recall_by_a_tool_is_restricted_as_the_caller_says(mind) -> None:
    await mind.remember(NewMemory("Li likes tea.", importance=9))
    await mind.remember(NewMemory("Li likes cake.", importance=2))
    model = ScriptedModel(
        [[function_call("recall", {"cue": "What does Li like?"}, call_id="t1")], [assistant_message("Tea.")]]
    )
    agent = Agent(name="Ada", model=model, tools=memory_tools(mind, usual=Cue(min_importance=8)))
    await Runner.run(agent, "What do I like?")
    answer = model.calls[-1].input[-1]["output"]
    assert "tea" in answer and "cake" not in answer
