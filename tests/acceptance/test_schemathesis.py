"""Schemathesis against the real server: whatever fits or misses the document is answered as the document says."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading

import httpx
import pytest
import uvicorn
from prometheus_client.parser import text_string_to_metric_families

from conftest import new_key
from ports import free_port
from recollect.doors.http.app import create_app
from recollect.llm.fake import FakeEmbedder
from recollect.settings import Settings
from recollect.wiring import connected
from sizes import CHOSEN, Sizes

EXAMPLES = Sizes("examples of each operation", ci=8, long=400)
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


def run_schemathesis(service, folder):
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json"),
        *("--header", f"Authorization: Bearer {service.secret}"),
        *("--max-examples", str(EXAMPLES.now), "--checks", ",".join(CHECKS)),
        *("--phases", "examples,coverage,fuzzing,stateful", "--no-color", "--workers", "1"),
        # It makes no zip: the tests of its own room send one.
        *("--exclude-path", "/v1/import"),
        # Its answer never ends: see test_following.py.
        *("--exclude-path", "/v1/changes"),
        # Only a campaign draws new examples each time.
        *(() if CHOSEN == "long" else ("--generation-deterministic",)),
    ]
    (folder / "schemathesis.toml").write_text(choose_bounds())
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


@pytest.mark.slow
@pytest.mark.promise("Whatever fits or misses the OpenAPI document is answered as it says, never by a 5xx", EXAMPLES)
def test_the_service_keeps_its_own_document(service, tmp_path):
    before = count_requests(service.url)
    done = run_schemathesis(service, tmp_path)
    after = count_requests(service.url)
    made = {place: count - before.get(place, 0) for place, count in after.items()}
    failures = re.findall(r"^\s*- .*$", done.stdout, re.MULTILINE)
    print(f"{sum(made.values())} requests, {len(failures)} findings")
    print({place: count for place, count in sorted(made.items()) if count})
    assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-2_000:]
    assert {route for route, _ in made} >= {"/v1/memories", "/v1/memories/{memory_id}", "/v1/recall", "/v1/keys"}
    assert made.get(("/v1/recall", "200"), 0) > 0
    assert made.get(("/v1/memories", "201"), 0) > 0
    for route, status in (("messages", "201"), ("context", "200"), ("conversations", "200")):
        assert made.get((f"/v1/{route}", status), 0) > 0
    assert [place for place, count in made.items() if count and place[1].startswith("5")] == []
