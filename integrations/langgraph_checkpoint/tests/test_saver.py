"""Graphs go on, branch, stop for people and start again from Recollect as from LangGraph's own checkpointer."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from recollect_langgraph_checkpoint import RecollectSaver, steps


@pytest.fixture
def saver(connection):
    return RecollectSaver(connection)


class State(TypedDict):
    """What goes through the graphs of these tests."""

    log: Annotated[list[str], operator.add]
    size: int


def note(name):
    return lambda _: {"log": [name]}


def ask(_):
    return {"log": [f"told {interrupt('what?')}"]}


def build_inner():
    graph = StateGraph(State)
    graph.add_node("deep", note("deep"))
    graph.add_node("ask", ask)
    graph.add_edge(START, "deep")
    graph.add_edge("deep", "ask")
    graph.add_edge("ask", END)
    return graph.compile(checkpointer=True)


def build(saver):
    """Build a graph with parallel tasks, a nested graph, and a question to a person."""
    graph = StateGraph(State)
    for name in ("first", "left", "right", "part", "last"):
        graph.add_node(name, note(name))
    graph.add_node("inner", build_inner())
    graph.add_edge(START, "first")
    graph.add_edge("first", "left")
    graph.add_edge("first", "right")
    graph.add_conditional_edges("left", lambda _: [Send("part", {"log": []}), Send("part", {"log": []})], ["part"])
    graph.add_edge(["part", "right"], "inner")
    graph.add_edge("inner", "last")
    graph.add_edge("last", END)
    return graph.compile(checkpointer=saver)


def describe(graph, thread):
    """Say what a thread's history holds, but for what differs by chance."""
    return [
        (state.values, state.next, state.metadata["source"], state.metadata["step"], len(state.tasks))
        for state in graph.get_state_history(thread)
    ]


def play(saver, thread):
    """Run until the question, answer it, run again, and branch off in the middle."""
    graph, config = build(saver), {"configurable": {"thread_id": thread}}
    # Saved while the graph waits: by default it goes on, and changes values that are still being saved.
    asked = graph.invoke({"log": ["hello"], "size": 1}, config, durability="sync")
    told = graph.invoke(Command(resume="tea"), config, durability="sync")
    middle = next(state for state in graph.get_state_history(config) if state.next == ("left", "right"))
    fork = graph.update_state(middle.config, {"log": ["changed"]})
    branched = graph.invoke(None, fork, durability="sync")
    return [asked.get("log"), told, branched.get("log"), describe(graph, config)]


def test_a_graph_runs_as_with_langgraphs_own_checkpointer(saver):
    assert play(saver, "t") == play(InMemorySaver(), "t")


async def test_a_graph_runs_the_same_on_an_event_loop(open_connection):
    connection = open_connection()
    graph = build(RecollectSaver(connection))
    config = {"configurable": {"thread_id": "t"}}
    await graph.ainvoke({"log": ["hello"], "size": 1}, config)
    told = await graph.ainvoke(Command(resume="tea"), config)
    assert told["log"][-3:] == ["deep", "told tea", "last"]
    states = [state async for state in graph.aget_state_history(config)]
    assert states[0].values == told
    assert [state.metadata["step"] for state in states] == list(range(len(states) - 2, -2, -1))
    await connection.aclose()


def test_another_process_goes_on(open_connection):
    config = {"configurable": {"thread_id": "t"}}
    build(RecollectSaver(open_connection())).invoke({"log": [], "size": 1}, config)
    told = build(RecollectSaver(open_connection())).invoke(Command(resume="tea"), config)
    assert told["log"][-1] == "last"


def test_a_task_that_succeeded_is_not_done_again(saver):
    done, failing = [], {"now": True}

    def work(_):
        done.append("work")
        return {"log": ["work"]}

    def fail(_):
        if failing.pop("now", False):
            raise RuntimeError("crash")
        return {"log": ["fail"]}

    graph = StateGraph(State)
    graph.add_node("work", work)
    graph.add_node("fail", fail)
    graph.add_edge(START, "work")
    graph.add_edge(START, "fail")
    compiled, config = graph.compile(checkpointer=saver), {"configurable": {"thread_id": "t"}}
    with pytest.raises(RuntimeError, match="crash"):
        compiled.invoke({"log": [], "size": 0}, config)
    assert sorted(compiled.invoke(None, config)["log"]) == ["fail", "work"]
    assert done == ["work"]


