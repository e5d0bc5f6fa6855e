"""How often a request waits for PostgreSQL: at most three times, however much it carries."""

from __future__ import annotations

import time
from dataclasses import replace

import psycopg
import pytest

from conftest import http_client, new_key
from faults.proxy import Proxy
from recollect.llm.fake import FakeEmbedder
from recollect.models import Right
from recollect.settings import Settings
from recollect.wiring import connected

MOST = 3
ONE_WAY_SECONDS = 0.04


@pytest.fixture
async def proxy(addresses):
    async with Proxy(addresses.service) as started:
        yield started


@pytest.fixture
async def http(proxy, addresses):
    """A client of a service that reaches PostgreSQL through one counted connection."""
    settings = Settings(embedder="fake", pool_size=1)
    async with connected(settings, replace(addresses, service=proxy.dsn), FakeEmbedder()) as running:
        _, secret = await new_key(running, rights=tuple(Right))
        async with http_client(running, secret) as client:
            yield client


def body(count, evidence=()):
    memories = [{"content": f"memory {number} of apples", "evidence": list(evidence)} for number in range(count)]
    return {"agent": "ada", "user": "li", "memories": memories}


async def ask(http, name, count=1, key="", evidence=()):
    if name == "recall":
        return await http.post("/v1/recall", json={"agent": "ada", "user": "li", "text": "green apples"})
    return await http.post("/v1/memories", json=body(count, evidence), headers={"Idempotency-Key": key})


async def count_round_trips(proxy, request):
    before = proxy.round_trips
    answer = await request
    assert answer.status_code in {200, 201}
    return proxy.round_trips - before


async def count_fewest(proxy, request):
    """Count the round trips of the best of some tries.

    A server may answer the first of many statements while the client still sends the last ones, which the counter takes
    for a round trip although nobody waits.
    """
    return min([await count_round_trips(proxy, request()) for _ in range(8)])


@pytest.mark.parametrize("count", [1, 1_000])
@pytest.mark.parametrize("key", ["", "k-1"])
@pytest.mark.parametrize("derived", [False, True])
async def test_a_write_takes_three_round_trips(proxy, http, count, key, derived):
    [source] = (await ask(http, "remember")).json()["memories"]
    evidence = [source["id"]] if derived else []
    request = ask(http, "remember", count, key, evidence)
    assert await count_round_trips(proxy, request) <= MOST
    if key:
        assert await count_round_trips(proxy, ask(http, "remember", count, key, evidence)) <= MOST


async def test_the_first_write_of_a_scope_takes_no_more(proxy, http):
    assert await count_round_trips(proxy, ask(http, "remember")) <= MOST


@pytest.mark.parametrize("count", [0, 1, 1_000])
async def test_a_recall_takes_four_round_trips(proxy, http, count):
    """Who asks and where, what the channels propose, what that is like, and the winners.

    Of many candidates the server begins to tell while it is still being asked, which counts as one more.
    """
    if count:
        await ask(http, "remember", count)
    assert await count_fewest(proxy, lambda: ask(http, "recall")) <= MOST + (2 if count > 1 else 1)


async def test_reading_takes_two_and_forgetting_three(proxy, http):
    [stored] = (await ask(http, "remember")).json()["memories"]
    scope = {"agent": "ada", "user": "li"}
    requests = [
        http.get("/v1/memories", params=scope),
        http.get(f"/v1/memories/{stored['id']}", params=scope),
        http.delete(f"/v1/memories/{stored['id']}", params=scope),
    ]
    assert [await count_round_trips(proxy, request) for request in requests] == [2, 2, 3]


async def test_associating_and_marking_take_three_whatever_is_asked_and_the_rest_of_an_agent_two(proxy, http):
    [stored] = (await ask(http, "remember")).json()["memories"]
    scope = {"agent": "ada", "user": "li"}
    triples = [{"subject": f"thing {number}", "object": "apple"} for number in range(100)]
    factors = {"recency": 1, "relevance": 1, "importance": 1, "rank": 1}
    marks = [{"memory_id": stored["id"], "useful": True} | factors]
    named = {"agent": "ada", "user": "li", "memories": [{"content": "seen", "keywords": ["apple"]}]}
    await http.post("/v1/memories", json=named)
    requests = [
        http.post("/v1/associate", json=scope | {"triples": triples}),
        http.post("/v1/feedback", json=scope | {"marks": marks, "candidates": 1}),
        http.put("/v1/profile", json={"agent": "ada"}),
        http.get("/v1/profile", params={"agent": "ada"}),
        http.get("/v1/overview", params=scope),
    ]
    assert [await count_round_trips(proxy, request) for request in requests] == [3, 3, 2, 2, 2]


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("key", ["", "k-1"])
async def test_an_append_takes_three_round_trips_and_a_history_two(proxy, http, count, key):
    turn = [{"role": "user", "content": "And then?"}, {"role": "assistant", "content": "Nothing."}]
    talk = {"agent": "ada", "user": "li", "conversation": "c"}

    def append(messages, key=""):
        return http.post("/v1/messages", json=talk | {"messages": messages}, headers={"Idempotency-Key": key})

    keys = iter([f"{key}-{number}" if key else "" for number in range(9)])
    assert await count_fewest(proxy, lambda: append(turn * count, next(keys))) <= MOST
    if key:
        assert await count_fewest(proxy, lambda: append(turn * count, f"{key}-0")) <= MOST
    else:
        [first, *_] = (await append(turn)).json()["messages"]
        named = [{"role": "user", "content": "Or this?", "parent": first["id"]}] * count
        assert await count_fewest(proxy, lambda: append(named)) <= MOST
    assert await count_round_trips(proxy, http.post("/v1/history", json=talk | {"max_tokens": 4_000})) == 2


async def test_the_count_is_what_a_slow_line_charges(proxy, http):
    """The counter could be wrong; the clock is not."""
    for name in ("remember", "recall"):
        await ask(http, name)
        quick = min([await seconds(ask(http, name)) for _ in range(3)])
        proxy.latency_seconds = ONE_WAY_SECONDS
        slow = min([await seconds(ask(http, name)) for _ in range(3)])
        proxy.latency_seconds = 0.0
        charged = (slow - quick) / (2 * ONE_WAY_SECONDS)
        print(f"{name}: {charged:.2f} round trips by the clock")
        assert 2.5 < charged < MOST + (name == "recall") + 0.5


async def test_the_counter_counts(proxy, addresses):
    """A client without a pipeline waits for every statement, and the counter must see each."""
    connecting = psycopg.AsyncConnection.connect(proxy.dsn, autocommit=True, prepare_threshold=None)
    async with await connecting as connection:
        before = proxy.round_trips
        for _ in range(7):
            await connection.execute("select 1")
        assert proxy.round_trips - before == 7


async def seconds(request):
    started = time.perf_counter()
    assert (await request).status_code in {200, 201}
    return time.perf_counter() - started
