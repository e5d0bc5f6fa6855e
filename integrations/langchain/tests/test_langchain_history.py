"""A chat history keeps each message once, with its branches, and gives it back as LangChain wrote it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, TypedDict

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from recollect_langchain import RecollectChatMessageHistory

from recollect.errors import ConflictError


@pytest.fixture
def history(connection):
    return RecollectChatMessageHistory(connection, "talk")


def said(history):
    return [(message.type, message.content) for message in history.messages]


def turn(number):
    return [HumanMessage(f"question {number}", id=f"h{number}"), AIMessage(f"answer {number}", id=f"a{number}")]


def test_what_nobody_began_is_empty(history):
    assert history.messages == []
    history.clear()


def test_messages_come_back_with_their_ids(history):
    tea = {"name": "weigh", "args": {"grams": 5, "of": "绿茶"}, "id": "call-1", "type": "tool_call"}
    messages = [
        SystemMessage("be brief", id="s"),
        HumanMessage("how much tea?", id="h", name="li"),
        AIMessage("let me see", id="a", tool_calls=[tea]),
        ToolMessage("five grams", id="t", tool_call_id="call-1", name="weigh"),
        AIMessage([{"type": "text", "text": "five "}, {"type": "text", "text": "grams"}], id="b"),
    ]
    history.add_messages(messages)
    read = history.messages
    assert [message.id for message in read] == ["s", "h", "a", "t", "b"]
    assert [message.type for message in read] == ["system", "human", "ai", "tool", "ai"]
    assert [message.text for message in read] == ["be brief", "how much tea?", "let me see", "five grams", "five grams"]
    assert read[2].tool_calls == [tea]
    assert read[3].tool_call_id == "call-1"


def test_the_same_messages_again_are_kept_once(history):
    for count in (1, 2, 2, 1, 3):
        history.add_messages([message for number in range(count) for message in turn(number)])
    assert [message.id for message in history.messages] == ["h0", "a0", "h1", "a1", "h2", "a2"]


def test_messages_without_ids_are_kept_as_often_as_they_are_said(history):
    history.add_user_message("again")
    history.add_user_message("again")
    assert said(history) == [("human", "again"), ("human", "again")]


def test_a_removal_is_no_message(history):
    history.add_messages([HumanMessage("hello", id="h"), RemoveMessage(id="x")])
    assert said(history) == [("human", "hello")]


def test_streamed_messages_are_kept(history):
    asked = {"name": "weigh", "args": '{"grams": 5}', "id": "call-1", "index": 0}
    history.add_messages([HumanMessage("how much?", id="h"), AIMessageChunk("five ", id="a") + AIMessageChunk("grams")])
    history.add_messages([AIMessageChunk("", id="b", tool_call_chunks=[asked])])
    assert [(message.id, message.type) for message in history.messages] == [("h", "human"), ("a", "ai"), ("b", "ai")]
    assert history.messages[1].text == "five grams"
    assert history.messages[2].tool_calls[0]["args"] == {"grams": 5}
    history.add_messages([AIMessageChunk("five grams", id="a")])
    assert len(history.messages) == 3


def test_messages_with_roles_of_their_own_are_kept(history):
    roles = ["system", "developer", "user", "human", "assistant", "ai"]
    history.add_messages([ChatMessage(role, role=role) for role in roles])
    history.add_messages([FunctionMessage("five", name="weigh")])
    kept = ["system", "system", "human", "human", "ai", "ai", "tool"]
    assert said(history) == list(zip(kept, [*roles, "five"], strict=True))


class Foreign(BaseMessage):
    """A message of nobody's type."""

    type: str = "foreign"


@pytest.mark.parametrize("message", [ChatMessage("secret", role="judge"), Foreign("secret")])
def test_messages_that_cannot_be_kept_are_refused(history, message):
    with pytest.raises(ValueError, match="types and roles that are kept: human, ai") as refused:
        history.add_messages([HumanMessage("hello"), message])
    assert "secret" not in str(refused.value)
    assert history.messages == []


def test_what_is_no_text_is_named(history):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    sound = {"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"}
    history.add_messages(
        [
            HumanMessage([picture], id="h1"),
            HumanMessage([{"type": "text", "text": " "}, picture, sound], id="h2"),
            HumanMessage([{"type": "text", "text": "what is it?"}, picture], id="h3"),
            AIMessage("", id="a", tool_calls=[{"name": "draw", "args": {}, "id": "call-1"}]),
            ToolMessage([picture], id="t", tool_call_id="call-1"),
            HumanMessage([{"type": "of nobody"}], id="h4"),
        ]
    )
    texts = ["[image]", "[image]\n[audio]", "what is it?", "", "[image]", "[non_standard]"]
    assert [message.text for message in history.messages] == texts


def test_another_answer_is_a_branch(history, connection):
    history.add_messages([*turn(1), *turn(2)])
    history.add_messages([*turn(1), HumanMessage("question 2", id="h2"), AIMessage("another answer", id="other")])
    assert [message.id for message in history.messages] == ["h1", "a1", "h2", "other"]
    assert len(connection.mind.conversation("talk").get().threads) == 2


