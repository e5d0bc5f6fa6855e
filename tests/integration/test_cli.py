"""The command line as people use it: real processes on a real embedded PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import httpx
import pytest

from folders import open_folder

COMMAND = [sys.executable, "-c", "from recollect.doors.cli import main; main()"]


@pytest.fixture(scope="module")
def home():
    with open_folder("cli") as folder:
        yield folder


@pytest.fixture(scope="module")
def environment(home):
    plain = {key: value for key, value in os.environ.items() if not key.startswith("RECOLLECT_")}
    return plain | {
        "RECOLLECT_DATA_DIR": str(home / "data"),
        "RECOLLECT_EMBEDDER": "fake",
        "RECOLLECT_PORT": "0",
        "COLUMNS": "200",
    }


@pytest.fixture(scope="module")
def up(environment):
    """`recollect up`, running beside the tests of this module."""
    process = subprocess.Popen([*COMMAND, "up"], env=environment, stdout=subprocess.PIPE, text=True, cwd="/")
    greeting = ""
    while "Stop with" not in greeting:
        line = process.stdout.readline()
        assert line, f"`recollect up` ended early: {greeting}"
        greeting += line
    yield greeting
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


@pytest.fixture
def run(environment, up):
    def call(*arguments, fails=False):
        done = subprocess.run(
            [*COMMAND, *arguments], check=False, env=environment, capture_output=True, text=True, cwd="/"
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    return call


def test_remember_and_recall(run):
    assert re.match(r"[0-9a-f-]{36} embedded", run("remember", "--agent", "ada", "Ann bought green apples"))
    run("remember", "--agent", "ada", "Bob likes the sea")
    table = run("recall", "--agent", "ada", "what did Ann buy")
    assert table.index("Ann bought green apples") < table.index("Bob likes the sea")
    assert re.search(r"text 0\.\d+", table)


def test_up_serves_http_with_the_key_that_it_printed(up):
    url, secret = re.search(r"http://[\d.:]+", up)[0], re.search(r"rec_[\w-]+", up)[0]
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}) as client:
        assert client.get("/health/ready").json() == {"status": "ok"}
        body = {"agent": "eve", "memories": [{"content": "hello"}]}
        assert client.post("/v1/memories", json=body).status_code == 201
        assert client.post("/v1/recall", json={"agent": "eve", "text": "hello"}).json()["hits"]


def test_the_worker_of_up_embeds_what_was_imported(run, home, up):
    lines = [{"content": f"memory {number}", "speaker": "Ann", "metadata": {"n": number}} for number in range(500)]
    source = home / "memories.jsonl"
    source.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert "500 memories imported" in run("import", str(source), "--agent", "imported")
    url = re.search(r"http://[\d.:]+", up)[0]
    deadline = time.monotonic() + 30
    while 'recollect_jobs{status="succeeded",task="embed"}' not in httpx.get(f"{url}/metrics").text:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert "vector 0." in run("recall", "--agent", "imported", "memory 77")


def test_export_reads_back_equal(run, home):
    first, second = home / "first.jsonl", home / "second.jsonl"
    facts = [
        {"id": "00000000-0000-7000-8000-000000000001", "content": "a source", "keywords": ["One"]},
        {"content": "a thought", "kind": "thought", "evidence": ["00000000-0000-7000-8000-000000000001"]},
    ]
    first.write_text("\n".join(map(json.dumps, facts)), encoding="utf-8")
    run("import", str(first), "--agent", "copy-1")
    run("export", str(second), "--agent", "copy-1")
    run("import", str(second), "--agent", "copy-2")
    run("export", str(first), "--agent", "copy-2")
    one, two = ([json.loads(line) for line in path.read_text().splitlines()] for path in (second, first))
    assert [len(one), len(two)] == [2, 2]
    assert one[1]["evidence"] == [one[0]["id"]]
    assert two[1]["evidence"] == [two[0]["id"]]
    for line in one + two:
        line.pop("id")
        line.pop("evidence", None)
    assert one == two


def test_a_bad_line_is_named_and_nothing_of_its_chunk_is_kept(run, home):
    source = home / "bad.jsonl"
    source.write_text('{"content": "good"}\n{"contents": "misspelt"}\n', encoding="utf-8")
    assert "line 2" in run("import", str(source), "--agent", "bad", fails=True)
    assert "0 memories exported" in run("export", str(home / "none.jsonl"), "--agent", "bad")


def test_keys_are_made_listed_and_revoked(run):
    assert run("key", "create", "bot", "--right", "read").startswith("rec_")
    listed = run("key", "list")
    key_id = re.search(r"([0-9a-f-]{36})[^\n]*bot", listed)[1]
    run("key", "revoke", key_id)
    assert re.search(rf"{key_id}.*\d\d:\d\d:\d\d.*\d\d:\d\d:\d\d", run("key", "list"))


def test_the_rest_of_the_words(run):
    assert "up to date" in run("migrate")
    assert "active" in run("space", "list")
    assert "0 scopes indexed" in run("index")
    assert "recall" in run("bench", "--memories", "10")


def test_errors_are_one_line_that_says_what_to_do(run, environment):
    message = run("remember", "--agent", "not an agent", "x", fails=True)
    assert "agent must be" in message
    assert "Traceback" not in message
    broken = environment | {"RECOLLECT_DATABASE_URL": "host=127.0.0.1 port=1"}
    done = subprocess.run([*COMMAND, "serve"], check=False, env=broken, capture_output=True, text=True, cwd="/")
    assert done.returncode == 1
    assert "RECOLLECT_DATABASE_URL" in done.stderr
    assert "Traceback" not in done.stderr