def test_large_values_are_cut_into_pieces(saver):
    blob = bytes(range(256)) * 12_000

    def grow(_):
        return {"blob": blob, "log": [blob.hex()[:2_000_000]]}

    graph = StateGraph(TypedDict("Large", {"blob": bytes, "log": Annotated[list[str], operator.add]}))
    graph.add_node("grow", grow)
    graph.add_edge(START, "grow")
    compiled, config = graph.compile(checkpointer=saver), {"configurable": {"thread_id": "t"}}
    compiled.invoke({"log": []}, config)
    values = compiled.get_state(config).values
    assert values["blob"] == blob
    assert len(values["log"][0]) == 2_000_000
    saver.copy_thread("t", "u")
    assert compiled.get_state({"configurable": {"thread_id": "u"}}).values == values
    saver.delete_thread("t")
    assert saver.connection.mind.items.paths(under=(steps.ROOT, steps.VALUES, "t")) == ()


def config_of(thread, level="", checkpoint_id=None):
    names = {"thread_id": thread, "checkpoint_ns": level}
    return {"configurable": names | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


def put_one(saver, thread, level="", parent=None, **metadata):
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"], checkpoint["channel_versions"] = {"x": thread}, {"x": "1"}
    return saver.put(config_of(thread, level, parent), checkpoint, metadata, {"x": "1"})


def test_what_a_task_wrote_first_stands(saver):
    config = put_one(saver, "t")
    saver.put_writes(config, [("x", 1), ("__error__", "first")], "task", "path")
    saver.put_writes(config, [("x", 2), ("__error__", "second"), ("y", 3)], "task", "path")
    assert sorted(saver.get_tuple(config).pending_writes) == [
        ("task", "__error__", "second"),
        ("task", "x", 1),
        ("task", "y", 3),
    ]


def test_writes_come_in_the_order_of_their_tasks(saver):
    config = put_one(saver, "t")
    for task, path in (("a", "2"), ("c", "1"), ("b", "1"), ("z", "")):
        saver.put_writes(config, [("x", number) for number in range(11)], task, path)
    order = [(task, value) for task, _, value in saver.get_tuple(config).pending_writes]
    assert order == [(task, number) for task in "zbca" for number in range(11)]


def test_all_threads_are_listed_page_by_page(saver):
    for number in range(45):
        put_one(saver, f"t{number % 3}", level="inner" if number % 2 else "", step=number)
    assert [each.metadata["step"] for each in saver.list(None)] == list(range(44, -1, -1))
    assert [each.metadata["step"] for each in saver.list(None, limit=21)] == list(range(44, 23, -1))
    assert list(saver.list(None, limit=0)) == []
    whole = [each.config["configurable"] for each in saver.list({"configurable": {"thread_id": "t1"}})]
    assert {names["checkpoint_ns"] for names in whole} == {"", "inner"}
    assert len(whole) == 15
    assert len(list(saver.list(config_of("t1", "inner")))) == 8
    named = config_of("t1", whole[3]["checkpoint_ns"], whole[3]["checkpoint_id"])
    assert [each.config["configurable"] for each in saver.list(named)] == [whole[3]]


def test_a_level_is_not_its_neighbour(saver):
    levels = ["", "a:1", "a:1|b:2", "a:1|b:2|c:3", "a:10"]
    stored = {level: put_one(saver, "t", level) for level in levels}
    for level in levels:
        assert saver.get_tuple(config_of("t", level)).config == stored[level]


def test_pruning_keeps_what_a_changing_channel_needs(saver):
    parent = put_one(saver, "t", counters_since_delta_snapshot={"x": [1, 1]})
    put_one(saver, "t", parent=parent["configurable"]["checkpoint_id"])
    saver.prune(["t"])
    assert len(list(saver.list(config_of("t")))) == 2
    saver.prune(["t"], strategy="delete")
    assert list(saver.list(config_of("t"))) == []
    with pytest.raises(ValueError, match="keep_latest"):
        saver.prune(["t"], strategy="everything")


def test_nothing_is_left_of_a_thread_that_was_deleted(saver, connection):
    graph = build(saver)
    for thread in ("gone", "kept"):
        graph.invoke({"log": [], "size": 1}, {"configurable": {"thread_id": thread}})
    before = connection.mind.items.paths(limit=1000)
    saver.delete_thread("gone")
    after = connection.mind.items.paths(limit=1000)
    assert [path for path in before if "gone" not in path] == list(after)
    assert after


@pytest.mark.parametrize("end", ["delete", "prune", "thin"])
def test_a_thread_called_star_is_one_among_others(saver, end):
    for thread in ("a", "b", "*"):
        put_one(saver, thread)
        saver.put_writes(put_one(saver, thread), [("x", thread)], "task")
    if end == "delete":
        saver.delete_thread("*")
    else:
        saver.prune(["*"], strategy="delete" if end == "prune" else "keep_latest")
    left = [each.config["configurable"]["thread_id"] for each in saver.list(None)]
    assert sorted(left) == ["*"] * (end == "thin") + ["a", "a", "b", "b"]
    for thread in ("a", "b"):
        newest = saver.get_tuple(config_of(thread))
        assert newest.checkpoint["channel_values"] == {"x": thread}
        assert newest.pending_writes == [("task", "x", thread)]


def test_a_thread_called_star_is_copied_alone(saver):
    for thread in ("*", "a"):
        put_one(saver, thread, whose=thread)
    saver.copy_thread("*", "copy")
    copied = list(saver.list({"configurable": {"thread_id": "copy"}}))
    assert [each.metadata["whose"] for each in copied] == ["*"]
    assert copied[0].checkpoint["channel_values"] == {"x": "*"}
    saver.copy_thread("nothing", "*")
    assert len(list(saver.list({"configurable": {"thread_id": "*"}}))) == 1


def test_more_writes_than_an_answer_holds_are_all_there(saver):
    config = put_one(saver, "t")
    for task in ("a", "b"):
        saver.put_writes(config, [("x", number) for number in range(1_050)], task)
    read = saver.get_tuple(config).pending_writes
    assert read == [(task, "x", number) for task in "ab" for number in range(1_050)]
    [listed] = saver.list(config_of("t"))
    assert listed.pending_writes == read


def test_a_checkpoint_that_is_too_large_says_so(saver, connection):
    checkpoint = empty_checkpoint()
    checkpoint["versions_seen"] = {"node": {f"channel {number}": "1" * 100 for number in range(8_000)}}
    with pytest.raises(ValueError, match="must fit 900000 characters without its values"):
        saver.put(config_of("t"), checkpoint, {}, {})
    assert connection.mind.items.paths() == ()


def test_pruning_leaves_no_value_that_nobody_needs(saver, connection):
    graph, config = build(saver), {"configurable": {"thread_id": "t"}}
    graph.invoke({"log": [], "size": 1}, config)
    graph.invoke(Command(resume="tea"), config)
    values = graph.get_state(config).values
    saver.prune(["t"])
    assert graph.get_state(config).values == values
    kept = list(saver.list({"configurable": {"thread_id": "t"}}))
    named = sum(len(each.checkpoint["channel_values"]) for each in kept)
    assert len(connection.mind.items.paths(under=(steps.ROOT, steps.VALUES), limit=1000)) == named


def test_checkpoints_are_no_memories(saver, connection):
    build(saver).invoke({"log": ["Li drinks green tea"], "size": 1}, {"configurable": {"thread_id": "t"}})
    assert not connection.mind.recall("green tea").hits


def test_two_tenants_never_meet(open_connection):
    mine, theirs = RecollectSaver(open_connection()), RecollectSaver(open_connection("RECOLLECT_OTHER_KEY"))
    config = put_one(mine, "t", run_id="r")
    assert theirs.get_tuple(config) is None
    assert list(theirs.list(None)) == []
    theirs.delete_thread("t")
    theirs.delete_for_runs(["r"])
    theirs.prune(["t"], strategy="delete")
    theirs.copy_thread("t", "u")
    assert list(theirs.list(None)) == []
    assert mine.get_tuple(config) is not None


def test_versions_of_two_branches_differ(saver):
    first: Any = saver.get_next_version(None, None)
    assert saver.get_next_version(first, None) != saver.get_next_version(first, None)
    assert saver.get_next_version(first, None) > first
    versions = [first]
    for _ in range(12):
        versions.append(saver.get_next_version(versions[-1], None))
    assert versions == sorted(versions)
