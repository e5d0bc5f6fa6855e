"""The door of the console: its pages, its session, and who may use neither."""

from __future__ import annotations

import gzip
import json
import logging
import re
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from conftest import application, new_key
from recollect.doors.http import console
from recollect.doors.http.app import create_app
from recollect.doors.http.middleware import MAX_BODY_BYTES
from recollect.models.service import KeyBinding, Right
from support.service.made_settings import change_settings

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
OWN = {"X-Recollect-Console": "1"}
SCRIPT = b"console.log('a script that is long enough to be worth compressing');" * 20
INDEX = b'<!doctype html><html><head lang="en"><meta charset="utf-8"></head><body></body></html>'
SCOPE = {"agent": "ada", "user": "li"}


@pytest.fixture
def pages(tmp_path):
    """A console that was built."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_bytes(INDEX)
    (tmp_path / "assets" / "index-1a2b.js").write_bytes(SCRIPT)
    (tmp_path / "assets" / "index-1a2b.css").write_bytes(b"body { color: red }")
    return console.StaticFiles.load_files(tmp_path)


@asynccontextmanager
async def browsing(recollect, pages=None, url="http://localhost", **settings):
    """A browser without a key, with a place for cookies; the application as it is with other settings."""
    if settings:
        object.__setattr__(recollect, "settings", change_settings(recollect.settings, **settings))
    with application(recollect) as app:
        usual, links = app.state.pages, app.state.links
        app.state.pages, app.state.links = pages or console.StaticFiles({}), console.OneTimeLinks()
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        try:
            async with httpx.AsyncClient(transport=transport, base_url=url) as client:
                client.links = app.state.links
                yield client
        finally:
            app.state.pages, app.state.links = usual, links


async def sign_in(client, secret, **headers):
    return await client.post("/console/session", json={"key": secret}, headers=OWN | headers)


def with_cookie(answer, **headers):
    """Send what a browser would send back: the cookie, by hand, as the test's address has no TLS."""
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]} | headers


# Pages.


@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("/console", "console/"),
        ("/console/", "./"),
        ("/console/keys", "./"),
        ("/console/a/ada/u/li/mind?kind=fact&order=newest", "../../../../"),
        ("/console/a/a%2Fda/u/-/ask", "../../../../"),
        ("/console/a/", "../"),
    ],
)
async def test_every_path_is_the_page_with_its_base_and_its_headers(recollect, pages, path, base):
    async with browsing(recollect, pages) as client:
        answer = await client.get(path)
    assert answer.status_code == 200
    assert f'<head lang="en"><base href="{base}"><meta' in answer.text
    assert {name: answer.headers[name] for name in ("content-security-policy", "referrer-policy")} == {
        "content-security-policy": POLICY,
        "referrer-policy": "no-referrer",
    }
    assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-cache")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert httpx.URL(f"http://proxy/any/where{path}").join(base).path == "/any/where/console/"


async def test_a_base_that_the_build_has_left_is_replaced(recollect, tmp_path):
    (tmp_path / "index.html").write_bytes(b'<head><base href="/elsewhere/"><title>x</title></head>')
    async with browsing(recollect, console.StaticFiles.load_files(tmp_path)) as client:
        assert (await client.get("/console/")).text == '<head><base href="./"><title>x</title></head>'


async def test_an_asset_is_given_for_good_and_compressed(recollect, pages):
    async with browsing(recollect, pages) as client:
        plain = await client.get("/console/assets/index-1a2b.js", headers={"Accept-Encoding": "identity"})
        packed = await client.get("/console/assets/index-1a2b.js", headers={"Accept-Encoding": "br, gzip"})
    for answer in (plain, packed):
        assert answer.content == SCRIPT
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["vary"] == "Accept-Encoding"
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == len(gzip.compress(SCRIPT, mtime=0)) < len(SCRIPT)


async def test_files_are_kept_in_memory(recollect, pages, tmp_path):
    (tmp_path / "assets" / "index-1a2b.js").unlink()
    async with browsing(recollect, pages) as client:
        assert (await client.get("/console/assets/index-1a2b.js")).status_code == 200


@pytest.mark.parametrize("name", ["gone-9.js", "", "..%2Findex.html", "%2e%2e/%2e%2e/app.py"])
async def test_an_asset_that_is_not_there_is_not_the_page(recollect, pages, name):
    async with browsing(recollect, pages) as client:
        answer = await client.get(httpx.URL("http://localhost").copy_with(raw_path=b"/console/assets/" + name.encode()))
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


