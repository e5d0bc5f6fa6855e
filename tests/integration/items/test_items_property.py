"""Whatever is put, dropped, forgotten, found and listed: items are what a plain dictionary would make of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from recollect.errors import ConflictError
from recollect.llm.fake import FakeEmbedder
from recollect.models.items import DropItem, FindItems, GetItem, ListPaths, PutItem
from recollect.settings import Settings
from recollect.wiring import connected
from support.measuring.sizes import Sizes

EVERY = {"conflict", "memories", "replaced", "GetItem", "FindItems", "ListPaths", "forgotten"}
EXAMPLES = Sizes("examples", ci=12, long=400)
SEGMENTS = ["a", "b", "ab", "*", "a.b", "张", "\t", "A%_"]
odd = st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=3).map(tuple)
paths = st.sampled_from([("a",), ("a",), ("a", "b")]) | odd
prefixes = st.sampled_from([(), ("a",), ("*",)]) | st.lists(st.sampled_from(SEGMENTS), max_size=2).map(tuple)
keys = st.sampled_from(["k", "k", "K", "键"])
plain = (
    st.none() | st.booleans() | st.integers(-12, 120) | st.sampled_from([0.5, 2.5, "b", "10", "9", "2026-01-01", ""])
)
values = st.dictionaries(st.sampled_from(["x", "y"]), plain | st.lists(plain, max_size=2), max_size=2)
operands = st.integers(-12, 120) | st.sampled_from([0.5, 2.5, "b", "10", "9", "2026-01-01", ""])
operators = st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), operands, min_size=1, max_size=2)
equalities = st.dictionaries(st.sampled_from(["$eq", "$ne"]), plain, min_size=1, max_size=1)
conditions = st.dictionaries(st.sampled_from(["x", "y", "z"]), plain | operators | equalities, max_size=2)
texts = st.sampled_from(["", "green tea", "black coffee"])
vectors = st.sampled_from([None, None, [1.0, 0.0], [0.0, 1.0], [1.0, 1.0, 0.0]])
expectations = st.sampled_from([None] * 6 + [0, 1, 2])
puts = st.builds(
    PutItem, paths, keys, values, texts, vectors, expected=expectations, memory=st.sampled_from([True, True, False])
)
drops = st.builds(DropItem, paths, keys, expectations)
finds = st.builds(FindItems, prefixes, st.just({}) | conditions, limit=st.integers(1, 9), offset=st.integers(0, 3))
listings = st.builds(
    ListPaths, prefixes, prefixes, st.none() | st.integers(1, 3), limit=st.integers(1, 9), offset=st.integers(0, 2)
)
gets = st.builds(GetItem, paths, keys)
operations = st.one_of(puts, puts, puts, drops, gets, gets, finds, finds, listings)
# Without shrinking: every step is some round trips, and a failure shows its steps as it is.
QUICK = settings(
    max_examples=EXAMPLES.now,
    stateful_step_count=16,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)


@dataclass
class Kept:
    """An item as the model has it."""

    value: dict
    text: str
    memory: bool
    revision: int
    changed: int
    memory_id: UUID | None = None


@dataclass
class Model:
    """Items as a dictionary by path and key, and the number of batches that changed it."""

    kept: dict[tuple[tuple[str, ...], str], Kept] = field(default_factory=dict)
    changes: int = 0

    def after(self, batch):
        """Carry a batch out on a copy, or say None where an expectation fails."""
        changed = Model(dict(self.kept), self.changes + 1)
        for each in batch:
            if not isinstance(each, PutItem | DropItem):
                continue
            name, before = (each.path, each.key), changed.kept.get((each.path, each.key))
            if each.expected is not None and each.expected != (before.revision if before else 0):
                return None
            if isinstance(each, DropItem):
                changed.kept.pop(name, None)
            else:
                revision = before.revision + 1 if before else 1
                memory = bool(each.text) and each.memory
                changed.kept[name] = Kept(each.value, each.text, memory, revision, changed.changes)
        return changed

    def answer(self, each):
        """Answer a read."""
        if isinstance(each, GetItem):
            found = self.kept.get((each.path, each.key))
            return found and (found.value, found.revision)
        if isinstance(each, FindItems):
            under = [(n, k) for n, k in self.kept.items() if n[0][: len(each.under)] == each.under]
            met = [(n, k) for n, k in under if all(meets(k.value, f, asked) for f, asked in each.where.items())]
            met.sort(key=lambda pair: (-pair[1].changed, encode(pair[0][0]), pair[0][1].encode()))
            return [name for name, _ in met][each.offset : each.offset + each.limit]
        matching = {path[: each.depth] for path, _ in self.kept if matches(path, each)}
        return sorted(matching, key=encode)[each.offset : each.offset + each.limit]


def encode(path):
    return "".join(f"{segment}\x1f" for segment in path).encode()


def matches(path, listing):
    def same(actual, wanted):
        return len(actual) == len(wanted) and all(w in ("*", a) for a, w in zip(actual, wanted, strict=True))

    begins = same(path[: len(listing.under)], listing.under)
    return begins and (not listing.suffix or same(path[-len(listing.suffix) :], listing.suffix))


def meets(value, name, asked):
    conditions = asked.items() if isinstance(asked, dict) else [("$eq", asked)]
    return name in value and all(compare(value[name], operator, operand) for operator, operand in conditions)


def compare(actual, operator, operand):
    if operator in ("$eq", "$ne"):
        return same_json(actual, operand) == (operator == "$eq")
    if actual is None:
        return False
    if not (is_number(actual) and is_number(operand)):
        actual, operand = as_text(actual), as_text(operand)
    return {"$gt": actual > operand, "$gte": actual >= operand, "$lt": actual < operand, "$lte": actual <= operand}[
        operator
    ]


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def same_json(left, right):
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def as_text(value):
    if isinstance(value, list):
        return "[" + ", ".join(f'"{each}"' if isinstance(each, str) else as_text(each) for each in value) + "]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


def show(operation, result):
    """Bring a result to what the model answers."""
    if isinstance(operation, GetItem):
        return result and (result.value, result.revision)
    if isinstance(operation, FindItems):
        return [(each.item.path, each.item.key) for each in result]
    return [*result]


class Items(RuleBasedStateMachine):
    """What anybody may do with the items of a scope."""

    run, recollect, number = None, None, 0
    done: ClassVar = Counter()

    @initialize()
    def begin(self):
        type(self).number += 1
        self.model = Model()
        self.mind = self.run(self.recollect.mind("ada", f"u{self.number}"))

    @rule(batch=st.lists(operations, min_size=3, max_size=8))
    def batch(self, batch):
        changed = self.model.after(batch)
        try:
            results = self.run(self.mind.items.batch(batch))
        except ConflictError:
            assert changed is None
            self.done["conflict"] += 1
            return
        assert changed is not None
        for each, result in zip(batch, results, strict=True):
            if not isinstance(each, PutItem | DropItem):
                assert show(each, result) == self.model.answer(each), each
                self.done[type(each).__name__] += bool(result)
        self.done["memories"] += sum(kept.memory for kept in changed.kept.values())
        self.done["replaced"] += any(kept.revision > 1 for kept in changed.kept.values())
        self.model = changed

    @precondition(lambda self: any(kept.memory for kept in self.model.kept.values()))
    @rule(pick=st.integers(0, 20))
    def forget(self, pick):
        held = [name for name, kept in self.model.kept.items() if kept.memory]
        name = held[pick % len(held)]
        item = self.run(self.mind.items.get(*name))
        assert self.run(self.mind.forget([item.memory_id])) == [item.memory_id]
        del self.model.kept[name]
        self.done["forgotten"] += 1

    @rule(vector=st.sampled_from([[1.0, 0.0], [0.0, 0.0, 2.0]]), under=prefixes)
    def find_by_vector(self, vector, under):
        found = self.run(self.mind.items.find(under, embedding=vector, limit=1_000))
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)
        assert all(each.item.path[: len(under)] == under for each in found)

    @invariant()
    def the_store_holds_what_the_model_holds(self):
        found = self.run(self.mind.items.find(limit=1_000))
        held = {(each.item.path, each.item.key): each.item for each in found}
        assert {name: (item.value, item.text, item.revision) for name, item in held.items()} == {
            name: (kept.value, kept.text, kept.revision) for name, kept in self.model.kept.items()
        }
        assert {name for name, item in held.items() if item.memory_id} == {
            name for name, kept in self.model.kept.items() if kept.memory
        }
        # Every memory of the scope is the text of one item.
        memories = self.run(self.mind.list(limit=200)).memories
        assert {memory.id: memory.content for memory in memories} == {
            item.memory_id: item.text for item in held.values() if item.memory_id
        }


@pytest.fixture
def machine(addresses):
    """The machine beside a running Recollect; it has not done anything yet."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        opening = connected(Settings(embedder="fake"), addresses, FakeEmbedder())
        try:
            Items.run, Items.done = staticmethod(runner.run), Counter()
            Items.recollect = runner.run(stack.enter_async_context(opening))
            yield Items
        finally:
            runner.run(stack.aclose())


@pytest.mark.promise("Items are what a dictionary would make of them", EXAMPLES)
def test_items_are_what_a_dictionary_would_make_of_them(machine):
    run_state_machine_as_test(machine, settings=QUICK)


def test_the_machine_notices_whatever_it_does(machine):
    """Chance may pass some of it by in a small run; these steps try each."""
    path, other = ("a",), ("a", "b")
    steps = machine()
    steps.begin()
    steps.batch(
        [PutItem(path, "k", {"x": 1}, "green tea"), PutItem(other, "K", {"x": "b"}, "black coffee", [1.0, 0.0])]
    )
    steps.the_store_holds_what_the_model_holds()
    steps.batch([GetItem(path, "k"), FindItems((), {"x": {"$gte": 1}}), ListPaths(), PutItem(path, "k", {"y": None})])
    steps.the_store_holds_what_the_model_holds()
    steps.batch([DropItem(path, "k"), DropItem(path, "k", expected=2)])
    steps.the_store_holds_what_the_model_holds()
    steps.forget(0)
    steps.find_by_vector([1.0, 0.0], ())
    steps.the_store_holds_what_the_model_holds()
    assert machine.done.keys() == EVERY
    assert set(steps.model.kept) == {(path, "k")}
