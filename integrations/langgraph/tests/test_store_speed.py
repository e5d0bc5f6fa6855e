"""How long the store takes beside LangGraph's PostgresStore on the same PostgreSQL, operation by operation."""

from __future__ import annotations

import statistics
import time

import pytest
from embedding import DIMENSIONS, embed
from recollect_langgraph import RecollectStore

pytestmark = pytest.mark.slow
INDEX = {"dims": DIMENSIONS, "embed": embed, "fields": ["text"]}
ITEMS, ROUNDS = 500, 150
MOST_TIMES = 40
"""A call over HTTP costs more than a statement on a local socket; this says when something is wrong with it."""


def value(number):
    return {"text": "abcdefgh"[number % 8] * (number % 5 + 1) + f" {number}", "n": number}


def operations():
    """Give each operation by its name, for a round."""
    return {
        "put": lambda store, round_: store.put(
            ("speed", str(round_ % 10)), f"new {round_}", {"n": round_}, index=False
        ),
        "put with a vector": lambda store, round_: store.put(("speed", str(round_ % 10)), f"v {round_}", value(round_)),
        "get": lambda store, round_: store.get(("speed", str(round_ % 10)), str(round_)),
        "search by filter": lambda store, round_: store.search(("speed",), filter={"n": round_}),
        "search by vector": lambda store, round_: store.search(("speed",), query="abab"),
        "list namespaces": lambda store, _: store.list_namespaces(prefix=("speed",)),
    }


def test_it_is_within_a_known_factor_of_postgres_store(connection, open_oracle, capsys):
    stores = {"recollect": RecollectStore(connection, index=INDEX), "postgres": open_oracle(INDEX)}
    for store in stores.values():
        for number in range(ITEMS):
            store.put(("speed", str(number % 10)), str(number), value(number))
    took = {(name, side): [] for name in operations() for side in stores}
    for name, operation in operations().items():
        for round_ in range(ROUNDS):
            for side, store in stores.items():
                began = time.perf_counter()
                operation(store, round_)
                took[name, side].append(time.perf_counter() - began)
    with capsys.disabled():
        print(f"\n{'median ms, ' + str(ITEMS) + ' items':<24}{'recollect':>12}{'postgres':>12}{'ratio':>8}")
        for name in operations():
            ours, theirs = (statistics.median(took[name, side]) * 1000 for side in ("recollect", "postgres"))
            print(f"{name:<24}{ours:>12.2f}{theirs:>12.2f}{ours / theirs:>8.1f}")
            assert ours / theirs < MOST_TIMES, name