async def test_a_console_that_was_not_built_says_how_to(recollect):
    async with browsing(recollect) as client:
        answer = await client.get("/console")
    assert (answer.status_code, answer.text.count("make console")) == (404, 1)


async def test_a_console_that_is_off_is_not_there(recollect, pages):
    _, secret = await new_key(recollect)
    async with browsing(recollect, pages, console="off") as client:
        answers = [
            await client.get("/console"),
            await client.get("/console/assets/index-1a2b.js"),
            await sign_in(client, secret),
            await client.delete("/console/session", headers=OWN),
        ]
    assert {answer.status_code for answer in answers} == {404}


def test_the_document_does_not_list_the_console():
    assert [path for path in create_app().openapi()["paths"] if "console" in path] == []


# The session.


@pytest.mark.promise(
    "The console's cookie is out of reach of scripts and of other sites, and ends when it is signed out"
)
async def test_signing_in_and_out(recollect):
    key, secret = await new_key(recollect)
    async with browsing(recollect) as client:
        answer = await sign_in(client, secret)
        flags = answer.headers["set-cookie"].split("; ")
        assert re.fullmatch(r"recollect_console=rec_[\w-]{52}", flags[0])
        assert sorted(flags[1:]) == ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=strict", "Secure"]
        own, headers = answer.json(), with_cookie(answer, **OWN)
        assert secret not in answer.headers["set-cookie"]
        assert (answer.status_code, own["name"], own["trust"]) == (201, "test", 50)
        assert sorted(own["rights"]) == sorted(Right)
        assert timedelta(hours=11.9) < datetime.fromisoformat(own["expires_at"]) - datetime.now(UTC)
        assert (await client.get("/v1/key", headers=headers)).json() == own
        out = await client.delete("/console/session", headers=headers)
        assert (out.status_code, "Max-Age=0" in out.headers["set-cookie"]) == (204, True)
        assert (await client.get("/v1/key", headers=headers)).status_code == 401
        assert (await client.delete("/console/session", headers=headers)).status_code == 204
    assert (await recollect.authenticate(secret, "http")).key_id == key.id


@pytest.mark.parametrize("shown", ["rec_wrong", "", None])
async def test_a_wrong_key_is_refused(recollect, shown):
    async with browsing(recollect) as client:
        answer = await sign_in(client, shown)
    assert (answer.status_code, "set-cookie" in answer.headers) == (422 if shown is None else 401, False)


async def test_what_a_session_stores_came_by_the_console(recollect):
    _, secret = await new_key(recollect)
    async with browsing(recollect) as client:
        headers = with_cookie(await sign_in(client, secret), **OWN)
        stored = await client.post("/v1/memories", json=SCOPE | {"memories": [{"content": "tea"}]}, headers=headers)
    assert stored.status_code == 201
    memory = await (await recollect.mind("ada", "li")).get(stored.json()["memories"][0]["id"])
    assert memory.origin == "console:test"


@pytest.mark.promise("Without the console's own header, or from another site, its cookie counts nowhere")
@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"X-Recollect-Console": "0"},
        OWN | {"Sec-Fetch-Site": "cross-site"},
        OWN | {"Sec-Fetch-Site": "same-site"},
        OWN | {"Sec-Fetch-Site": "none"},
    ],
    ids=["no header", "wrong header", "cross-site", "same-site", "none"],
)
async def test_what_another_page_may_have_sent_is_refused(recollect, sent):
    _, secret = await new_key(recollect)
    async with browsing(recollect) as client:
        headers = with_cookie(await sign_in(client, secret))
        answers = [
            await client.get("/v1/memories", params=SCOPE, headers=headers | sent),
            await client.post("/v1/recall", json=SCOPE | {"text": "x"}, headers=headers | sent),
            await client.delete("/console/session", headers=headers | sent),
            await client.post("/console/session", json={"key": secret}, headers=sent),
        ]
        still = await client.get("/v1/key", headers=headers | OWN | {"Sec-Fetch-Site": "same-origin"})
    assert [answer.status_code for answer in answers] == [403] * 4
    assert {answer.json()["code"] for answer in answers} == {"forbidden"}
    assert still.status_code == 200


async def test_a_key_in_the_header_wins_over_the_cookie(recollect):
    _, secret = await new_key(recollect)
    other, shown = await new_key(recollect)
    async with browsing(recollect) as client:
        headers = with_cookie(await sign_in(client, secret), Authorization=f"Bearer {shown}")
        assert (await client.get("/v1/key", headers=headers)).json()["id"] == str(other.id)
        wrong = headers | {"Authorization": "Bearer rec_wrong"} | OWN
        assert (await client.get("/v1/key", headers=wrong)).status_code == 401


