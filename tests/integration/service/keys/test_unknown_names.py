"""Names that the HTTP door does not know: refused by name, with the one that was meant."""

from __future__ import annotations

import re

import pytest

from conftest import http_client
from recollect.doors.http.app import create_app
from recollect.settings import Settings

SCOPE = {"agent": "ada", "user": "li"}


async def refused(http, method, path, **sent):
    answer = await http.request(method, path, **sent)
    assert answer.status_code == 422, answer.text
    return [(error["field"], error["message"]) for error in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("path", "body", "field", "message"),
    [
        ("/v1/recall", {"query": "x"}, "body.query", "`query` is not known here; did you mean `text`?"),
        ("/v1/recall", {"top_k": 3}, "body.top_k", "`top_k` is not known here; did you mean `limit`?"),
        ("/v1/memories", {"text": "x"}, "body.text", "`text` is not known here; did you mean `content`?"),
        (
            "/v1/memories",
            {"memories": [{"content": "x", "type": "event"}]},
            "body.memories.0.type",
            "`type` is not known here; did you mean `kind`?",
        ),
        (
            "/v1/messages",
            {"conversation": "c", "messages": [{"role": "user", "text": "x"}]},
            "body.messages.0.text",
            "`text` is not known here; did you mean `content`?",
        ),
        (
            "/v1/items",
            {"operations": [{"op": "put", "path": ["a"], "key": "k", "vaule": {}, "value": {}}]},
            "body.operations.0.put.vaule",
            "`vaule` is not known here; did you mean `value`?",
        ),
        (
            "/v1/forget/everything",
            {"dry_run": True, "zzz": 1},
            "body.zzz",
            "`zzz` is not known here; known are `agent`, `user`, `dry_run`",
        ),
    ],
)
async def test_an_unknown_field_is_refused_by_its_name(http, path, body, field, message):
    assert (field, message) in await refused(http, "POST", path, json=SCOPE | body)


async def test_an_unknown_name_is_repeated_in_short_only(http):
    [(field, message)] = await refused(http, "POST", "/v1/recall", json=SCOPE | {"text": "x", "secret\n" * 1000: 1})
    assert field.startswith("body.secret\\nsecret")
    assert len(field) < 60
    assert len(message) < 300


@pytest.mark.parametrize(
    ("method", "path", "name", "message"),
    [
        ("GET", "/v1/memories", "kind", "did you mean `kinds`?"),
        ("DELETE", "/v1/memories/0199a1b2-0000-7000-8000-000000000001", "zzz", "known are `agent`, `user`"),
        ("GET", "/v1/memories", "user_id", "did you mean `user`?"),
        ("GET", "/v1/memories", "asof", "did you mean `as_of`?"),
        ("DELETE", "/v1/memories/0199a1b2-0000-7000-8000-000000000001", "usr", "did you mean `user`?"),
        ("GET", "/v1/entities", "query", "did you mean `search`?"),
        ("POST", "/v1/recall", "limit", "nothing is read from the query"),
        ("GET", "/health/live", "x", "nothing is read from the query"),
    ],
)
async def test_an_unknown_parameter_is_refused_by_its_name(http, method, path, name, message):
    given = {"agent": "ada"} if "memories" in path or "entities" in path else {}
    found = await refused(http, method, path, params=given | {name: "x"})
    assert found == [(f"query.{name}", f"`{name}` is not known here; {message}")]


async def test_every_route_refuses_a_parameter_that_it_does_not_know(http):
    asked = 0
    for path, methods in create_app(Settings(embedder="fake")).openapi()["paths"].items():
        for method in methods:
            place = re.sub(r"{\w+}", "0199a1b2-0000-7000-8000-000000000001", path)
            answer = await http.request(method, place, params={"zzz": 1})
            assert answer.status_code == 422, (method, path, answer.text)
            assert "query.zzz" in answer.text, (method, path, answer.text)
            asked += 1
    assert asked > 60


@pytest.mark.parametrize(
    "kind", [{}, {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}]
)
async def test_a_body_without_its_type_says_which_header_is_missing(http, kind):
    found = await refused(http, "POST", "/v1/recall", content=b'{"agent": "ada", "text": "x"}', headers=kind)
    assert found == [("body", "This is not read as JSON: send the header Content-Type: application/json")]


@pytest.mark.parametrize("path", ["/", "/v1"])
async def test_who_asks_for_nothing_is_shown_what_can_be_asked(recollect, path):
    async with http_client(recollect, "") as client:
        led = await client.get(path)
        assert led.headers["location"] == "/docs"
        shown = await client.get(led.headers["location"])
    assert shown.status_code == 200
    assert "<code>POST /v1/recall</code>" in shown.text
    # It works without a network, and runs nothing.
    assert re.findall(r"(?:src|href)=\"(?!/)[^\"]*", shown.text) == []
    assert "<script" not in shown.text
