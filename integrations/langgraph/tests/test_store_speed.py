"""An operation of the store is one request; how long it takes is printed beside LangGraph's PostgresStore."""

from __future__ import annotations

import os
import statistics
import time

import httpx
import pytest
from embedding import DIMENSIONS, embed
from recollect_langgraph import RecollectStore

INDEX = {"dims": DIMENSIONS, "embed": embed, "fields": ["text"]}
ITEMS, ROUNDS = (500, 150) if os.environ.get("RECOLLECT_TESTS") == "long" else (10, 2)


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


@pytest.fixture
def sent(monkeypatch):
    """The requests that were sent, as they go out."""
    requests, send = [], httpx.HTTPTransport.handle_request

    def note(transport, request):
        requests.append(request.url.path)
        return send(transport, request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", note)
    return requests


def test_an_operation_is_one_request(connection, open_oracle, sent, capsys):
    stores = {"recollect": RecollectStore(connection, index=INDEX), "postgres": open_oracle(INDEX)}
    for store in stores.values():
        for number in range(ITEMS):
            store.put(("speed", str(number % 10)), str(number), value(number))
    took = {(name, side): [] for name in operations() for side in stores}
    for name, operation in operations().items():
        sent.clear()
        for round_ in range(ROUNDS):
            for side, store in stores.items():
                began = time.perf_counter()
                operation(store, round_)
                took[name, side].append(time.perf_counter() - began)
        assert sent == ["/v1/items"] * ROUNDS, name
    with capsys.disabled():
        print(f"\n{'median ms, ' + str(ITEMS) + ' items':<24}{'recollect':>12}{'postgres':>12}{'ratio':>8}")
        for name in operations():
            ours, theirs = (statistics.median(took[name, side]) * 1000 for side in ("recollect", "postgres"))
            print(f"{name:<24}{ours:>12.2f}{theirs:>12.2f}{ours / theirs:>8.1f}")
