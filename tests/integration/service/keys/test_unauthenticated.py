"""Clients without an accepted key cost little: which keys are asked for, what is copied, and which ports serve what."""

from __future__ import annotations

import asyncio
import json
import random
import re
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest

from conftest import application, http_client, new_key
from recollect.doors.http import key_check, middleware
from recollect.doors.http.admission import Slot
from recollect.doors.http.app import create_app
from recollect.doors.http.key_check import KeyCheck
from recollect.doors.http.server import keys as module
from recollect.doors.http.server.capacity import Capacity
from recollect.doors.http.server.keys import CHECKS, MAX_KEYS, KeyChecks, RecentKeys, Slots
from recollect.doors.http.server.protocol import BoundedProtocol
from recollect.errors import UnauthenticatedError, UnavailableError
from recollect.models.service import Limits
from support.callers.strangers import well_formed
from support.programs.waiting import WAIT_SECONDS, until
from support.service.made_settings import change_settings
from support.service.serving import serving

CHANCE = random.Random(35)
OWN = "/v1/key"
HEALTH_PORT = 9_100


@pytest.fixture
def asked(recollect, monkeypatch):
    """The secrets that the database was asked for."""
    secrets, authorize = [], type(recollect)._authorize

    async def count(running, secret, *arguments):
        secrets.append(secret)
        return await authorize(running, secret, *arguments)

    monkeypatch.setattr(type(recollect), "_authorize", count)
    return secrets


async def ask(http, secret, path=OWN):
    return (await http.get(path, headers={"Authorization": f"Bearer {secret}"})).status_code


def mistype(secret):
    """Change one character, so that the checksum is wrong."""
    return secret[:20] + ("A" if secret[20] != "A" else "B") + secret[21:]


@pytest.mark.promise("Keys with an invalid format or checksum, and keys refused lately, cost no database call")
async def test_what_can_be_no_key_and_what_was_refused_is_not_asked_for(recollect, asked):
    _, secret = await new_key(recollect)
    wrong = well_formed(CHANCE)
    async with http_client(recollect, "") as http:
        for malformed in ("rec_wrong", "x", mistype(secret), secret[:-1], secret + "A"):
            assert await ask(http, malformed) == 401
        assert (await http.post("/v1/recall", json={"agent": "ada", "text": "x"})).status_code == 401
        assert asked == []
        assert [await ask(http, wrong) for _ in range(4)] == [401] * 4
        assert asked == [wrong]
        http.cookies.set("recollect_console", wrong)
        page = {"X-Recollect-Console": "1", "Origin": "http://localhost"}
        assert (await http.get(OWN, headers=page)).status_code == 401
        assert (await http.post("/console/session", json={"key": wrong}, headers=page)).status_code == 401
        assert (await http.delete("/console/session", headers=page)).status_code == 204
        assert asked == [wrong]


async def test_a_refusal_is_remembered_for_a_while(recollect, asked, monkeypatch):
    now = module.monotonic()
    monkeypatch.setattr(module, "monotonic", lambda: now)
    wrong = well_formed(CHANCE)
    async with http_client(recollect, "") as http:
        assert [await ask(http, wrong) for _ in range(2)] == [401, 401]
        now += module.REFUSED_SECONDS + 1
        assert await ask(http, wrong) == 401
    assert asked == [wrong, wrong]


async def test_a_new_key_works_at_once_and_a_revoked_one_never_again(recollect, asked):
    async with http_client(recollect, "") as http:
        await asyncio.gather(*(ask(http, well_formed(CHANCE)) for _ in range(20)))
        key, secret = await new_key(recollect)
        assert [await ask(http, secret) for _ in range(2)] == [200, 200]
        asked.clear()
        assert await ask(http, secret) == 200
        assert asked == [secret], "the database checks an accepted key, too"
        await recollect.revoke_key(await recollect.operator.act_for("default"), key.id)
        asked.clear()
        assert [await ask(http, secret) for _ in range(4)] == [401] * 4
        # By the request itself, then for the list of refused keys.
        assert asked == [secret, secret]


