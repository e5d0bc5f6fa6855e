"""Schemathesis against the real server: whatever fits or misses the document is answered as the document says."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi.responses import JSONResponse
from prometheus_client.parser import text_string_to_metric_families

from conftest import new_key
from recollect.doors.http import problems
from recollect.doors.http.app import create_app
from recollect.llm.fake import FakeEmbedder
from recollect.settings import Settings
from recollect.wiring import connected
from support.measuring.sizes import CHOSEN, Sizes
from support.programs.ports import free_port

TESTS = Path(__file__).parents[1]
REQUESTS = Sizes("requests", ci=5_000, long=100_000)
EXAMPLES, IN_ONE_RUN = 8, min(REQUESTS.now, 9_000)
"""Of so many examples of each operation, one run of schemathesis makes at least so many requests."""
CONTROLS = Sizes("controls", ci=0, long=1)
ASKING_AGAIN = ("/v1/blocks", "/v1/context", "/v1/recall-each")
"""Their bodies are made of a recall's: CI tries every bound of those fields on /v1/recall alone."""
CHECKS = (
    *("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance"),
    *("ignored_auth", "negative_data_rejection", "response_headers_conformance", "unsupported_method"),
)


class Service(threading.Thread):
    """The real server on a port of its own, with a loop of its own."""

    def __init__(self, addresses) -> None:
        super().__init__()
        self._addresses = addresses
        self._server: uvicorn.Server | None = None
        self.ready = threading.Event()
        self.secret = ""
        self.url = ""

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        async with connected(Settings(embedder="fake"), self._addresses, FakeEmbedder()) as running:
            _, self.secret = await new_key(running)
            config = uvicorn.Config(create_app(recollect=running), port=free_port(), log_config=None, access_log=False)
            self._server = uvicorn.Server(config)
            serving = asyncio.create_task(self._server.serve())
            while not self._server.started:  # noqa: ASYNC110 - the server tells nobody when it has started
                await asyncio.sleep(0.01)
            self.url = f"http://127.0.0.1:{config.port}"
            self.ready.set()
            await serving

    def stop(self) -> None:
        if self._server is not None:
            self._server.should_exit = True
        self.join()


@pytest.fixture
def service(addresses):
    thread = Service(addresses)
    thread.start()
    assert thread.ready.wait(20)
    yield thread
    thread.stop()


def count_requests(url):
    families = text_string_to_metric_families(httpx.get(f"{url}/metrics", timeout=60).text)
    return {
        (sample.labels["route"], sample.labels["status"]): int(sample.value)
        for family in families
        for sample in family.samples
        if sample.name == "recollect_http_requests_total"
    }


def choose_bounds():
    """Say which operations are not tried at the bounds of every field; examples and fuzzing try them all."""
    left_out = () if CHOSEN == "long" else ASKING_AGAIN
    rule = '[[operations]]\ninclude-path = "{}"\nphases.coverage.enabled = false\n'
    return "".join(rule.format(path) for path in left_out)


def run_schemathesis(service, folder, seed, *options):
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json"),
        *("--header", f"Authorization: Bearer {service.secret}"),
        *("--max-examples", str(EXAMPLES), "--checks", ",".join(CHECKS)),
        *("--phases", "examples,coverage,fuzzing,stateful", "--no-color", "--workers", "1"),
        # It makes no zip: the tests of its own room send one.
        *("--exclude-path", "/v1/import"),
        # Its answer never ends: see test_following.py.
        *("--exclude-path", "/v1/changes"),
        # Only a campaign draws new examples each time.
        *(("--seed", str(seed)) if CHOSEN == "long" else ("--generation-deterministic",)),
        *options,
    ]
    (folder / "schemathesis.toml").write_text(choose_bounds())
    hooks = {"SCHEMATHESIS_HOOKS": "support.service.schemathesis_hooks", "PYTHONPATH": str(TESTS)}
    return subprocess.run(command, env=os.environ | hooks, capture_output=True, text=True, cwd=folder, check=False)


def make_requests(service, folder, seed, *options):
    """Let schemathesis run once: how it ended, and how many requests each route has answered with each status."""
    before = count_requests(service.url)
    done = run_schemathesis(service, folder, seed, *options)
    after = count_requests(service.url)
    return done, Counter({place: count - before.get(place, 0) for place, count in after.items()})


@pytest.mark.slow
@pytest.mark.promise(
    "Whatever fits or misses the OpenAPI document is answered as it says, never by a 5xx", REQUESTS, part="fuzz"
)
def test_the_service_keeps_its_own_document(service, tmp_path, rounds, seed, figure):
    made = Counter()
    for number in rounds(REQUESTS, by=IN_ONE_RUN):
        done, once = make_requests(service, tmp_path, seed + number)
        assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-2_000:]
        assert once.total() >= IN_ONE_RUN
        made += once
    broken = sum(count for (_, status), count in made.items() if status.startswith("5"))
    operations = {route for route, _ in made}
    figure(f"{made.total():,} requests to {len(operations)} routes, {broken} x 5xx, 0 answers that the document lacks")
    assert operations >= {"/v1/memories", "/v1/memories/{memory_id}", "/v1/recall", "/v1/keys"}
    assert made["/v1/recall", "200"] > 0
    assert made["/v1/memories", "201"] > 0
    for route, status in (("messages", "201"), ("context", "200"), ("conversations", "200")):
        assert made[f"/v1/{route}", status] > 0
    # A service that is busy may say so; a machine that is busy makes it.
    assert [place for place, count in made.items() if count and place[1].startswith("5") and place[1] != "503"] == []


@pytest.mark.promise(
    "The test of generated requests notices a service that accepts what misses the document", CONTROLS, part="fuzz"
)
def test_requests_without_validation_are_noticed(addresses, tmp_path, rounds, seed, figure, monkeypatch):
    monkeypatch.setattr(problems, "on_invalid_request", accept)
    for number in rounds(CONTROLS):
        thread = Service(addresses)
        thread.start()
        assert thread.ready.wait(60)
        done, made = make_requests(thread, tmp_path, seed + number, "--include-path", "/v1/entities")
        thread.stop()
        told = re.findall(r"^\s*- (.*)$", done.stdout, re.MULTILINE)
        figure(f"noticed within {made.total():,} requests: {told[0] if told else 'nothing'}")
        assert done.returncode == 1, done.stdout[-4_000:]
        assert made.total() < IN_ONE_RUN


async def accept(*_):
    """Answer as if nothing was wrong."""
    return JSONResponse({})
