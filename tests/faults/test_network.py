"""A network that fails between service and PostgreSQL: every request is answered in time, no promise is broken.

In time means: while the fault lasts. Nothing here holds a clock against the machine; what does not come fails as late.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from conftest import http_client, new_key
from recollect.llm.fake import FakeEmbedder
from recollect.wiring import connected
from support.callers.acknowledged import USUAL_LOAD, WAIT_SECONDS, Ledger, check_promises, traffic
from support.database.proxy import Proxy
from support.measuring.sizes import Sizes
from support.service.made_settings import make_settings

DEADLINE = 1.0
WRITERS, CALLERS = USUAL_LOAD.writers, USUAL_LOAD.callers
CUTS = Sizes("cuts", ci=8, long=50)


@pytest.fixture
async def proxy(addresses):
    async with Proxy(addresses.service) as started:
        yield started


def through(proxy, addresses, deadline):
    settings = make_settings(
        embedder="fake", request_timeout_seconds=deadline, pool_size=5, postgres__max_requests=CALLERS
    )
    return connected(settings, replace(addresses, service=proxy.dsn), FakeEmbedder())


@pytest.fixture
async def far(proxy, addresses):
    """A Recollect whose pool reaches PostgreSQL only through the proxy."""
    async with through(proxy, addresses, DEADLINE) as running:
        yield running


@pytest.mark.promise("A silent network is answered 503 while it is silent, then overcome, and breaks no promise")
async def test_a_silent_network_is_answered_in_time_and_overcome(proxy, far, owner, figure):
    async with traffic(far) as ledger:
        await ledger.hear(3 * CALLERS, 200, 201)
        proxy.darken()
        dark = ledger.asked
        # What was under way is answered in the dark, and so is what is asked in it.
        await ledger.hear_all()
        await ledger.hear(WRITERS, 503, after=dark)
        await ledger.hear_all()
        in_the_dark = ledger.codes(dark)
        light = ledger.asked
        proxy.lighten()
        await ledger.hear(2 * WRITERS, 201, after=light)
    figure(f"answers {dict(ledger.codes())}, of what was asked with the light back {dict(ledger.codes(light))}")
    assert set(ledger.codes()) == {200, 201, 503}
    assert set(in_the_dark) == {503}
    check_promises(owner, ledger)


@pytest.mark.promise("Every route answers 503 with Retry-After while the database is out of reach")
async def test_every_route_answers_in_the_dark(proxy, far):
    _, secret = await new_key(far)
    scope, ledger = {"agent": "ada"}, Ledger()
    async with http_client(far, secret) as http:
        async with asyncio.timeout(WAIT_SECONDS):
            # A busy machine may miss the deadline by itself.
            while (await http.get("/v1/keys")).status_code != 200:
                continue
        proxy.darken()
        requests = [
            *(http.get(path) for path in ("/health/ready", "/metrics", "/v1/keys")),
            http.post("/v1/keys", json={"name": "x", "rights": ["read"]}),
            http.delete(f"/v1/keys/{uuid4()}"),
            http.get("/v1/memories", params=scope),
            *(http.request(method, f"/v1/memories/{uuid4()}", params=scope) for method in ("GET", "DELETE")),
            http.post("/v1/recall", json=scope | {"text": "x"}),
            http.post("/v1/memories", json=scope | {"memories": [{"content": "x"}]}),
        ]
        async with asyncio.timeout(WAIT_SECONDS):
            answers = await asyncio.gather(*(ledger.ask(request) for request in requests))
        assert (await http.get("/health/live")).status_code == 200
        proxy.lighten()
    assert ledger.codes() == {503: len(requests)}
    assert {answer.headers["retry-after"] for answer in answers} == {"1"}


@pytest.mark.promise("Connections that are cut in mid-sentence cost answers, but no promise", CUTS)
async def test_cut_connections_cost_answers_but_no_promises(proxy, far, owner, figure):
    async with traffic(far) as ledger:
        for number in range(CUTS.now):
            await ledger.hear(1 + number % CALLERS, 200, 201)
            proxy.cut()
        proxy.refusing = True
        proxy.cut()
        await ledger.hear(CALLERS, 503)
        proxy.refusing = False
        again = ledger.asked
        await ledger.hear(2 * WRITERS, 201, after=again)
    figure(f"answers {dict(ledger.codes())}, of what was asked afterwards {dict(ledger.codes(again))}")
    check_promises(owner, ledger)


@pytest.mark.promise("A slow network takes longer, and nothing else")
async def test_a_slow_network_only_takes_longer(proxy, addresses, owner, figure):
    proxy.latency_seconds = 0.03
    async with through(proxy, addresses, WAIT_SECONDS) as running, traffic(running) as ledger:
        await ledger.hear(3 * CALLERS, 200, 201)
    figure(f"30 ms each way: answers {dict(ledger.codes())}")
    assert set(ledger.codes()) == {200, 201}
    check_promises(owner, ledger)
