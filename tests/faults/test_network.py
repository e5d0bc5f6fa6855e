"""A network that fails between service and PostgreSQL: every request is answered in time, no promise is broken."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest

from conftest import http_client, new_key
from faults.proxy import Proxy
from recollect.llm.fake import FakeEmbedder
from recollect.settings import Settings
from recollect.wiring import connected

DEADLINE = 1.5
WRITERS, READERS = 6, 2


@dataclass
class Ledger:
    """What callers saw: every answer with its time, and the ids that were promised."""

    answers: list[tuple[float, float, int]] = field(default_factory=list)
    promised: dict[str, str] = field(default_factory=dict)

    def codes(self) -> Counter[int]:
        return Counter(status for _, _, status in self.answers)

    def longest(self) -> float:
        return max(seconds for _, seconds, _ in self.answers)


@pytest.fixture
async def proxy(addresses):
    async with Proxy(addresses.service) as started:
        yield started


@pytest.fixture
async def far(proxy, addresses):
    """A Recollect whose pool reaches PostgreSQL only through the proxy."""
    settings = Settings(embedder="fake", deadline_seconds=DEADLINE, pool_size=5)
    async with connected(settings, replace(addresses, service=proxy.dsn), FakeEmbedder()) as running:
        yield running


async def write_for_ever(http, ledger, number):
    while True:
        content = uuid4().hex
        body = {"agent": f"agent-{number % 3}", "memories": [{"content": content}]}
        while content not in ledger.promised:
            answer = await timed(ledger, http.post("/v1/memories", json=body, headers={"Idempotency-Key": content}))
            if answer.status_code == 201:
                ledger.promised[content] = answer.json()["memories"][0]["id"]
            else:
                await asyncio.sleep(0.05)


async def read_for_ever(http, ledger, number):
    while True:
        await timed(ledger, http.post("/v1/recall", json={"agent": f"agent-{number % 3}", "text": "anything"}))
        await asyncio.sleep(0.05)


async def timed(ledger, request):
    started = time.monotonic()
    answer = await request
    ledger.answers.append((started, time.monotonic() - started, answer.status_code))
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
            await stop(tasks)
        assert [task for task in tasks if not task.cancelled()] == []


async def stop(tasks):
    """Cancel until all have ended: asyncio.wait_for of Python 3.11 can swallow a cancellation."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=0.2)


async def first_success(ledger, since):
    """Wait for the first answer 201 to a request, and tell how long after a moment it came."""
    while time.monotonic() < since + 30:
        for started, seconds, status in reversed(ledger.answers):
            if started + seconds < since:
                break
            if status == 201:
                return started + seconds - since
        await asyncio.sleep(0.01)
    raise AssertionError("no write succeeded within 30 seconds")


def check_promises(owner, ledger):
    rows = owner.execute("select content, count(*), min(id::text) from memories group by content").fetchall()
    stored = {content: (times, identity) for content, times, identity in rows}
    assert {times for times, _ in stored.values()} == {1}
    lost = [content for content, identity in ledger.promised.items() if stored.get(content, (0, ""))[1] != identity]
    assert lost == []
    counted = "select s.memory_count = (select count(*) from memories m where m.scope_id = s.id) from scopes s"
    assert {row[0] for row in owner.execute(counted)} == {True}


async def test_a_silent_network_is_answered_in_time_and_overcome_at_once(proxy, far, owner):
    async with traffic(far) as ledger:
        await asyncio.sleep(1)
        proxy.darken()
        await asyncio.sleep(2 * DEADLINE + 2)
        lifted = time.monotonic()
        proxy.lighten()
        recovery = await first_success(ledger, lifted)
        await asyncio.sleep(1)
    print(f"black hole: {dict(ledger.codes())}, longest {ledger.longest():.2f} s, recovery {recovery:.3f} s")
    assert set(ledger.codes()) == {200, 201, 503}
    assert ledger.longest() <= DEADLINE + 1
    assert recovery < 2
    check_promises(owner, ledger)


async def test_every_route_answers_in_the_dark(proxy, far):
    _, secret = await new_key(far)
    scope, ledger = {"agent": "ada"}, Ledger()
    async with http_client(far, secret) as http:
        assert (await http.get("/v1/keys")).status_code == 200
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
        answers = await asyncio.gather(*(timed(ledger, request) for request in requests))
        assert (await http.get("/health/live")).status_code == 200
        proxy.lighten()
    assert ledger.codes() == {503: len(requests)}
    assert {answer.headers["retry-after"] for answer in answers} == {"1"}
    assert ledger.longest() <= DEADLINE + 1


async def test_cut_connections_cost_answers_but_no_promises(proxy, far, owner):
    async with traffic(far) as ledger:
        for _ in range(12):
            await asyncio.sleep(0.25)
            proxy.cut()
        proxy.refusing = True
        proxy.cut()
        await asyncio.sleep(1)
        proxy.refusing = False
        recovery = await first_success(ledger, time.monotonic())
        await asyncio.sleep(0.5)
    print(f"cuts: {dict(ledger.codes())}, longest {ledger.longest():.2f} s, recovery {recovery:.3f} s")
    assert set(ledger.codes()) <= {200, 201, 503}
    assert ledger.codes()[503] > 0
    assert ledger.longest() <= DEADLINE + 1
    assert recovery < 2
    check_promises(owner, ledger)


async def test_a_slow_network_only_takes_longer(proxy, far, owner):
    proxy.latency_seconds = 0.03
    async with traffic(far) as ledger:
        await asyncio.sleep(2)
    print(f"30 ms each way: {dict(ledger.codes())}, longest {ledger.longest():.2f} s")
    assert set(ledger.codes()) == {200, 201}
    check_promises(owner, ledger)
