"""Whatever is done to LangGraph's own PostgresStore and to Recollect's store, both answer the same."""

from __future__ import annotations

import os
from uuid import uuid4

import pytest
from embedding import DIMENSIONS, embed
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.postgres import PostgresStore
from recollect_langchain import Connection
from recollect_langgraph import RecollectStore

INDEX = {"dims": DIMENSIONS, "embed": embed, "fields": ["text"]}
# Their order is the same in both: by the whole text with dots there, by segments here.
LABELS = st.sampled_from(["a", "b", "a_b", "李", "a\\", "~"])
ODD_LABELS = st.sampled_from(["a", "a%", "a b", "A", "(a|b)+", "$", "-"])
KEYS = st.sampled_from(["k1", "k2", "K1", "a.b", "ключ", "k'"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
ODD_NAMESPACES = st.lists(ODD_LABELS, min_size=1, max_size=3).map(tuple)
PREFIXES = st.lists(LABELS, max_size=2).map(tuple)
PATTERNS = st.lists(LABELS | st.just("*"), max_size=3).map(tuple)
# PostgresStore orders numbers as texts: with one digit each that is the same.
SCALARS = st.integers(0, 9) | st.sampled_from(["x", "y", "Ω", "a b", ""]) | st.booleans() | st.none()
VALUES = st.fixed_dictionaries(
    {"n": st.integers(0, 9), "s": st.sampled_from(["x", "y", "Ω", "10"])},
    optional={"any": SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.sampled_from("pq"), SCALARS)},
)
# A text of blanks means nothing, and gets no vector here.
TEXTS = st.text("abcdefgh ", min_size=1, max_size=12).filter(str.strip)
EQUALS = st.dictionaries(
    st.sampled_from(["n", "s", "any", "missing"]), SCALARS | st.lists(SCALARS, max_size=1), max_size=2
)
ORDERS = st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), st.integers(0, 9), max_size=2)
WORD_ORDERS = st.dictionaries(
    st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), st.sampled_from(["x", "y", "Ω"]), max_size=2
)
SAME = st.dictionaries(st.sampled_from(["$eq", "$ne"]), SCALARS | st.dictionaries(st.just("p"), SCALARS), max_size=2)
FILTERS = st.none() | EQUALS | st.fixed_dictionaries({}, optional={"n": ORDERS, "s": WORD_ORDERS, "any": SAME})


def plain(item):
    return item and (item.namespace, item.key, item.value)


class Agreement(RuleBasedStateMachine):
    """Two stores that are told the same."""

    index = None

    @initialize()
    def start(self):
        self.opened = PostgresStore.from_conn_string(os.environ["RECOLLECT_DATABASE_URL"], index=self.index)
        self.oracle = self.opened.__enter__()
        self.oracle.setup()
        self.oracle.conn.execute("truncate store cascade")
        address = os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_KEY"]
        self.connection = Connection(*address, "oracle", uuid4().hex)
        self.store = RecollectStore(self.connection, index=self.index)

    def teardown(self):
        if hasattr(self, "opened"):
            self.connection.close()
            self.opened.__exit__(None, None, None)

    def agree(self, ask, read=lambda answer: answer):
        ours, theirs = read(ask(self.store)), read(ask(self.oracle))
        assert ours == theirs
        return ours

    @rule(namespace=NAMESPACES | ODD_NAMESPACES, key=KEYS)
    def get(self, namespace, key):
        self.agree(lambda store: plain(store.get(namespace, key)))

    @rule(namespace=NAMESPACES | ODD_NAMESPACES, key=KEYS)
    def delete(self, namespace, key):
        self.agree(lambda store: store.delete(namespace, key))

    @invariant()
    def every_item_is_the_same(self):
        if hasattr(self, "store"):
            self.agree(lambda store: [plain(item) for item in store.search((), limit=1000)], sorted_by_name)


def sorted_by_name(items):
    return sorted(items, key=lambda item: item[:2])