async def test_a_database_that_does_not_answer_refuses_no_key(recollect, monkeypatch):
    _, secret = await new_key(recollect)
    authenticate = type(recollect).authenticate

    async def fail(*_arguments, **_options):
        raise UnavailableError("try again")

    async with http_client(recollect, "") as http:
        monkeypatch.setattr(type(recollect), "authenticate", fail)
        assert [await ask(http, secret) for _ in range(2)] == [503, 503]
        monkeypatch.setattr(type(recollect), "authenticate", authenticate)
        assert await ask(http, secret) == 200


async def test_unknown_keys_share_few_slots_and_accepted_ones_need_none(recollect, monkeypatch):
    _, secret = await new_key(recollect)
    gate, waiting, authenticate = asyncio.Event(), [], type(recollect).authenticate

    async def wait(running, shown, *arguments, **options):
        if shown != secret:
            waiting.append(shown)
            await gate.wait()
        return await authenticate(running, shown, *arguments, **options)

    async with http_client(recollect, "") as http:
        assert await ask(http, secret) == 200
        monkeypatch.setattr(type(recollect), "authenticate", wait)
        asking = [asyncio.create_task(ask(http, well_formed(CHANCE))) for _ in range(CHECKS * 5)]
        await until(lambda: len(waiting) == CHECKS)
        assert [await ask(http, secret) for _ in range(5)] == [200] * 5
        assert len(waiting) == CHECKS
        gate.set()
        assert set(await asyncio.gather(*asking)) == {401}


async def test_the_lists_of_keys_are_bounded_and_hold_no_key():
    recent = RecentKeys[int](60.0)
    for number in range(MAX_KEYS + 10):
        recent.store_value(f"rec_{number}", number)
    assert len(recent._values) == MAX_KEYS
    assert (recent.find_value("rec_9"), recent.find_value("rec_10")) == (None, 10)
    recent.store_value("rec_10", 11)
    recent.store_value("rec_new", 1)
    assert (recent.find_value("rec_10"), recent.find_value("rec_11")) == (11, None)
    assert {len(key) for key in recent._values} == {32}


async def test_a_slot_is_free_again_after_a_pause_whatever_happened_in_it():
    slots = Slots()
    async with slots.take():
        leaver = asyncio.create_task(slots.take().__aenter__())
        await asyncio.sleep(0)
        leaver.cancel()
    assert slots._free.locked(), "it pauses"
    with pytest.raises(ZeroDivisionError):
        async with slots.take():
            raise ZeroDivisionError
    async with slots.take():
        assert slots._free.locked()
    await until(lambda: not slots._free.locked())


@pytest.mark.promise("Readiness, metrics and the OpenAPI document are copied, by one request at a time")
async def test_many_who_ask_at_once_are_answered_from_one_copy(recollect, monkeypatch):
    monkeypatch.setattr(key_check, "COPY_SECONDS", 3600.0)
    checked, written = [], []
    app = create_app(recollect=recollect)
    ready, openapi = type(recollect).ready, app.openapi

    async def check(running):
        checked.append(1)
        await asyncio.sleep(0.01)
        return await ready(running)

    monkeypatch.setattr(type(recollect), "ready", check)
    monkeypatch.setattr(app, "openapi", lambda: written.append(1) or openapi())
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS, trust_env=False) as http:
        answers = await asyncio.gather(*(http.get("/health/ready") for _ in range(20)))
        assert {each.text for each in answers} == {'{"status":"ok"}'}
        assert len({each.headers["x-request-id"] for each in answers}) == 20
        assert {each.headers["content-type"] for each in answers} == {"application/json"}
        for _ in range(3):
            assert (await http.get("/openapi.json")).json()["openapi"]
        assert (checked, written) == ([1], [1])
        metrics = {(await http.get("/metrics")).text for _ in range(3)}
        assert len(metrics) == 1
        # A query is no copy's business.
        assert (await http.get("/health/ready?x=1")).status_code == 422
        assert (await http.post("/metrics")).status_code == 405


