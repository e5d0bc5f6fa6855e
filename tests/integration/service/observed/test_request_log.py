"""The log: one line for each request that says who asked for what, and one when a process is ready."""

from __future__ import annotations

import json
import logging

import pytest

from conftest import http_client, new_key
from recollect.doors.cli.server import log_ready
from recollect.doors.logs import JsonFormatter, log_to_stderr
from recollect.models.service import Limits

CANARY = "canary-what-somebody-said"


@pytest.fixture
def lines(caplog):
    """Give a function that returns the events of a kind, as they are written."""
    caplog.set_level(logging.INFO, "recollect")

    def find(event):
        written = [JsonFormatter().format(record) for record in caplog.records if record.name.startswith("recollect")]
        assert CANARY not in "".join(written)
        return [line for line in map(json.loads, written) if line["event"] == event]

    return find


async def test_a_request_is_one_line_with_who_asked(recollect, lines):
    key, secret = await new_key(recollect)
    tenant = (await recollect.operator.act_for("default")).tenant_id
    async with http_client(recollect, secret) as http:
        body = {"agent": "ada", "memories": [{"content": CANARY}]}
        await http.post("/v1/memories", json=body, headers={"X-Request-Id": "r1"})
    [line] = lines("request")
    assert line.pop("milliseconds") > 0
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "event": "request",
        "request_id": "r1",
        "tenant": tenant,
        "key": key.name,
        "method": "POST",
        "route": "/v1/memories",
        "status": 201,
    }


async def test_who_is_refused_is_named_as_far_as_known(recollect, lines):
    key, secret = await new_key(recollect)
    await recollect.operator.limits.key_limits("default", key.id, Limits(requests_per_second=0.001))
    async with http_client(recollect, secret) as http:
        for _ in range(2):
            await http.get("/v1/key")
    async with http_client(recollect, "rec_unknown") as http:
        await http.get("/v1/key")
    assert [(line["status"], line["key"]) for line in lines("request")] == [
        *((200, key.name), (429, key.name)),
        (401, None),
    ]


async def test_a_process_says_with_what_it_is_ready(recollect, lines):
    log_ready(recollect, address="http://127.0.0.1:7077")
    [line] = lines("server_ready")
    assert line["embedder"] == recollect.parts.embedder.model
    assert line["address"] == "http://127.0.0.1:7077"
    assert line["schema"].startswith("00")
    assert int(line["postgresql"].split(".")[0]) >= 16
    assert line["version"]


@pytest.mark.parametrize(("level", "logged"), [("info", True), ("warning", False)])
def test_the_level_is_set(monkeypatch, level, logged):
    ours = logging.getLogger("recollect")
    monkeypatch.setattr(logging, "basicConfig", lambda **_options: None)
    before = ours.level
    try:
        log_to_stderr(level)
        assert logging.getLogger("recollect.http").isEnabledFor(logging.INFO) is logged
    finally:
        ours.setLevel(before)
