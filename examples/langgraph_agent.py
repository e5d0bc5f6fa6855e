"""An agent in LangGraph that knows on Friday what it was told on Monday, in another thread.

Start a server with `recollect up`, and set RECOLLECT_URL and RECOLLECT_KEY as it says.

Run: uv run --project integrations/langgraph python examples/langgraph_agent.py
"""

from __future__ import annotations

import os
from typing import Annotated, Any, TypedDict
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from recollect_langchain import Connection, RecollectChatMessageHistory, RecollectRetriever
from recollect_langgraph import RecollectStore
from recollect_langgraph_checkpoint import RecollectSaver


class Scripted(BaseChatModel):
    """A chat model by rule: it offers peanuts, unless its prompt says better."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_: object, **__: object) -> ChatResult:
        asked, known = messages[-1].text, messages[0].text
        if "eat" not in asked:
            said = "I will keep that in mind."
        elif "allergic" in known:
            said = "Dumplings, without the peanut sauce."
        else:
            said = "Dumplings with peanut sauce!"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])


class State(TypedDict):
    """What goes through the graph."""

    messages: Annotated[list[BaseMessage], add_messages]
    known: list[str]


def build(connection: Connection) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Recall, answer, remember: with Recollect as the store, the checkpointer and the memory."""
    model, retriever = Scripted(), RecollectRetriever(connection=connection, k=3)

    def recall(state: State) -> dict[str, Any]:
        return {"known": [found.page_content for found in retriever.invoke(state["messages"][-1].text)]}

    def answer(state: State) -> dict[str, Any]:
        known = SystemMessage("You know:\n" + "\n".join(state["known"]))
        return {"messages": [model.invoke([known, *state["messages"]])]}

    def remember(state: State, config: RunnableConfig, runtime: Runtime[Any]) -> None:
        thread = config["configurable"]["thread_id"]
        RecollectChatMessageHistory(connection, thread).add_messages(state["messages"])
        if runtime.store:
            turns = len(state["messages"]) // 2
            runtime.store.put(("threads",), thread, {"turns": turns, "last": state["messages"][-1].text})

    graph = StateGraph(State)
    graph.add_node("recall", recall)
    graph.add_node("answer", answer)
    graph.add_node("remember", remember)
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "answer")
    graph.add_edge("answer", "remember")
    graph.add_edge("remember", END)
    return graph.compile(checkpointer=RecollectSaver(connection), store=RecollectStore(connection))


def say(graph: CompiledStateGraph[Any, Any, Any, Any], thread: str, text: str) -> None:
    """Say something in a thread, and show what came of it."""
    state = graph.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}})
    print(f"{thread:<7} li: {text}")
    for known in state["known"]:
        print(f"           remembered: {known}")
    print(f"        guide: {state['messages'][-1].text}")


def main() -> None:
    """Converse in two threads, then play one of them again from its checkpoints."""
    connection = Connection(os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_KEY"], "guide", f"li-{uuid4().hex}")
    graph = build(connection)
    say(graph, "monday", "What could I eat for dinner?")
    say(graph, "monday", "I am allergic to peanuts.")
    # Another process, another thread: the same user.
    graph = build(connection)
    say(graph, "friday", "What could I eat for dinner?")

    friday: RunnableConfig = {"configurable": {"thread_id": "friday"}}
    states = list(graph.get_state_history(friday))
    before = next(state for state in states if state.next == ("remember",))
    graph.invoke(None, before.config)
    kept = connection.mind.conversation("friday").get().message_count
    print(f"friday has {len(states)} checkpoints; replayed from one of them, it still has {kept} messages")
    for item in RecollectStore(connection).search(("threads",), filter={"turns": {"$gte": 1}}):
        print(f"the store has {'/'.join(item.namespace)}/{item.key}: {item.value['turns']} turn(s)")


if __name__ == "__main__":
    main()