async def test_what_is_no_copy_holds_up_no_probe(recollect, monkeypatch):
    gate, entered, ask_application = asyncio.Event(), [], KeyCheck._ask

    async def wait(check, scope, receive):
        if scope["query_string"]:
            entered.append(scope["path"])
            await gate.wait()
        return await ask_application(check, scope, receive)

    monkeypatch.setattr(KeyCheck, "_ask", wait)
    async with http_client(recollect, "") as http:
        asking = [asyncio.create_task(http.get("/openapi.json?x=1")) for _ in range(3)]
        await until(lambda: entered)
        for path in ("/health/live", "/health/ready", "/metrics", "/openapi.json"):
            async with asyncio.timeout(WAIT_SECONDS):
                assert (await http.get(path)).status_code == 200
        assert len(entered) == 1, "one at a time"
        gate.set()
        assert {each.status_code for each in await asyncio.gather(*asking)} == {200}


async def test_the_pause_after_costly_requests_is_as_long_as_after_others(monkeypatch):
    now, pauses, slots = 0.0, [], KeyChecks().uncopied
    monkeypatch.setattr(module, "monotonic", lambda: now)
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda pause, free: pauses.append(pause) or free())
    for seconds in (0.002, 0.02, 0.1):
        async with slots.take():
            now += seconds
    assert pauses == pytest.approx([0.008, 0.08, 0.4])


async def test_a_copy_is_counted_as_its_route_and_ends(recollect, monkeypatch):
    monkeypatch.setattr(key_check, "COPY_SECONDS", 1.0)
    now = key_check.monotonic()
    monkeypatch.setattr(key_check, "monotonic", lambda: now)
    app = create_app(recollect=recollect)
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS, trust_env=False) as http:
        for _ in range(3):
            assert (await http.get("/health/ready")).status_code == 200
        first = await count_ready(http)
        assert await count_ready(http) == first
        now += 1.5
        for _ in range(3):
            assert (await http.get("/health/ready")).status_code == 200
        assert await count_ready(http) == first + 3


async def count_ready(http):
    counted = 'recollect_http_requests_total{method="GET",route="/health/ready",status="200"} '
    return float(re.search(re.escape(counted) + r"(\S+)", (await http.get("/metrics")).text)[1])