def test_an_older_branch_is_gone_on_with(history, connection):
    history.add_messages([*turn(1), *turn(2)])
    history.add_messages([*turn(1), *turn(3)])
    history.add_messages([*turn(1), *turn(2), *turn(4)])
    assert [message.id for message in history.messages] == ["h1", "a1", "h2", "a2", "h4", "a4"]
    assert len(connection.mind.conversation("talk").get().threads) == 2


def test_a_branch_may_begin_far_back(history, connection):
    long = [message for number in range(12) for message in (*turn(number), AIMessage("word " * 300, id=f"l{number}"))]
    history.add_messages(long)
    history.add_messages([*long[:3], *turn(99)])
    assert [message.id for message in history.messages] == ["h0", "a0", "l0", "h99", "a99"]
    assert connection.mind.conversation("talk").get().message_count == 38


def test_a_deleted_conversation_says_what_to_do(history, connection):
    history.add_messages(turn(1))
    connection.mind.conversation("talk").delete()
    assert history.messages == []
    with pytest.raises(ConflictError, match="restore"):
        history.add_messages(turn(2))


def test_two_at_once_keep_one(history):
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(history.add_messages, [turn(1)] * 4))
    assert [message.id for message in history.messages] == ["h1", "a1"]


def test_clearing_erases(history, connection):
    history.add_messages(turn(1))
    assert connection.mind.recall("question 1").hits
    history.clear()
    assert history.messages == []
    assert not connection.mind.recall("question 1").hits
    history.add_messages(turn(1))
    assert len(history.messages) == 2


def test_every_event_loop_can_use_it(history):
    async def add_turn(number):
        await history.aadd_messages(turn(number))
        return len(await history.aget_messages())

    assert [asyncio.run(add_turn(number)) for number in range(3)] == [2, 4, 6]
    asyncio.run(history.aclear())
    assert history.messages == []


def test_another_tenant_hears_nothing(history, open_connection):
    history.add_messages(turn(1))
    assert RecollectChatMessageHistory(open_connection("RECOLLECT_OTHER_KEY"), "talk").messages == []


def test_a_runnable_with_history_remembers(connection):
    heard = []

    def answer(messages):
        heard.append(len(messages))
        return AIMessage("yes")

    model = RunnableWithMessageHistory(
        RunnableLambda(answer), lambda session_id: RecollectChatMessageHistory(connection, session_id)
    )
    for _ in range(3):
        model.invoke([HumanMessage("do you?")], {"configurable": {"session_id": "s"}})
    assert heard == [1, 3, 5]


def test_a_streaming_runnable_with_history_remembers(connection):
    model = GenericFakeChatModel(messages=iter([AIMessage("green tea")]))
    conversation = RunnableWithMessageHistory(
        model, lambda session_id: RecollectChatMessageHistory(connection, session_id)
    )
    list(conversation.stream([HumanMessage("what?")], {"configurable": {"session_id": "s"}}))
    assert said(RecollectChatMessageHistory(connection, "s")) == [("human", "what?"), ("ai", "green tea")]


class State(TypedDict):
    """Nothing but messages."""

    messages: Annotated[list[BaseMessage], add_messages]


def build(history, crash):
    """Build a graph that answers, remembers the turn, and then may fail."""

    def answer(state):
        return {"messages": [AIMessage(f"heard {len(state['messages'])}")]}

    def remember(state):
        history.add_messages(state["messages"])

    def fail(_):
        if crash.pop("now", False):
            raise RuntimeError("crash")

    graph = StateGraph(State)
    for name, node in (("answer", answer), ("remember", remember), ("fail", fail)):
        graph.add_node(name, node)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", "remember")
    graph.add_edge("remember", "fail")
    graph.add_edge("fail", END)
    return graph.compile(checkpointer=InMemorySaver())


def test_replaying_a_graph_stores_nothing_twice(history, connection):
    crash = {}
    graph, thread = build(history, crash), {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [HumanMessage("one")]}, thread)
    crash["now"] = True
    with pytest.raises(RuntimeError, match="crash"):
        graph.invoke({"messages": [HumanMessage("two")]}, thread)
    graph.invoke(None, thread)
    before = [state.config for state in graph.get_state_history(thread) if state.next == ("remember",)]
    for config in before:
        graph.invoke(None, config)
    kept = [("human", "one"), ("ai", "heard 1"), ("human", "two"), ("ai", "heard 3")]
    assert said(history) == kept
    assert connection.mind.conversation("talk").get().message_count == 4


def test_a_regenerated_answer_is_a_branch_of_the_same_question(history, connection):
    graph, thread = build(history, {}), {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [HumanMessage("one")]}, thread)
    [asked] = [state.config for state in graph.get_state_history(thread) if state.next == ("answer",)]
    graph.invoke(None, asked)
    assert said(history) == [("human", "one"), ("ai", "heard 1")]
    assert len(connection.mind.conversation("talk").get().threads) == 2
    assert connection.mind.conversation("talk").get().message_count == 3
