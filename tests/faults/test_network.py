"""A network that fails between service and PostgreSQL: every request is answered in time, no promise is broken.

In time means: while the fault lasts. Nothing here holds a clock against the machine; what does not come fails as late.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest

from conftest import http_client, new_key
from proxy import Proxy
from recollect.llm.fake import FakeEmbedder
from recollect.settings import Settings
from recollect.wiring import connected
from sizes import Sizes

DEADLINE = 1.0
WRITERS, READERS = 6, 2
CALLERS = WRITERS + READERS
WAIT_SECONDS = 30
"""Where nothing comes for so long, nothing will."""
CUTS = Sizes("cuts", ci=8, long=50)


@dataclass
class Ledger:
    """What callers asked and saw, in order, and the ids that were promised."""

    asked: int = 0
    answers: dict[int, int] = field(default_factory=dict)
    """The code of each answer, by the number of its request."""
    promised: dict[str, str] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    def codes(self, after: int = 0) -> Counter[int]:
        """Count the answers to what was asked after a request."""
        return Counter(status for number, status in self.answers.items() if number > after)

    async def hear(self, count: int, *wanted: int, after: int = 0) -> None:
        """Wait for so many more answers of certain codes."""
        known = sum(self.codes(after)[status] for status in wanted)
        await self._until(lambda: sum(self.codes(after)[status] for status in wanted) >= known + count)

    async def hear_all(self) -> None:
        """Wait until everything that has been asked until now is answered."""
        asked = range(1, self.asked + 1)
        await self._until(lambda: all(number in self.answers for number in asked))

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():
                self.news.clear()
                await self.news.wait()


@pytest.fixture
async def proxy(addresses):
    async with Proxy(addresses.service) as started:
        yield started


def through(proxy, addresses, deadline):
    settings = Settings(embedder="fake", deadline_seconds=deadline, pool_size=5, requests_at_once=CALLERS)
    return connected(settings, replace(addresses, service=proxy.dsn), FakeEmbedder())


@pytest.fixture
async def far(proxy, addresses):
    """A Recollect whose pool reaches PostgreSQL only through the proxy."""
    async with through(proxy, addresses, DEADLINE) as running:
        yield running


async def write_for_ever(http, ledger, number):
    while True:
        content = uuid4().hex
        body = {"agent": f"agent-{number % 3}", "memories": [{"content": content}]}
        while content not in ledger.promised:
            answer = await ask(ledger, http.post("/v1/memories", json=body, headers={"Idempotency-Key": content}))
            if answer.status_code == 201:
                ledger.promised[content] = answer.json()["memories"][0]["id"]
            else:
                await asyncio.sleep(0.05)


async def read_for_ever(http, ledger, number):
    while True:
        await ask(ledger, http.post("/v1/recall", json={"agent": f"agent-{number % 3}", "text": "anything"}))
        await asyncio.sleep(0.05)


async def ask(ledger, request):
    ledger.asked += 1
    number = ledger.asked
    answer = await request
    if not ledger.closed:
        ledger.answers[number] = answer.status_code
        ledger.news.set()
    return answer


@asynccontextmanager
async def traffic(running):
    """Keep writers and readers busy for as long as the block lasts."""
    _, secret = await new_key(running)
    ledger = Ledger()
    async with http_client(running, secret) as http:
        tasks = [asyncio.create_task(write_for_ever(http, ledger, number)) for number in range(WRITERS)]
        tasks += [asyncio.create_task(read_for_ever(http, ledger, number)) for number in range(READERS)]
        try:
            yield ledger
        finally:
            # What is answered to a request that we call off ourselves says nothing about the service.
            ledger.closed = True
            await stop(tasks)
        assert [task for task in tasks if not task.cancelled()] == []


async def stop(tasks):
    """Cancel until all have ended: asyncio.wait_for of Python 3.11 can swallow a cancellation."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=0.2)


def check_promises(owner, ledger):
    rows = owner.execute("select content, count(*), min(id::text) from memories group by content").fetchall()
    stored = {content: (times, identity) for content, times, identity in rows}
    assert {times for times, _ in stored.values()} == {1}
    lost = [content for content, identity in ledger.promised.items() if stored.get(content, (0, ""))[1] != identity]
    assert lost == []
    counted = "select s.memory_count = (select count(*) from memories m where m.scope_id = s.id) from scopes s"
    assert {row[0] for row in owner.execute(counted)} == {True}


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
            answers = await asyncio.gather(*(ask(ledger, request) for request in requests))
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
    assert set(ledger.codes()) <= {200, 201, 503}
    check_promises(owner, ledger)


@pytest.mark.promise("A slow network takes longer, and nothing else")
async def test_a_slow_network_only_takes_longer(proxy, addresses, owner, figure):
    proxy.latency_seconds = 0.03
    async with through(proxy, addresses, WAIT_SECONDS) as running, traffic(running) as ledger:
        await ledger.hear(3 * CALLERS, 200, 201)
    figure(f"30 ms each way: answers {dict(ledger.codes())}")
    assert set(ledger.codes()) == {200, 201}
    check_promises(owner, ledger)
