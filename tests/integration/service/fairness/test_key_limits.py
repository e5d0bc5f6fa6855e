"""Keys and tenants have limits if an operator sets them; who asks too much is told when to retry, and held to it."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import pytest

from conftest import http_client, new_key
from recollect.client import Client
from recollect.doors.http import rate_limit
from recollect.doors.http.app import create_app
from recollect.errors import InvalidInputError, NotFoundError, RateLimitError
from recollect.models.service import DEFAULT_STREAMS, KeyBinding, KeyRequest, Limits, Right
from support.programs.command_line import run, settings_of
from support.programs.waiting import until
from support.service.serving import serving

MEMORY = {"agent": "ada", "memories": [{"content": "Ann waters the plants"}]}
SLOW = Limits(requests_per_second=0.001, burst=2)


@asynccontextmanager
async def limited(recollect, limits, tenant="default"):
    """Give a client whose key has limits."""
    key, secret = await new_key(recollect, tenant)
    await recollect.operator.limits.key_limits(tenant, key.id, limits)
    async with http_client(recollect, secret) as http:
        yield http


async def statuses(http, count, path="/v1/jobs"):
    return [(await http.get(path)).status_code for _ in range(count)]


@pytest.fixture
def ask_once(recollect):
    """Give a function that asks once with a key, always of the same process."""
    app = create_app()
    app.state.recollect = recollect

    async def ask(secret, body=MEMORY):
        headers, transport = {"Authorization": f"Bearer {secret}"}, httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as http:
            return (await http.post("/v1/memories", json=body)).status_code

    return ask


@pytest.mark.promise("A key or a tenant that asks more than its limit is answered 429 and told when to retry")
async def test_a_key_has_as_many_requests_as_its_limit_says(recollect):
    async with limited(recollect, SLOW) as http:
        assert await statuses(http, 3) == [200, 200, 429]
        refused = await http.get("/health/live")
        assert refused.status_code == 200
    _, other = await new_key(recollect)
    async with http_client(recollect, other) as http:
        assert await statuses(http, 4) == [200] * 4


async def test_a_refusal_says_what_to_do(recollect):
    async with limited(recollect, Limits(requests_per_second=0.5, burst=1)) as http:
        answers = [await http.post("/v1/memories", json=MEMORY) for _ in range(2)]
    assert [each.status_code for each in answers] == [201, 429]
    assert answers[1].json()["code"] == "rate_limit"
    assert answers[1].headers["retry-after"] == "2"


async def test_a_tenant_is_limited_over_all_of_its_keys(recollect, ask_once):
    await recollect.operator.act_for("shop")
    await recollect.operator.limits.tenant_limits("shop", SLOW)
    _, first = await new_key(recollect, "shop")
    _, second = await new_key(recollect, "shop")
    assert [await ask_once(secret) for secret in (first, second, first, second)] == [201, 201, 429, 429]


async def test_keys_that_a_key_made_count_as_it(recollect, ask_once):
    operator = await recollect.operator.act_for("default")
    key, maker = await recollect.create_key(operator, "shop", (Right.READ, Right.WRITE, Right.DELEGATE), 50)
    await recollect.operator.limits.key_limits("default", key.id, SLOW)
    caller = await recollect.authenticate(maker, "http")
    ends = datetime.now(UTC) + timedelta(hours=1)
    wanted = KeyRequest("phone", frozenset({Right.READ, Right.WRITE}), 20, KeyBinding("ada", "li"), ends)
    children = [(await recollect.make_key(caller, wanted))[1] for _ in range(2)]
    body = MEMORY | {"user": "li"}
    assert [await ask_once(secret, body) for secret in (*children, maker)] == [201, 201, 429]


async def test_bytes_and_bodies_are_limited(recollect):
    async with limited(recollect, Limits(bytes_per_minute=100, largest_body=200)) as http:
        assert (await http.post("/v1/memories", json=MEMORY)).status_code == 201
        assert (await http.post("/v1/memories", json=MEMORY)).status_code == 201, "while anything is left"
        refused = await http.post("/v1/memories", json=MEMORY)
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limit")
    async with limited(recollect, Limits(largest_body=200)) as http:
        large = {"agent": "ada", "memories": [{"content": "x" * 300}]}
        refused = await http.post("/v1/memories", json=large)
        assert (refused.status_code, refused.json()["detail"]) == (413, "A request may have at most 200 bytes.")


async def test_streams_of_changes_are_counted_apart(recollect):
    await (await recollect.mind("ada")).remember("Ann waters the plants")
    key, secret = await new_key(recollect)
    await recollect.operator.limits.key_limits("default", key.id, Limits(change_streams=1))
    app = create_app(recollect=recollect)
    headers = {"Authorization": f"Bearer {secret}"}
    async with serving(app) as url, httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as http:
        assert (await http.post("/v1/memories", json=MEMORY)).status_code == 201
        async with http.stream("GET", "/v1/changes", params={"agent": "ada"}) as first:
            assert first.status_code == 200
            assert app.state.capacity.active == 0
            assert (await http.get("/v1/changes", params={"agent": "ada"})).status_code == 429
            assert await statuses(http, 5) == [200] * 5
        await until(lambda: not app.state.limiter._streams)


@pytest.mark.promise("A key without a limit follows changes by at most ten streams of a process at a time")
async def test_a_key_without_a_limit_has_the_default_of_streams(recollect):
    await (await recollect.mind("ada")).remember("Ann waters the plants")
    keys = [(await new_key(recollect, rights=(Right.READ,)))[1] for _ in range(2)]
    app = create_app(recollect=recollect)
    async with serving(app) as url, httpx.AsyncClient(base_url=url, trust_env=False) as http, AsyncExitStack() as stack:

        async def follow(secret):
            asked = {"params": {"agent": "ada"}, "headers": {"Authorization": f"Bearer {secret}"}}
            return await stack.enter_async_context(http.stream("GET", "/v1/changes", **asked))

        # At once, with a key that this process has not seen before.
        answers = await asyncio.gather(*(follow(keys[0]) for _ in range(DEFAULT_STREAMS + 5)))
        assert sorted(each.status_code for each in answers) == [200] * DEFAULT_STREAMS + [429] * 5
        refused = next(each for each in answers if each.status_code == 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert "streams of changes" in json.loads(await refused.aread())["detail"]
        assert (await follow(keys[1])).status_code == 200, "another key has its own"
    await until(lambda: not app.state.limiter._streams)


@pytest.mark.promise("A client that asks again before its Retry-After is answered when that has passed")
async def test_who_does_not_wait_is_held_back(recollect, monkeypatch):
    held = []

    async def sleep(_scope, seconds):
        held.append(seconds)
        return len(held) < 3

    monkeypatch.setattr(rate_limit, "delay_request", sleep)
    async with limited(recollect, Limits(requests_per_second=0.2, burst=1)) as http:
        assert (await http.post("/v1/memories", json=MEMORY)).status_code == 201
        assert (await http.post("/v1/memories", json=MEMORY)).status_code == 429
        assert held == []
        for _ in range(3):
            assert (await http.post("/v1/memories", json=MEMORY)).status_code == 429
    assert len(held) == 3
    assert all(0 < seconds <= 8 for seconds in held)


async def test_the_time_of_those_held_back_does_not_count(recollect):
    app = create_app(recollect=recollect)
    allowed = []
    scope = {"app": app, "allow_seconds": allowed.append}
    assert await rate_limit.delay_request(scope, 0.01)
    assert (allowed, app.state.capacity.held) == ([0.01], 0)
    app.state.capacity.held = rate_limit.MAX_DELAYED_REQUESTS
    assert not await rate_limit.delay_request(scope, 0.01)


async def test_the_client_waits_as_told_and_names_the_limit(recollect):
    key, secret = await new_key(recollect)
    await recollect.operator.limits.key_limits("default", key.id, SLOW)
    app = create_app(recollect=recollect)
    async with serving(app) as url, Client(url, secret) as client:
        waited = []

        async def pause(seconds):
            waited.append(seconds)
            await asyncio.sleep(0)

        client._transport.pause = pause
        mind = await client.mind("ada")
        await mind.remember("a")
        await mind.remember("b")
        app.state.limiter._told.clear()
        with pytest.raises(RateLimitError):
            await mind.remember("c")
        assert waited == [8.0] * 3


async def test_operators_see_and_set_limits(recollect):
    key, _ = await new_key(recollect)
    limits = recollect.operator.limits
    assert await limits.key_limits("default", key.id) == Limits()
    assert await limits.key_limits("default", key.id, SLOW) == SLOW
    [listed] = await recollect.list_keys(await recollect.operator.act_for("default"))
    assert listed.limits == SLOW
    for wrong in (Limits(burst=0), Limits(requests_per_second=-1.0), Limits(bytes_per_minute=2**40)):
        with pytest.raises(InvalidInputError):
            await limits.tenant_limits("default", wrong)
    for call in (limits.key_limits("default", uuid4()), limits.tenant_limits("nobody")):
        with pytest.raises(NotFoundError):
            await call


async def test_the_command_line_sets_what_is_named(recollect, addresses):
    key, _ = await new_key(recollect)

    def tell(*words):
        return run(*words, settings=settings_of(addresses)).strip()

    assert tell("admin", "keys", "limit", str(key.id)) == "There is no limit."
    assert tell("admin", "keys", "limit", str(key.id), "--requests-per-second", "5", "--burst", "9") == (
        "requests per second 5, burst 9"
    )
    assert tell("admin", "keys", "limit", str(key.id), "--burst", "0") == "requests per second 5"
    assert "requests per second 5" in tell("admin", "keys", "list")
    assert tell("admin", "tenants", "limit", "default", "--bytes-per-minute", "1000000") == "bytes per minute 1,000,000"
    assert tell("admin", "tenants", "limit", "default") == "bytes per minute 1,000,000"
