"""Clients that take all there is to take: many at once while a table is locked, and many that never finish."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager, suppress

import httpx
import psycopg
import pytest

from conftest import application, new_key
from recollect.doors.http import middleware
from recollect.doors.http.server import protocol
from recollect.llm.fake import FakeEmbedder
from recollect.wiring import connected
from support.measuring.sizes import Sizes
from support.programs.waiting import WAIT_SECONDS
from support.service.made_settings import make_settings
from support.service.serving import serving

ASKED = Sizes("requests at once", ci=100, long=1_000)
SLOW = Sizes("slow clients of each sort", ci=40, long=400)
SCOPE = {"agent": "ada"}
SERVED = 30
PAUSE_SECONDS = 0.05
PLACES = 16


@asynccontextmanager
async def listening(addresses, **settings):
    """Serve on a real socket, as `recollect serve` does; give the service, its key and a client."""
    async with connected(make_settings(embedder="fake", **settings), addresses, FakeEmbedder()) as recollect:
        _, secret = await new_key(recollect)
        # A connection that was kept may be closed by the server just when it is used again.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        headers = {"Authorization": f"Bearer {secret}"}
        with application(recollect) as app:
            async with (
                serving(app, http=protocol.BoundedProtocol, lifespan="off") as url,
                httpx.AsyncClient(
                    base_url=url, headers=headers, timeout=WAIT_SECONDS, limits=limits, trust_env=False
                ) as http,
            ):
                yield http


def ask_for_anything(http, number):
    """Ask for something that needs the table."""
    if number % 4 == 1:
        return http.post("/v1/memories", json=SCOPE | {"content": f"while it was locked {number}"})
    if number % 4 == 2:
        return http.post("/v1/context", json=SCOPE | {"conversation": "c", "text": f"cue {number}", "budget": 100})
    return http.post("/v1/recall", json=SCOPE | {"text": f"cue {number}"})


@pytest.mark.promise(
    "While a table is locked everything that needs it is answered 503, health is not, and all is well again afterwards",
    ASKED,
    part="clients",
)
async def test_a_locked_table_takes_nothing_but_what_needs_it(addresses, monkeypatch, figure):
    # Clients and server share one loop here: a header that waits for its turn is not a slow client's.
    monkeypatch.setattr(protocol, "HEADER_SECONDS", float(WAIT_SECONDS))
    async with listening(addresses, pool_size=4, request_timeout_seconds=2) as http:
        # A busy machine may miss the deadline by itself.
        await until_served(http)
        with psycopg.connect(addresses.owner) as locking:
            locking.execute("lock table memories, memory_features, scopes in access exclusive mode")
            asked = [asyncio.create_task(ask_for_anything(http, number)) for number in range(ASKED.now)]
            await asyncio.sleep(0)
            healthy = Counter()
            while not all(task.done() for task in asked):
                for path in ("/health/live", "/health/ready"):
                    healthy[path, (await http.get(path)).status_code] += 1
                await asyncio.sleep(PAUSE_SECONDS)
            # Nothing was unlocked until now: whatever was answered, was answered in time.
            answers = [task.result() for task in asked]
        assert {answer.status_code for answer in answers} == {503}
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers)
        assert {path for path, status in healthy if status == 200} == {path for path, _ in healthy}
        assert {status for _, status in healthy} == {200}
        again = await until_served(http)
    figure(f"{len(answers)} answered 503, health {healthy.total()} times 200, then served after {again} refusals")


async def until_served(http):
    """Ask again, as clients do that were told to; say how often in vain."""
    refused = 0
    async with asyncio.timeout(WAIT_SECONDS):
        for number in range(3):
            while (answer := await ask_for_anything(http, number)).status_code == 503:
                refused += 1
                await asyncio.sleep(PAUSE_SECONDS)
            assert answer.status_code in {200, 201, 404}, answer.text
    return refused


def head(key: str) -> bytes:
    lines = (
        "POST /v1/memories HTTP/1.1", "Host: localhost", f"Authorization: {key}", "Content-Type: application/json",
        "Content-Length: 60000", "", "",
    )  # fmt: skip
    return "\r\n".join(lines).encode()


async def dawdle(http, begun: bytes, *, trickling: bool) -> bytes:
    """Begin a request and never finish it; give what the server said before it closed the connection."""
    reader, writer = await asyncio.open_connection(http.base_url.host, http.base_url.port)
    writer.write(begun)
    said = asyncio.create_task(reader.read())
    async with asyncio.timeout(WAIT_SECONDS):
        while not said.done():
            with suppress(ConnectionError):
                writer.write(b" " if trickling else b"")
                await writer.drain()
            await asyncio.wait([said], timeout=PAUSE_SECONDS)
    writer.close()
    # What is sent after the answer may reset the connection, and take the answer with it.
    return b"" if isinstance(said.exception(), ConnectionError) else said.result()


@pytest.mark.promise(
    "Clients that never finish a request are sent away, however many they are, and others are served meanwhile",
    SLOW,
    part="clients",
)
async def test_slow_clients_are_sent_away_and_others_are_served(addresses, monkeypatch, figure):
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 1.0)
    monkeypatch.setattr(middleware, "UPLOAD_SECONDS", 1.0)
    async with listening(addresses, request_timeout_seconds=60, postgres__max_requests=PLACES) as http:
        right = http.headers["authorization"]
        sorts = {
            "silent": (b"", False),
            "half a header": (b"POST /v1/memories HTTP/1.1\r\nHost: x\r\n", False),
            "trickling header": (b"POST /v1/memories HTTP/1.1\r\nX-Long: ", True),
            "wrong key": (head("Bearer rec_wrong"), True),
            "silent body": (head(right), False),
            "trickling body": (head(right), True),
        }
        slow = {
            asyncio.create_task(dawdle(http, begun, trickling=trickling)): sort
            for _ in range(SLOW.now)
            for sort, (begun, trickling) in sorts.items()
        }
        served = Counter()
        while served[201] < SERVED or not all(task.done() for task in slow):
            answer = await http.post("/v1/memories", json=SCOPE | {"content": f"meanwhile {served.total()}"})
            served[answer.status_code] += 1
        told = {sort: Counter(task.result()[:12] for task in slow if slow[task] == sort) for sort in sorts}
    figure(f"{len(slow)} slow clients sent away, {dict(served)} served meanwhile")
    # Hundreds of slow bodies by one key fill the queue for a moment: whoever comes then is told to ask again.
    assert set(served) <= ({201, 503} if SLOW.now > SLOW.ci else {201})
    for sort in ("silent", "half a header", "trickling header"):
        assert set(told[sort]) == {b""}
    assert set(told["wrong key"]) <= {b"HTTP/1.1 401", b""}
    # While all places are taken, who only waits is told that the server is busy. Clients and server share one loop:
    # on a busy machine a client may send its headers after their time, and is sent away without an answer.
    assert b"HTTP/1.1 408" in told["silent body"]
    for sort in ("silent body", "trickling body"):
        assert set(told[sort]) <= {b"HTTP/1.1 408", b"HTTP/1.1 503", b""}
    assert told["wrong key"][b"HTTP/1.1 401"] + told["trickling body"][b"HTTP/1.1 408"] > 0
