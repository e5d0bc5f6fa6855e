"""The store does what LangGraph promises of one: names, values, times, texts; in calls, in batches and in graphs."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

import pytest
from embedding import DIMENSIONS, embed, embed_later
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from recollect_langgraph import RecollectStore

from recollect.errors import InvalidInputError

OWN = {"dims": DIMENSIONS, "embed": embed}


@pytest.fixture
def store(connection):
    return RecollectStore(connection)


def keys(found):
    return [item.key for item in found]


def test_an_item_comes_back_with_its_times(store):
    store.put(("users", "li"), "tea", {"kind": "green", "cups": [1, 2.5, None], "hot": True})
    first = store.get(("users", "li"), "tea")
    assert (first.namespace, first.key) == (("users", "li"), "tea")
    assert first.value == {"kind": "green", "cups": [1, 2.5, None], "hot": True}
    assert datetime.now(UTC) - first.created_at < timedelta(minutes=1)
    assert first.updated_at == first.created_at
    store.put(("users", "li"), "tea", {"kind": "black"})
    second = store.get(("users", "li"), "tea")
    assert second.value == {"kind": "black"}
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at


def test_what_is_gone_is_gone(store):
    store.put(("a",), "k", {})
    store.delete(("a",), "k")
    store.delete(("a",), "k")
    assert store.get(("a",), "k") is None
    assert store.list_namespaces() == []


def test_a_batch_reads_before_it_writes_and_the_last_write_wins(store):
    store.put(("a",), "k", {"n": 0})
    answers = store.batch(
        [
            PutOp(("a",), "k", {"n": 1}),
            GetOp(("a",), "k"),
            PutOp(("a",), "k", None),
            PutOp(("a",), "k", {"n": 2}),
            SearchOp(("a",)),
            ListNamespacesOp((MatchCondition("prefix", ("a",)),)),
            GetOp(("a",), "nothing"),
        ]
    )
    assert answers[1].value == {"n": 0}
    assert [item.value for item in answers[4]] == [{"n": 0}]
    assert answers[5] == [("a",)]
    assert [answers[place] for place in (0, 2, 3, 6)] == [None] * 4
    assert store.get(("a",), "k").value == {"n": 2}


def test_a_batch_that_fails_changes_nothing(store):
    with pytest.raises(InvalidInputError):
        store.batch([PutOp(("a",), "k", {"n": 1}), PutOp(("a",), "nul", {"text": "\x00"})])
    assert store.search(()) == []


def test_no_operations_are_no_call(store):
    assert store.batch([]) == []
    assert asyncio.run(store.abatch([])) == []


@pytest.mark.parametrize("namespace", [(), ("",), ("a.b",), ("langgraph", "x"), ("a", 1)])
def test_namespaces_are_as_langgraph_has_them(store, namespace):
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k", {})
    if namespace and namespace[0] != "langgraph":
        with pytest.raises(InvalidNamespaceError):
            store.batch([GetOp(namespace, "k")])


def test_numbers_are_ordered_as_numbers(store):
    """PostgresStore compares them as texts, where 10 comes before 9."""
    for number in (-2, 0.5, 9, 10):
        store.put(("n",), str(number), {"n": number})
    assert sorted(keys(store.search(("n",), filter={"n": {"$gt": 0.5}}))) == ["10", "9"]
    assert sorted(keys(store.search(("n",), filter={"n": {"$gte": -2, "$lt": 9}}))) == ["-2", "0.5"]
    assert keys(store.search(("n",), filter={"n": {"$ne": 9}, "missing": 1})) == []


def test_an_unknown_operator_is_refused(store):
    with pytest.raises(InvalidInputError, match="unknown operator"):
        store.search(("n",), filter={"n": {"$regex": "x"}})


def test_a_prefix_ends_where_a_label_ends(store):
    for namespace in (("ab",), ("a",), ("a", "b"), ("a_",)):
        store.put(namespace, "k", {})
    assert sorted(item.namespace for item in store.search(("a",))) == [("a",), ("a", "b")]
    assert len(store.search(())) == 4


def test_the_newest_comes_first_page_by_page(store):
    for number in range(5):
        store.put(("p",), str(number), {"n": number})
    store.put(("p",), "1", {"n": 1})
    pages = [keys(store.search(("p",), limit=2, offset=offset)) for offset in (0, 2, 4)]
    assert pages == [["1", "4"], ["3", "2"], ["0"]]
    assert all(item.score is None for item in store.search(("p",)))


def test_namespaces_are_listed_by_both_ends(store):
    spaces = [("a",), ("b",), ("x", "b"), ("a", "b"), ("a", "b", "c"), ("a", "d", "c"), ("store", "b")]
    for space in spaces:
        store.put(space, "k", {})
    assert store.list_namespaces() == sorted(spaces)
    assert store.list_namespaces(prefix=("a",)) == [("a",), ("a", "b"), ("a", "b", "c"), ("a", "d", "c")]
    assert store.list_namespaces(prefix=("a", "*", "c")) == [("a", "b", "c"), ("a", "d", "c")]
    assert store.list_namespaces(suffix=("b",)) == [("a", "b"), ("b",), ("store", "b"), ("x", "b")]
    assert store.list_namespaces(suffix=("*", "b")) == [("a", "b"), ("store", "b"), ("x", "b")]
    assert store.list_namespaces(prefix=("a",), suffix=("b", "c")) == [("a", "b", "c")]
    assert store.list_namespaces(prefix=("a",), max_depth=2) == [("a",), ("a", "b"), ("a", "d")]
    assert store.list_namespaces(limit=2, offset=1) == [("a", "b"), ("a", "b", "c")]
    with pytest.raises(ValueError, match="one prefix"):
        store.batch([ListNamespacesOp((MatchCondition("prefix", ("a",)), MatchCondition("prefix", ("b",))))])


def test_without_an_index_nothing_is_searched_by_meaning(store, connection):
    store.put(("a",), "k", {"text": "green tea"})
    [item] = store.search(("a",), query="coffee")
    assert item.score is None
    assert not connection.mind.recall("green tea").hits


def test_the_server_embeds_where_no_embedder_is_given(connection):
    store = RecollectStore(connection, index={"fields": ["text"]})
    store.put(("m",), "tea", {"text": "Li drinks green tea every morning", "n": 1})
    store.put(("m",), "bike", {"text": "The bicycle has a flat tyre", "n": 2})
    store.put(("m",), "hidden", {"text": "Li drinks green tea every morning"}, index=False)
    store.put(("m",), "other", {"text": "nothing", "note": "she likes hot beverages"}, index=["note"])
    store.put(("m",), "none", {"note": "no text"})
    found = store.search(("m",), query="What does she drink?")
    assert keys(found)[-1] == "bike"
    assert sorted(keys(found)) == ["bike", "other", "tea"]
    assert 1 >= found[0].score >= found[1].score >= found[2].score >= -1
    assert keys(store.search(("m",), query="What does she drink?", filter={"n": 2})) == ["bike"]
    assert keys(store.search(("m",), query="What does she drink?", limit=1, offset=2)) == ["bike"]
    assert len(store.search(("m",))) == 5


def test_an_indexed_text_is_a_memory_as_long_as_it_stands(connection):
    store = RecollectStore(connection, index={"fields": ["text"]})
    store.put(("m",), "tea", {"text": "Li drinks green tea"})
    assert [hit.memory.content for hit in connection.mind.recall("tea").hits] == ["Li drinks green tea"]
    store.put(("m",), "tea", {"text": "Li drinks black tea"})
    assert [hit.memory.content for hit in connection.mind.recall("tea").hits] == ["Li drinks black tea"]
    store.delete(("m",), "tea")
    assert not connection.mind.recall("tea").hits


@pytest.mark.parametrize("index", [{}, OWN])
def test_long_texts_are_searched_by_their_beginning_and_kept_whole(connection, index):
    store = RecollectStore(connection, index=index | {"fields": ["text"]})
    long = "Li drinks green tea. " * 2_000
    store.put(("m",), "tea", {"text": long})
    assert store.get(("m",), "tea").value == {"text": long}
    [found] = store.search(("m",), query=" " * 9_000 + long)
    assert (found.key, found.value) == ("tea", {"text": long})
    assert found.score > 0.5


def test_an_embedder_of_ones_own_is_given_all_of_a_text(connection):
    store = RecollectStore(connection, index=OWN | {"fields": ["text"]})
    store.put(("m",), "k", {"text": "a" * 32_000 + "b" * 32_000})
    [found] = store.search(("m",), query="ab")
    assert found.score > 0.8
    [found] = store.search(("m",), query="c" * 8_000 + "a" * 8_000 + "b" * 8_000)
    assert found.score == pytest.approx((2 / 3) ** 0.5, abs=0.01)


def test_what_is_forgotten_is_not_in_the_store(connection):
    store = RecollectStore(connection, index={"fields": ["text"]})
    store.put(("m",), "tea", {"text": "Li drinks green tea"})
    [hit] = connection.mind.recall("tea").hits
    connection.mind.forget([hit.memory.id])
    assert store.get(("m",), "tea") is None


def test_own_vectors_stay_out_of_the_memories(connection):
    store = RecollectStore(connection, index=OWN | {"fields": ["text"]})
    store.put(("m",), "a", {"text": "aaa"})
    store.put(("m",), "b", {"text": "bbb"})
    store.put(("m",), "c", {"text": "ccc"}, index=False)
    found = store.search(("m",), query="aaab")
    assert keys(found) == ["a", "b"]
    assert found[0].score == pytest.approx(10 / (11 * 10) ** 0.5, abs=1e-4)
    assert not connection.mind.recall("aaa").hits


@pytest.mark.parametrize(
    ("index", "value", "nearest"),
    [
        ({"fields": ["title", "body"]}, {"title": "aaa", "body": "bbb", "note": "ccc"}, "aaabbb"),
        ({"fields": ["deep.text"]}, {"deep": {"text": "ddd"}}, "ddd"),
        ({"fields": ["parts[*].text"]}, {"parts": [{"text": "eee"}, {"text": "fff"}]}, "eeefff"),
        ({"fields": "text"}, {"text": "ggg", "note": "aaa"}, "ggg"),
    ],
)
def test_fields_say_what_is_embedded(connection, index, value, nearest):
    store = RecollectStore(connection, index=OWN | index)
    store.put(("f",), "k", value)
    [found] = store.search(("f",), query=nearest)
    assert found.score == pytest.approx(1, abs=0.03)


def test_the_whole_value_is_embedded_where_no_field_is_named(connection):
    store = RecollectStore(connection, index=OWN)
    store.put(("w",), "k", {"h": "hhhh"})
    [found] = store.search(("w",), query='{"h": "hhhh"}')
    assert found.score == pytest.approx(1, abs=1e-4)


def test_an_embedder_of_other_dimensions_is_refused(connection):
    store = RecollectStore(connection, index={"dims": 3, "embed": embed})
    with pytest.raises(ValueError, match="9 dimensions; the index says 3"):
        store.put(("m",), "k", {"text": "a"})
    assert store.search(("m",)) == []


async def test_an_asynchronous_embedder_serves_asynchronous_calls(open_connection):
    connection = open_connection()
    store = RecollectStore(connection, index={"dims": DIMENSIONS, "embed": embed_later, "fields": ["text"]})
    await store.aput(("m",), "a", {"text": "aaa"})
    await store.aput(("m",), "b", {"text": "bbb"})
    assert keys(await store.asearch(("m",), query="bbb")) == ["b", "a"]
    assert (await store.aget(("m",), "a")).value == {"text": "aaa"}
    assert await store.alist_namespaces() == [("m",)]
    await store.adelete(("m",), "a")
    assert await store.aget(("m",), "a") is None
    await connection.aclose()


def test_expiry_is_not_offered(store):
    assert not store.supports_ttl
    with pytest.raises(NotImplementedError):
        store.put(("a",), "k", {}, ttl=5)


def test_threads_share_one_store(store):
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: store.put(("t", str(number % 3)), str(number), {"n": number}), range(40)))
    assert len(store.search(("t",), limit=100)) == 40


def test_two_tenants_never_meet(open_connection):
    mine, theirs = RecollectStore(open_connection()), RecollectStore(open_connection("RECOLLECT_OTHER_KEY"))
    mine.put(("a",), "k", {"mine": True})
    assert theirs.get(("a",), "k") is None
    assert theirs.search(()) == []
    assert theirs.list_namespaces() == []
    theirs.put(("a",), "k", {"mine": False})
    theirs.delete(("a",), "k")
    assert mine.get(("a",), "k").value == {"mine": True}


class State(TypedDict):
    """What goes through the graphs of these tests."""

    user: str
    seen: list[str]


def build(node):
    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph


def test_a_node_of_a_compiled_graph_uses_it(store):
    def remember(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.store is not None
        seen = [item.key for item in runtime.store.search(("visits",))]
        runtime.store.put(("visits",), state["user"], {"user": state["user"]})
        return {"seen": sorted(seen)}

    graph = build(remember).compile(store=store)
    assert graph.invoke({"user": "li"})["seen"] == []
    assert graph.invoke({"user": "wang"})["seen"] == ["li"]
    assert store.get(("visits",), "wang").value == {"user": "wang"}


async def test_a_node_uses_it_from_an_event_loop(open_connection):
    connection = open_connection()

    async def remember(state: State, *, store: BaseStore) -> dict[str, Any]:
        seen = [item.key for item in await store.asearch(("visits",))]
        await store.aput(("visits",), state["user"], {"user": state["user"]})
        return {"seen": sorted(seen)}

    graph = build(remember).compile(store=RecollectStore(connection))
    await asyncio.gather(*(graph.ainvoke({"user": f"user {number}"}) for number in range(5)))
    assert len((await graph.ainvoke({"user": "li"}))["seen"]) == 5
    await connection.aclose()


def test_checkpoints_and_other_items_of_the_scope_are_not_in_it(store, connection):
    connection.mind.items.put(("elsewhere",), "k", {"n": 1})
    assert store.search(()) == []
    assert store.list_namespaces() == []
