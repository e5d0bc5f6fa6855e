"""The strict walk follows parents and nothing else, and ordering nodes changes no thread."""

from __future__ import annotations

import random
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.conversations.threads import NIL, ThreadNode, bound_fetch, order_nodes, walk, walk_upstream
from recollect.errors import InvalidInputError, NotFoundError
from support.measuring.sizes import Sizes

DEEP = Sizes("messages", ci=20_000, long=100_000)


def newest_first(*pairs: tuple[str, str | None]) -> list[ThreadNode]:
    return [ThreadNode(identifier, parent) for identifier, parent in pairs]


@st.composite
def conversations(draw) -> list[ThreadNode]:
    """Draw nodes, oldest first, whose parents may be anything: later ones, themselves, unknown, NIL, none."""
    size = draw(st.integers(1, 12))
    ids = [f"m{number}" for number in range(size)]
    parent = st.one_of(st.sampled_from(ids), st.sampled_from([NIL, None, "", "elsewhere"]))
    return [ThreadNode(identifier, draw(parent)) for identifier in ids]


def climb_slowly(nodes_newest_first: list[ThreadNode], leaf: str) -> list[str]:
    """Walk as the rules say, looking everything up again: only for nodes without circles."""
    by_id = {node.id: node for node in nodes_newest_first}
    thread, node = [], by_id.get(leaf)
    while node is not None:
        thread.append(node.id)
        assert len(thread) <= len(by_id)
        if node.parent == NIL:
            older = nodes_newest_first[nodes_newest_first.index(node) + 1 :]
            node = next((each for each in older if each.parent == NIL), None)
        else:
            node = by_id.get(node.parent or "")
    return thread


def has_circles(nodes: list[ThreadNode]) -> bool:
    parents = {node.id: node.parent for node in nodes}
    for start in parents:
        each, steps = start, 0
        while each in parents and steps <= len(nodes):
            each, steps = parents[each], steps + 1
        if steps > len(nodes):
            return True
    return False


def as_nodes(ordered) -> list[ThreadNode]:
    return [ThreadNode(node.id, parent) for node, parent in ordered]


def test_nothing_has_no_thread():
    assert walk([]) == []
    assert walk_upstream([]) == []
    assert order_nodes([]) == []


def test_any_message_can_be_the_leaf_also_one_that_was_followed():
    nodes = newest_first(("d", "b"), ("c", "b"), ("b", "a"), ("a", None))
    assert walk(nodes) == ["d", "b", "a"]
    assert walk(nodes, "c") == ["c", "b", "a"]
    assert walk(nodes, "b") == ["b", "a"]


def test_an_unknown_leaf_is_refused():
    with pytest.raises(NotFoundError):
        walk(newest_first(("a", None)), "b")


def test_an_id_twice_is_refused():
    with pytest.raises(InvalidInputError):
        walk(newest_first(("a", None), ("a", None)))
    with pytest.raises(InvalidInputError):
        order_nodes(newest_first(("a", None), ("a", None)))


def test_the_leaf_is_the_newest_that_nobody_follows():
    assert walk(newest_first(("a", None), ("c", "b"), ("b", "a"))) == ["c", "b", "a"]


def test_being_followed_by_a_legacy_message_counts():
    nodes = newest_first(("x", NIL), ("y", NIL), ("z", "x"))
    assert walk(nodes) == ["z", "x", "y"]


def test_a_foreign_root_on_the_way_is_passed_by():
    nodes = newest_first(("c", "a"), ("b", None), ("a", None))
    assert walk(nodes) == ["c", "a"]
    assert walk_upstream(nodes) == ["c", "b"]


def test_legacy_messages_follow_only_their_like():
    nodes = newest_first(("e", NIL), ("d", "b"), ("c", None), ("b", NIL), ("a", NIL))
    assert walk(nodes) == ["e", "b", "a"]
    assert walk_upstream(nodes) == ["e", "d", "c"]


def test_a_parent_elsewhere_ends_the_thread():
    assert walk(newest_first(("b", "a"), ("a", "elsewhere"))) == ["b", "a"]


def test_a_circle_begins_with_its_oldest_member():
    nodes = newest_first(("d", "c"), ("c", "a"), ("b", "c"), ("a", "b"))
    assert walk(nodes) == ["d", "c", "a"]
    assert walk(nodes, "b") == ["b", "c", "a"]
    assert {node.id: parent for node, parent in order_nodes(nodes[::-1])} == {"a": None, "c": "a", "b": "c", "d": "c"}


def test_two_circles_are_both_cut():
    nodes = newest_first(("d", "c"), ("c", "d"), ("b", "a"), ("a", "b"), ("r", None))
    assert walk(nodes) == ["d", "c"]
    assert walk(nodes, "b") == ["b", "a"]