@pytest.fixture
async def ambiguous(recollect):
    """Send raw requests to a server; return statuses."""
    with application(recollect) as app:
        async with serving(app, http=BoundedProtocol, lifespan="off") as url:

            async def send(path, *lines, method="GET", version="1.1"):
                reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(url).port)
                writer.write("\r\n".join([f"{method} {path} HTTP/{version}", *lines, "", ""]).encode())
                async with asyncio.timeout(WAIT_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                writer.close()
                return int(head.split(b" ")[1]), b"connection: close" in head.lower()

            yield send


@pytest.mark.promise("Repeated Authorization, Host or Content-Length, and a missing Host, are answered 400")
async def test_ambiguous_headers_are_refused(recollect, ambiguous, asked):
    _, secret = await new_key(recollect)
    key, host = f"Authorization: Bearer {secret}", "Host: localhost"
    for lines in (
        (host, key, "Authorization: Bearer rec_other"),
        (host, "Authorization: Bearer rec_other", key),
        (host, key, key),
        (host, "Host: other", key),
        (host, host, key),
        (host, key, "Content-Length: 0", "Content-Length: 0"),
        (host, key, "Content-Length: 0", "content-length: 5"),
        (key,),
    ):
        assert await ambiguous(OWN, *lines) == (400, True), lines
    assert (await ambiguous("/health/live", host, host))[0] == 400
    assert asked == []
    assert (await ambiguous(OWN, host, key))[0] == 200
    assert (await ambiguous(OWN, key, version="1.0"))[0] == 200


async def test_no_limit_is_got_round_by_a_second_key(recollect, ambiguous):
    key, secret = await new_key(recollect)
    await recollect.operator.limits.key_limits("default", key.id, Limits(0.001, 2, change_streams=1))
    real, host = f"Authorization: Bearer {secret}", "Host: localhost"
    for path in (OWN, "/v1/changes?agent=ada"):
        made_up = [ambiguous(path, host, real, f"Authorization: Bearer rec_{number}") for number in range(10)]
        assert {status for status, _ in await asyncio.gather(*made_up)} == {400}
    # None of them was counted.
    assert [(await ambiguous(OWN, host, real))[0] for _ in range(3)] == [200, 200, 429]


async def test_refusals_before_the_key_take_turns_as_well(recollect, ambiguous, monkeypatch):
    taken = []
    take = Slots.take

    def count(slots):
        taken.append(slots)
        return take(slots)

    monkeypatch.setattr(Slots, "take", count)
    for path, *lines in (
        (OWN,),
        (OWN, "Host: localhost", "Content-Length: 99999999999"),
        (OWN, "Host: localhost", "Recollect-Max-Staleness: x"),
        (OWN, "Host: localhost"),
        ("/metrics", "Host: localhost", "Content-Length: 99999"),
    ):
        taken.clear()
        assert 400 <= (await ambiguous(path, *lines))[0] < 500
        assert len(taken) == 1, path


@asynccontextmanager
async def asking_at(recollect, **settings):
    """Give a client of an application with other settings, and its ports."""
    changed = replace(recollect, settings=change_settings(recollect.settings, **settings))
    app = create_app(recollect=changed)
    app.state.recollect = changed
    _, secret = await new_key(recollect)
    headers, transport = {"Authorization": f"Bearer {secret}"}, httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:7077", headers=headers) as http:
        yield http


async def test_health_and_metrics_can_have_a_port_of_their_own(recollect):
    own, api = f"http://localhost:{HEALTH_PORT}", "http://localhost:7077"
    async with asking_at(recollect, operations__health_port=HEALTH_PORT) as http:
        for path in ("/health/live", "/health/ready", "/metrics"):
            assert [(await http.get(base + path)).status_code for base in (own, api)] == [200, 404]
        for path in (OWN, "/openapi.json", "/console", "/mcp", "/docs"):
            assert (await http.get(own + path)).status_code == 404
        assert [(await http.get(api + path)).status_code for path in (OWN, "/openapi.json")] == [200, 200]
    for port in (0, 7077):
        async with asking_at(recollect, operations__health_port=port) as http:
            assert [(await http.get(path)).status_code for path in ("/health/live", OWN)] == [200, 200]


async def test_a_crowd_on_one_port_takes_no_turn_of_the_other(recollect):
    async with asking_at(recollect, operations__health_port=HEALTH_PORT) as http:
        keys = http._transport.app.state.keys
        async with keys.public.take(), keys.refusals.take(), keys.checks.take(), keys.checks.take():
            assert (await http.get(f"http://localhost:{HEALTH_PORT}/health/live")).status_code == 200
            assert await ask(http, "rec_none", f"http://localhost:{HEALTH_PORT}/metrics") == 200


async def test_a_body_without_a_key_is_small(recollect):
    async with http_client(recollect, "") as http:
        large = {"key": "x" * 2 * middleware.MAX_PUBLIC_BODY_BYTES}
        assert (await http.post("/console/session", json=large)).status_code == 413


async def test_no_address_makes_a_valid_key_wait(recollect):
    """A proxy lends its address, and its connections, to many clients."""
    app, now = create_app(recollect=recollect), asyncio.get_running_loop().time()
    app.state.recollect, capacity = recollect, Capacity()
    app.state.capacity = capacity
    shared = {"app": app, "connection": ("127.0.0.1", 1), "client": ("127.0.0.1", 1), "path": OWN}
    refused, other = (Slot(shared | {"secret": secret}) for secret in ("rec_a", "rec_b"))
    capacity.enter(refused._requester, 1, now, lambda: None)
    waiting = capacity.enter(refused._requester, 1, now, lambda: None)
    capacity.refuse(waiting, 1, now)
    assert refused.time_left() > 0
    assert other.time_left() == 0


async def test_headers_of_proxies_count_only_if_they_are_named(recollect):
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7", "Forwarded": "proto=https"}
    for proxies, scheme in (("", "http"), ("192.0.2.0/24", "http"), ("127.0.0.1", "https"), ("127.0.0.0/8", "https")):
        async with asking_at(recollect, operations__proxies=proxies) as http:
            answer = await http.get("/openapi-dify.json", headers=forwarded)
        assert answer.json()["servers"][0]["url"].partition(":")[0] == scheme, proxies


async def test_a_refused_key_raises_what_it_did_at_first(recollect):
    keys, wrong, said = KeyChecks(), well_formed(CHANCE), set()
    for _ in range(2):
        with pytest.raises(UnauthenticatedError) as caught:
            await keys.check(recollect, wrong)
        said.add(str(caught.value))
    assert len(said) == 1
    assert json.dumps(said.pop())