class Keeping(Agreement):
    """Values under names: put, filter, page, list."""

    @rule(namespace=NAMESPACES | ODD_NAMESPACES, key=KEYS, value=VALUES)
    def put(self, namespace, key, value):
        self.agree(lambda store: store.put(namespace, key, value))

    @rule(prefix=PREFIXES | ODD_NAMESPACES, where=FILTERS, limit=st.integers(1, 4), offset=st.integers(0, 3))
    def search(self, prefix, where, limit, offset):
        asked = {"filter": where, "limit": limit, "offset": offset}
        self.agree(lambda store: [plain(item) for item in store.search(prefix, **asked)])

    @rule(prefix=PATTERNS, suffix=PATTERNS, depth=st.none() | st.integers(1, 3))
    def list_namespaces(self, prefix, suffix, depth):
        asked = {"prefix": prefix, "suffix": suffix, "max_depth": depth}
        self.agree(lambda store: sorted(store.list_namespaces(**asked)))

    @rule(data=st.data())
    def batch(self, data):
        names = data.draw(st.lists(st.tuples(NAMESPACES, KEYS, st.none() | VALUES), min_size=1, max_size=3))
        namespace, key, _ = names[0]
        prefix = (MatchCondition("prefix", namespace[:1]),)
        ops = [
            GetOp(namespace, key),
            *(PutOp(*name) for name in names),
            SearchOp((), limit=100),
            ListNamespacesOp(prefix, limit=100),
        ]

        def read(answers):
            got, *puts, found, listed = answers
            return plain(got), puts, sorted_by_name([plain(item) for item in found]), sorted(listed)

        self.agree(lambda store: store.batch(ops), read)
        # What was written in one batch has one time: let every item have its own again, in one order.
        for place, (space, name, value) in enumerate(names):
            if value is not None and (space, name) not in [later[:2] for later in names[place + 1 :]]:
                self.put(space, name, value)


class Paging(Agreement):
    """Pages of namespaces, in one order."""

    @rule(namespace=st.lists(st.sampled_from("abcxyz"), min_size=1, max_size=3).map(tuple), key=KEYS)
    def put(self, namespace, key):
        self.agree(lambda store: store.put(namespace, key, {"n": 1}))

    @rule(depth=st.none() | st.integers(1, 3), limit=st.integers(1, 4), offset=st.integers(0, 4))
    def page(self, depth, limit, offset):
        asked = {"max_depth": depth, "limit": limit, "offset": offset}
        self.agree(lambda store: store.list_namespaces(**asked))


class Meaning(Agreement):
    """Texts with vectors of the caller's own."""

    index = INDEX

    @rule(namespace=NAMESPACES, key=KEYS, text=TEXTS, number=st.integers(0, 3))
    def put(self, namespace, key, text, number):
        # PostgresStore keeps the vectors of a value that was replaced where the new one has none.
        self.agree(lambda store: store.delete(namespace, key))
        self.agree(lambda store: store.put(namespace, key, {"text": text, "n": number}))

    @rule(namespace=NAMESPACES, key=KEYS)
    def put_without_text(self, namespace, key):
        self.agree(lambda store: store.delete(namespace, key))
        self.agree(lambda store: store.put(namespace, key, {"n": 1}))

    @rule(namespace=NAMESPACES, key=KEYS, text=TEXTS)
    def put_unindexed(self, namespace, key, text):
        self.agree(lambda store: store.delete(namespace, key))
        self.agree(lambda store: store.put(namespace, key, {"text": text, "n": 2}, index=False))

    @rule(namespace=NAMESPACES, key=KEYS, text=TEXTS)
    def put_by_another_field(self, namespace, key, text):
        self.agree(lambda store: store.delete(namespace, key))
        self.agree(lambda store: store.put(namespace, key, {"other": text, "n": 3}, index=["other"]))

    @rule(prefix=PREFIXES, query=TEXTS, number=st.none() | st.integers(0, 3), offset=st.integers(0, 2))
    def search(self, prefix, query, number, offset):
        asked = {"query": query, "filter": None if number is None else {"n": number}}

        def scored(items):
            return sorted((-round(item.score, 4), plain(item)[:2]) for item in items)

        whole = self.agree(lambda store: store.search(prefix, limit=200, **asked), scored)
        page = self.store.search(prefix, limit=3, offset=offset, **asked)
        assert [-round(item.score, 4) for item in page] == [score for score, _ in whole[offset : offset + 3]]
        assert all(item.score is not None for item in page)


@pytest.mark.parametrize("machine", [Keeping, Paging, Meaning])
def test_both_stores_agree(machine):
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=20))
