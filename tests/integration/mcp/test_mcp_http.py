"""The MCP door over HTTP: the bearer key of each request decides, on a real port, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from dataclasses import replace

import httpx
import pytest
from mcp.shared.exceptions import MCPError

from conftest import http_client, new_key
from recollect.doors.http import middleware
from recollect.models.service import Right
from support.programs.waiting import hurry
from support.service.mcp_doors import bound_key, listening, over_http

MODES = ["auto", "legacy", "2026-07-28"]
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
SECRET = "the vault opens with 4711"


def calling(tool, **arguments):
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


async def post(http, body, path="/mcp", **headers):
    return await http.post(path, json=body, headers=HEADERS | headers)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize("mode", MODES)
async def test_a_session_of_the_official_client(recollect, owner, mode, path):
    secret = await bound_key(recollect)
    async with listening(recollect) as url, over_http(url, secret, mode, path) as client:
        assert [tool.name for tool in (await client.list_tools()).tools][:2] == ["remember", "recall"]
        stored = (await client.call_tool("remember", {"content": "Li drinks tea"})).structured_content
        found = (await client.call_tool("recall", {"text": "what does Li drink"})).structured_content
        assert [hit["id"] for hit in found["hits"]] == [stored["id"]]
        bad = await client.call_tool("recall", {"text": "x", "limit": 500})
        assert (bad.is_error, "limit" in bad.content[0].text) == (True, True)
        [memory] = (await client.read_resource(f"memory://memories/{stored['id']}")).contents
        assert json.loads(memory.text)["origin"] == "mcp:bot"
        filled = await client.get_prompt("with_memory", {"question": "tea?"})
        assert "Li drinks tea" in filled.messages[0].content.text
        with pytest.raises(MCPError):
            await client.read_resource("memory://nowhere")
    assert owner.execute('select agent, "user" from scopes').fetchall() == [("ada", "li")]


async def test_a_key_that_is_not_bound_names_the_scope(recollect):
    _, secret = await new_key(recollect)
    await (await recollect.mind("ada", "li")).remember("Li drinks tea")
    async with listening(recollect) as url, over_http(url, secret) as client:
        unnamed = await client.call_tool("recall", {"text": "tea"})
        assert (unnamed.is_error, "agent is required" in unnamed.content[0].text) == (True, True)
        named = await client.call_tool("recall", {"text": "tea", "agent": "ada", "user": "li"})
        assert len(named.structured_content["hits"]) == 1
        listed = await client.read_resource("memory://topics?agent=ada&user=li")
        assert listed.contents[0].text


async def test_every_tool_refuses_other_names_than_the_keys(recollect):
    secret, foreign = await bound_key(recollect), await recollect.mind("bob", "li")
    [receipt] = await foreign.remember(SECRET)
    arguments = {
        "remember": {"content": "x"},
        "recall": {"text": "vault"},
        "associate": {"subject": "vault"},
        "history": {"conversation": "c"},
        "context": {"text": "vault"},
        "update_memory": {"id": str(receipt.id), "content": "x"},
        "forget": {"ids": [str(receipt.id)]},
    }
    texts = set()
    async with listening(recollect) as url, over_http(url, secret) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert set(tools) == set(arguments), "a tool that no attack knows"
        for tool in tools:
            for names in ({"agent": "bob"}, {"agent": "nobody"}, {"user": "zoe"}, {"agent": "bob", "user": "li"}):
                refused = await client.call_tool(tool, arguments[tool] | names)
                assert refused.is_error, (tool, names)
                texts.add(refused.content[0].text)
        unknown = await client.call_tool("forget", {"ids": [str(receipt.id)]})
        for uri in (f"memory://memories/{receipt.id}", "memory://topics?agent=bob", "memory://entities?user=zoe"):
            with pytest.raises(MCPError) as refusal:
                await client.read_resource(uri)
            assert SECRET not in refusal.value.message
        with pytest.raises(MCPError):
            await client.get_prompt("with_memory", {"question": "vault", "agent": "bob"})
    assert len(texts) == 1
    assert unknown.structured_content == {"forgotten": []}
    assert (await foreign.get(receipt.id)).content == SECRET


async def test_the_rights_of_the_key_count(recollect):
    secret = await bound_key(recollect, rights=(Right.READ,))
    async with listening(recollect) as url, over_http(url, secret) as client:
        refused = await client.call_tool("remember", {"content": "x"})
        assert (refused.is_error, refused.content[0].text) == (
            True,
            "This API key does not have the `write` permission.",
        )
        assert not (await client.call_tool("recall", {"text": "x"})).is_error


# Turned away at the door.


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize("key", ["", "Basic abc", "Bearer ", "Bearer rec_unknown"])
async def test_without_a_valid_key_there_is_no_answer(recollect, key, path):
    async with http_client(recollect, "") as http:
        answer = await post(http, LIST, path, **({"Authorization": key} if key else {}))
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json()["code"] == "unauthenticated"


async def test_a_key_that_is_revoked_is_turned_away_at_once(recollect):
    key, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        assert (await post(http, LIST)).status_code == 200
        await recollect.revoke_key(await recollect.operator.act_for("default"), key.id)
        assert (await post(http, LIST)).status_code == 401


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_there_is_nothing_to_get_or_to_end(recollect, method):
    async with http_client(recollect, await bound_key(recollect)) as http:
        answer = await http.request(method, "/mcp", headers=HEADERS)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("origin", "status"), [("http://localhost:6274", 200), ("http://evil.example", 403), ("null", 403)]
)
async def test_pages_of_other_sites_are_turned_away(recollect, origin, status):
    async with http_client(recollect, await bound_key(recollect)) as http:
        assert (await post(http, LIST, Origin=origin)).status_code == status


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"[" * 100_000, b'{"jsonrpc": "2.0"}', b"\xff\xfe"])
@pytest.mark.parametrize("version", ["", "2025-06-18", "2026-07-28", "1999-01-01"])
async def test_what_is_no_request_is_refused(recollect, body, version):
    headers = HEADERS | ({"MCP-Protocol-Version": version} if version else {})
    async with http_client(recollect, await bound_key(recollect)) as http:
        answer = await http.post("/mcp", content=body, headers=headers)
    assert 400 <= answer.status_code < 500


# Along with the rest of the application.


async def test_requests_are_counted_logged_and_numbered(recollect, caplog):
    caplog.set_level(logging.INFO, "recollect")
    before = middleware.REQUESTS.labels("POST", "/mcp", "200")._value.get()
    async with http_client(recollect, await bound_key(recollect)) as http:
        answer = await post(http, calling("remember", content=SECRET), **{"X-Request-Id": "asked-1"})
        again = await post(http, calling("recall", text=SECRET, limit="hush-hush"), "/mcp/")
        metrics = (await http.get("/metrics")).text
    assert answer.headers["x-request-id"] == "asked-1"
    assert again.json()["result"]["isError"]
    assert middleware.REQUESTS.labels("POST", "/mcp", "200")._value.get() == before + 2
    assert 'recollect_mcp_calls_total{outcome="ok",what="remember"}' in metrics
    lines = [json.loads(record.message) for record in caplog.records if record.name.startswith("recollect")]
    assert [line["route"] for line in lines if line["event"] == "request"][:2] == ["/mcp", "/mcp"]
    assert [line["outcome"] for line in lines if line["event"] == "mcp_request"] == ["ok", "invalid_input"]
    assert "4711" not in caplog.text
    assert "hush" not in caplog.text
    assert "rec_" not in caplog.text


@pytest.mark.parametrize(
    ("listens", "named", "host", "status"),
    [
        ("127.0.0.1", "", "localhost:7077", 200),
        ("127.0.0.1", "", "[::1]:7077", 200),
        ("127.0.0.1", "", "evil.example", 403),
        ("127.0.0.1", "", "[", 403),
        ("127.0.0.1", "memory.example, other.example", "memory.example", 200),
        ("0.0.0.0", "", "memory.example", 200),
        ("0.0.0.0", "memory.example", "evil.example", 403),
    ],
)
async def test_a_name_that_the_server_does_not_go_by_is_refused(recollect, listens, named, host, status):
    secret = await bound_key(recollect)
    settings = recollect.settings.model_copy(update={"host": listens, "mcp_allowed_hosts": named})
    async with http_client(replace(recollect, settings=settings), secret) as http:
        answer = await http.post("/mcp", json=calling("recall", text="tea"), headers=HEADERS | {"Host": host})
    assert answer.status_code == status
    assert ("RECOLLECT_MCP_ALLOWED_HOSTS" in answer.text) == (status == 403)


async def test_a_body_that_is_too_large_is_refused_and_a_large_one_is_not(recollect, monkeypatch):
    secret = await bound_key(recollect)
    async with http_client(recollect, secret) as http:
        large = await post(http, calling("recall", text="x" * 200_000))
        assert (large.status_code, large.json()["result"]["isError"]) == (200, True)
        monkeypatch.setattr(middleware, "MAX_BODY_BYTES", 100_000)
        announced = await post(http, calling("recall", text="x" * 200_000))

        async def pieces():
            for _ in range(200):
                yield b" " * 1000

        streamed = await http.post("/mcp", content=pieces(), headers=HEADERS)
    assert [answer.status_code for answer in (announced, streamed)] == [413, 413]
    assert streamed.json()["code"] == "too_large"


async def test_the_deadline_ends_a_call(recollect, owner):
    secret = await bound_key(recollect)
    await (await recollect.mind("ada", "li")).remember("tea")
    owner.execute("begin")
    owner.execute("lock table memories in access exclusive mode")
    async with http_client(hurry(recollect, 0.5), secret) as http:
        answer = await post(http, calling("forget", ids=["01a1dd05-b16b-7000-b535-83c8ebea4fa9"]))
    owner.execute("rollback")
    late = answer.status_code == 503 or answer.json()["result"]["isError"]
    assert late, answer.text
    assert "try again" in answer.text
    async with http_client(recollect, secret) as http:
        assert (await post(http, calling("recall", text="tea"))).json()["result"]["structuredContent"]["hits"]


async def test_clients_that_leave_do_no_harm(recollect):
    headers = {"Authorization": f"Bearer {await bound_key(recollect)}"}
    impatient = httpx.Timeout(5, read=0.001)
    async with listening(recollect) as url, httpx.AsyncClient(base_url=url, trust_env=False) as http:
        for _ in range(20):
            with suppress(httpx.ReadTimeout):
                await http.post(
                    "/mcp", json=calling("recall", text="tea"), headers=HEADERS | headers, timeout=impatient
                )
        assert (await post(http, LIST, **headers)).status_code == 200
    assert recollect.pool_counters()[""].get("requests_waiting", 0) == 0


async def test_the_old_handshake_needs_no_session(recollect):
    """Dify and other clients of the first revisions: initialize, a notification, then calls, each by itself."""
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "dify", "version": "1"}}
    async with http_client(recollect, await bound_key(recollect)) as http:
        greeted = await post(http, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin})
        assert greeted.json()["result"]["serverInfo"]["name"] == "recollect"
        assert "mcp-session-id" not in greeted.headers
        noted = await post(http, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert noted.status_code == 202
        version = {"MCP-Protocol-Version": "2025-06-18"}
        assert (await post(http, calling("remember", content="tea"), **version)).json()["result"]["structuredContent"]


async def test_keys_that_take_turns_do_not_mix(recollect):
    secrets = [await bound_key(recollect, "ada", f"user-{number}") for number in range(8)]
    async with http_client(recollect, "") as http:

        async def ask(number):
            key = {"Authorization": f"Bearer {secrets[number]}"}
            await post(http, calling("remember", content=f"the number of this user is {number}"), **key)
            answer = await post(http, calling("recall", text="what is the number of this user"), **key)
            return [hit["content"][-1] for hit in answer.json()["result"]["structuredContent"]["hits"]]

        found = await asyncio.gather(*map(ask, range(8)))
    assert found == [[str(number)] for number in range(8)]