@pytest.mark.parametrize("path", ["/mcp", "/dify/v1/recall", "/dify/retrieval"])
async def test_the_cookie_counts_at_no_other_door(recollect, path):
    _, secret = await new_key(recollect)
    async with browsing(recollect) as client:
        headers = with_cookie(await sign_in(client, secret), **OWN)
        assert (await client.post(path, json={}, headers=headers)).status_code in {401, 403}


@pytest.mark.parametrize("ended", ["expired", "parent revoked", "parent expired"])
async def test_a_session_ends(recollect, owner, ended):
    key, secret = await new_key(recollect)
    past = "update api_keys set expires_at = now() - interval '1 ms' where "
    async with browsing(recollect) as client:
        headers = with_cookie(await sign_in(client, secret), **OWN)
        match ended:
            case "expired":
                owner.execute(past + "parent = %s", [key.id])
            case "parent revoked":
                await recollect.revoke_key(await recollect.operator.act_for("default"), key.id)
            case _:
                owner.execute(past + "id = %s", [key.id])
        assert (await client.get("/v1/key", headers=headers)).status_code == 401


async def test_a_session_has_the_rights_and_bounds_of_its_key(recollect):
    operator = await recollect.operator.act_for("default")
    _, secret = await recollect.create_key(operator, "guest", [Right.READ], 10, KeyBinding("ada", "li"))
    async with browsing(recollect) as client:
        answer = await sign_in(client, secret)
        headers = with_cookie(answer, **OWN)
        read = await client.get("/v1/memories", params=SCOPE, headers=headers)
        write = await client.post("/v1/memories", json=SCOPE | {"memories": [{"content": "x"}]}, headers=headers)
        foreign = await client.get("/v1/memories", params={"agent": "bob"}, headers=headers)
        keys = await client.get("/v1/keys", headers=headers)
    assert (answer.json()["agent"], answer.json()["user"], answer.json()["rights"]) == ("ada", "li", ["read"])
    assert [each.status_code for each in (read, write, foreign, keys)] == [200, 403, 403, 403]


@pytest.mark.promise("No answer below /v1/ is stored by a browser or a proxy, or taken for another type than it is")
async def test_no_answer_with_data_is_kept(recollect):
    _, secret = await new_key(recollect)
    async with browsing(recollect) as client:
        headers = with_cookie(await sign_in(client, secret), **OWN)
        answers = [
            await client.get("/v1/key", headers=headers),
            await client.get("/v1/key"),
            await client.get("/v1/nothing", headers=headers),
            await client.put("/v1/key", headers=headers),
            await client.get("/v1/memories", params=SCOPE | {"limit": "x"}, headers=headers),
            await client.post("/v1/memories", content=b"x" * (MAX_BODY_BYTES + 1), headers=headers),
            await client.post("/v1/memories", json=SCOPE | {"memories": [{"content": "x"}]}, headers=headers),
            await client.get("/v1/export", params={"agent": "ada"}, headers=headers),
        ]
    assert [each.status_code for each in answers] == [200, 401, 404, 405, 422, 413, 201, 200]
    for each in answers:
        assert each.headers.get_list("cache-control") == ["no-store"], each.request
        assert each.headers.get_list("x-content-type-options") == ["nosniff"], each.request


# Without TLS.


@pytest.mark.parametrize(
    ("url", "origin", "status"),
    [
        ("http://localhost:7077", None, 201),
        ("http://127.0.0.1:7077", "http://127.0.0.1:7077", 201),
        ("http://[::1]:7077", None, 201),
        ("https://memory.example", None, 201),
        ("http://memory.example", "https://memory.example", 201),
        ("http://memory.example", None, 422),
        ("http://192.168.0.7:7077", "http://192.168.0.7:7077", 422),
        ("http://127.0.0.1:7077", "http://memory.example", 422),
        ("http://localhost.example", None, 422),
    ],
)
async def test_signing_in_needs_tls_but_on_the_machine_itself(recollect, url, origin, status):
    _, secret = await new_key(recollect)
    async with browsing(recollect, url=url) as client:
        answer = await sign_in(client, secret, **({"Origin": origin} if origin else {}))
    assert answer.status_code == status
    assert status == 201 or "requires HTTPS" in answer.json()["detail"]
    assert ("set-cookie" in answer.headers) == (status == 201)


# The link that works once.


async def use_link(client, link, **headers):
    return await client.post("/console/session", json={"link": link}, headers=OWN | headers)