def test_one_that_follows_itself_is_a_root():
    nodes = newest_first(("b", "a"), ("a", "a"))
    assert walk(nodes) == ["b", "a"]


def test_a_late_parent_moves_up_before_the_first_that_follows_it():
    given_nodes = newest_first(("x", None), ("b", "a"), ("y", None), ("c", "a"), ("a", None))
    assert [node.id for node, _ in order_nodes(given_nodes)] == ["x", "a", "b", "y", "c"]


def test_what_is_in_order_stays_as_it_is():
    nodes = newest_first(("a", NIL), ("b", None), ("c", "a"), ("d", NIL), ("e", "elsewhere"))
    assert order_nodes(nodes) == [
        (nodes[0], None),
        (nodes[1], None),
        (nodes[2], "a"),
        (nodes[3], "a"),
        (nodes[4], None),
    ]


@given(conversations())
def test_ordering_nodes_changes_no_thread(nodes):
    ordered = order_nodes(nodes)
    for leaf in (None, *(node.id for node in nodes)):
        assert walk(as_nodes(ordered)[::-1], leaf) == walk(nodes[::-1], leaf)


@given(conversations())
def test_ordered_nodes_stand_behind_their_parents_and_otherwise_as_given(nodes):
    ordered = order_nodes(nodes)
    assert sorted(node.id for node, _ in ordered) == sorted(node.id for node in nodes)
    seen: set[str | None] = {None}
    for node, parent in ordered:
        assert parent in seen
        seen.add(node.id)
    followed = {parent for _, parent in ordered}
    leaves = [node for node, _ in ordered if node.id not in followed]
    assert leaves == [node for node in nodes if node in leaves]
    assert order_nodes(as_nodes(ordered)) == [(ThreadNode(node.id, parent), parent) for node, parent in ordered]


@given(conversations())
def test_every_walk_ends_and_names_nobody_twice(nodes):
    for leaf in (None, *(node.id for node in nodes)):
        thread = walk(nodes[::-1], leaf)
        assert len(thread) == len(set(thread)) > 0
        assert leaf is None or thread[0] == leaf


@given(conversations())
def test_without_circles_the_walk_is_the_plain_one(nodes):
    if not has_circles(nodes):
        newest = nodes[::-1]
        threads = {node.id: climb_slowly(newest, node.id) for node in nodes}
        assert {node.id: walk(newest, node.id) for node in nodes} == threads
        inner = {each for thread in threads.values() for each in thread[1:]}
        assert walk(newest)[0] == next(node.id for node in newest if node.id not in inner)


@given(st.integers(1, 30), st.randoms(use_true_random=False))
def test_both_walks_agree_on_one_chain_in_order(size, chance):
    legacy = chance.random() < 0.5
    nodes = [
        ThreadNode(f"m{number}", f"m{number - 1}" if number else NIL if legacy else None) for number in range(size)
    ]
    assert walk(nodes[::-1]) == walk_upstream(nodes[::-1]) == [node.id for node in nodes[::-1]]


@pytest.mark.promise("A thread of any length and shape is walked once, in time in proportion", DEEP)
@pytest.mark.parametrize("shape", ["chain", "backwards", "legacy", "circle", "shuffled"])
def test_a_very_long_thread_is_no_trouble(shape):
    nodes = [ThreadNode(f"m{number}", f"m{number - 1}" if number else None) for number in range(DEEP.now)]
    if shape == "legacy":
        nodes = [ThreadNode(node.id, NIL) for node in nodes]
    if shape == "circle":
        nodes[0] = ThreadNode("m0", f"m{DEEP.now - 1}")
    if shape == "backwards":
        nodes.reverse()
    if shape == "shuffled":
        random.Random(7).shuffle(nodes)
    begun = process_time()
    ordered = order_nodes(nodes)
    thread = walk(as_nodes(ordered)[::-1])
    assert process_time() - begun < 5
    assert thread == [f"m{number}" for number in reversed(range(DEEP.now))]
    assert thread == [node.id for node, _ in reversed(ordered)]


@pytest.mark.promise("Circles of parents, however many, are cut once each", DEEP)
def test_many_circles_at_once_are_no_trouble():
    nodes = [ThreadNode(f"m{number}", f"m{number ^ 1}") for number in range(DEEP.now)]
    begun = process_time()
    ordered = {node.id: parent for node, parent in order_nodes(nodes)}
    assert process_time() - begun < 5
    assert all(ordered[f"m{number}"] == (f"m{number - 1}" if number % 2 else None) for number in range(DEEP.now))


@pytest.mark.parametrize(("limit", "bound"), [(None, 500), (0, 500), (-1, 500), (1, 1), (499, 499), (501, 500)])
def test_a_fetch_is_bounded(limit, bound):
    assert bound_fetch(limit) == bound
