"""A process at its capacity lets further requests wait a moment, and then refuses them and says when to retry."""

from __future__ import annotations

import asyncio

import httpx
import psycopg
import pytest

from conftest import new_key
from recollect.client import Client
from recollect.doors.cli.server import build_server
from recollect.doors.http.app import create_app
from recollect.doors.http.server.capacity import BURST_SECONDS, GRACE_SECONDS, MAX_RETRY_AFTER_SECONDS
from recollect.errors import UnavailableError
from recollect.mind.conversations import Conversation
from recollect.wiring import connected
from support.programs.waiting import WAIT_SECONDS, until
from support.service.made_settings import make_settings
from support.service.serving import serving

HELD = 2
RECALL = {"agent": "ada", "text": "plants"}


@pytest.fixture
async def small(addresses, embedder):
    """A Recollect that serves two requests at a time."""
    settings = make_settings(
        embedder="fake", postgres__max_requests=HELD, request_timeout_seconds=60, recall__channel_timeout_seconds=30
    )
    async with connected(settings, addresses, embedder) as running:
        await (await running.mind("ada")).remember("Ann waters the plants")
        yield running


@pytest.fixture
def locked(addresses):
    """A table that recalls wait for, until it is unlocked."""
    with psycopg.connect(addresses.owner) as connection:
        connection.execute("lock table memory_features, memories in access exclusive mode")
        yield connection


@pytest.fixture
async def full(small, locked):
    """A server at its capacity."""
    _, secret = await new_key(small)
    app = create_app(recollect=small)
    headers = {"Authorization": f"Bearer {secret}"}
    async with (
        serving(app) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=WAIT_SECONDS, trust_env=False) as http,
    ):
        held = [asyncio.create_task(http.post("/v1/recall", json=RECALL)) for _ in range(HELD)]
        await until(lambda: app.state.capacity.active == HELD)
        yield app, url, http, held
        locked.rollback()
        assert [answer.status_code for answer in await asyncio.gather(*held)] == [200] * HELD
        # A client that went away is served before it is noticed.
        await until(lambda: app.state.capacity.active == 0)


@pytest.mark.promise("Beyond its capacity a process answers 503 soon; health and metrics always answer")
async def test_others_are_refused_soon_and_health_is_not(full):
    _, _, http, held = full
    refused = await http.post("/v1/recall", json=RECALL)
    assert (refused.status_code, refused.json()["code"]) == (503, "busy")
    assert int(refused.headers["retry-after"]) >= 1
    assert "connection" not in refused.headers
    assert not any(task.done() for task in held)
    for path in ("/health/live", "/health/ready", "/metrics", "/openapi.json"):
        assert (await http.get(path)).status_code == 200
    assert "recollect_http_refused_total" in (await http.get("/metrics")).text


async def test_a_connection_is_kept_until_its_retry(small):
    server = build_server(small.settings, small)
    assert server.config.timeout_keep_alive > MAX_RETRY_AFTER_SECONDS + GRACE_SECONDS


async def test_a_request_is_served_when_its_turn_comes(full, locked):
    app, _, http, held = full
    waiting = asyncio.create_task(http.post("/v1/recall", json=RECALL))
    await until(lambda: list(app.state.capacity.turns.waiting))
    locked.rollback()
    assert (await waiting).status_code == 200
    await asyncio.gather(*held)


@pytest.mark.parametrize("path", ["/mcp", "/dify/retrieval"])
async def test_clients_that_do_not_retry_wait_instead(full, path):
    app, _, http, _ = full
    asking = asyncio.create_task(http.post(path, json={}))
    await until(lambda: list(app.state.capacity.turns.waiting))
    [waiting] = app.state.capacity.turns.waiting
    assert waiting.until > asyncio.get_running_loop().time() + BURST_SECONDS * 10
    asking.cancel()


async def test_a_slow_body_takes_no_place_of_others(full, locked):
    app, url, _, _ = full
    address = httpx.URL(url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    [key] = [value for name, value in full[2].headers.items() if name == "authorization"]
    head = f"POST /v1/recall HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\nContent-Length: 1000\r\n\r\n{{"
    writer.write(head.encode())
    await writer.drain()
    locked.rollback()
    await until(lambda: app.state.capacity.active == 0)
    writer.close()
    assert await reader.read() == b""


async def test_a_call_that_waits_for_a_model_takes_no_place_of_others(small, monkeypatch):
    _, secret = await new_key(small)
    app, active = create_app(), []
    app.state.recollect = small

    async def answer(*_arguments, **_options):
        active.append(app.state.capacity.active)
        raise UnavailableError("enough")

    monkeypatch.setattr(Conversation, "history", answer)
    monkeypatch.setattr(Conversation, "chat", answer)
    headers = {"Authorization": f"Bearer {secret}"}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as http:
        for path in ("/v1/history", "/v1/chat"):
            asked = {"agent": "ada", "conversation": "c"} | ({"text": "x"} if "chat" in path else {})
            assert (await http.post(path, json=asked)).status_code == 503
    assert active == [1, 0]


async def test_the_client_waits_as_it_is_told(full, locked, small):
    _, url, _, held = full
    _, secret = await new_key(small)
    async with Client(url, secret) as client:
        recalling = asyncio.create_task((await client.mind("ada")).recall("plants"))
        await asyncio.sleep(0)
        locked.rollback()
        assert (await recalling).hits
    await asyncio.gather(*held)