async def test_a_link_signs_in_once(recollect):
    async with browsing(recollect) as client:
        link = client.links.make("default")
        first, second = await use_link(client, link), await use_link(client, link)
        headers = with_cookie(first, **OWN)
        stored = await client.post("/v1/memories", json=SCOPE | {"memories": [{"content": "x"}]}, headers=headers)
    assert (first.status_code, second.status_code, stored.status_code) == (201, 401, 201)
    assert first.json()["name"] == "operator"
    assert len(link) * 6 >= 128
    assert link not in repr(client.links.valid)


async def test_a_link_is_over_after_ten_minutes(recollect, monkeypatch):
    async with browsing(recollect) as client:
        link, now = client.links.make("default"), console.time.monotonic()
        monkeypatch.setattr(console.time, "monotonic", lambda: now + 601)
        assert (await use_link(client, link)).status_code == 401


async def test_a_link_counts_on_the_machine_itself_alone(recollect):
    async with browsing(recollect, url="https://memory.example") as client:
        link = client.links.make("default")
        assert (await use_link(client, link)).status_code == 401
        assert (await use_link(client, link, Origin="https://localhost")).status_code == 201


async def test_a_link_that_nobody_made_is_refused(recollect):
    async with browsing(recollect) as client:
        assert (await use_link(client, "guess")).status_code == 401
        assert (await client.post("/console/session", json={}, headers=OWN)).status_code == 422


# What is logged.


@pytest.mark.promise("No log line holds a key, a session or a link, right or wrong")
async def test_no_log_line_holds_a_secret(recollect, caplog):
    caplog.set_level(logging.DEBUG)
    _, secret = await new_key(recollect)
    async with browsing(recollect) as client:
        link = client.links.make("default")
        answers = [
            await sign_in(client, secret),
            await sign_in(client, secret[:-1] + "?"),
            await use_link(client, link),
            await use_link(client, link),
            await client.post("/console/session", json={"key": [secret], "link": {"x": link}}, headers=OWN),
            await client.post("/console/session", content=f'{{"key": "{secret}', headers=OWN),
        ]
        cookies = [with_cookie(answer)["Cookie"].partition("=")[2] for answer in answers if answer.status_code == 201]
        await client.get("/v1/key", headers=with_cookie(answers[0], **OWN))
    said = caplog.text + "".join(answer.text for answer in answers)
    assert len(cookies) == 2
    assert [each for each in (secret[4:], link, *(cookie[4:] for cookie in cookies)) if each in said] == []
    routes = [json.loads(line.message)["route"] for line in caplog.records if line.name == "recollect.http"]
    assert routes == ["/console/session"] * 6 + ["/v1/key"]


# Other origins.


SHOP = "https://shop.example"
PREFLIGHT = {"Origin": SHOP, "Access-Control-Request-Method": "POST"}


async def test_no_other_origin_is_admitted_unless_it_is_named(recollect):
    _, secret = await new_key(recollect)
    shown = {"Authorization": f"Bearer {secret}", "Origin": SHOP}
    async with browsing(recollect) as client:
        answers = [await client.options("/v1/recall", headers=PREFLIGHT), await client.get("/v1/key", headers=shown)]
    assert [name for answer in answers for name in answer.headers if name.startswith("access-control")] == []


@pytest.mark.promise("Other origins are admitted with a key alone: no cookie, and not the console's header")
async def test_an_origin_that_is_named_may_call_with_a_key(recollect):
    _, secret = await new_key(recollect)
    async with browsing(recollect, cors_origins=f"https://other.example, {SHOP}/") as client:
        asked = await client.options("/v1/recall", headers=PREFLIGHT)
        answer = await client.get("/v1/key", headers={"Authorization": f"Bearer {secret}", "Origin": SHOP})
        refused = await client.get("/v1/key", headers={"Origin": SHOP})
        session = await sign_in(client, secret, Origin=SHOP)
        foreign = await client.options("/v1/recall", headers=PREFLIGHT | {"Origin": "https://evil.example"})
        page = await client.options("/console/session", headers=PREFLIGHT)
    assert (asked.status_code, answer.status_code, refused.status_code) == (204, 200, 401)
    for each in (asked, answer, refused):
        assert (each.headers["access-control-allow-origin"], each.headers["vary"]) == (SHOP, "Origin")
        assert "access-control-allow-credentials" not in each.headers
    allowed = asked.headers["access-control-allow-headers"].lower()
    assert "authorization" in allowed
    assert "x-recollect-console" not in allowed
    for each in (foreign, page, session):
        assert "access-control-allow-origin" not in each.headers
