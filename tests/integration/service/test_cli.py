"""The command line as people use it, beside `recollect up` in a process of its own on a real embedded PostgreSQL."""

from __future__ import annotations

import json
import re
import subprocess
import time
from decimal import Decimal
from functools import partial

import httpx
import psycopg
import pytest

from support.imports.saved_folder import read_saved_folder, write_saved_folder
from support.programs import command_line
from support.programs.folders import open_folder
from support.programs.programs import COMMAND, plain_environment
from support.service.served import running_up


@pytest.fixture(scope="module")
def home():
    with open_folder("cli") as folder:
        yield folder


@pytest.fixture(scope="module")
def settings(home):
    return {"RECOLLECT_DATA_DIR": str(home / "data"), "RECOLLECT_EMBEDDER": "fake", "RECOLLECT_PORT": "0"}


@pytest.fixture(scope="module")
def environment(settings):
    return plain_environment() | settings | {"COLUMNS": "200"}


@pytest.fixture(scope="module")
def up(environment):
    """`recollect up`, running beside the tests of this module."""
    with running_up(environment) as greeting:
        yield greeting


@pytest.fixture
def run(settings, up):
    return partial(command_line.run, settings=settings)


def test_remember_and_recall_as_processes(environment, up):
    def run(*words):
        return subprocess.run([COMMAND, *words], check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout

    assert re.match(r"[0-9a-f-]{36} embedded", run("remember", "--agent", "ada", "Ann bought green apples"))
    run("remember", "--agent", "ada", "Bob likes the sea")
    table = run("recall", "--agent", "ada", "what did Ann buy")
    assert table.index("Ann bought green apples") < table.index("Bob likes the sea")
    assert re.search(r"text 0\.\d+", table)


def test_the_link_that_up_prints_signs_in_to_the_console_once(up):
    url, link = re.search(r"(http://\S+)/console#link=(\S+)", up).groups()
    asked = {"json": {"link": link}, "headers": {"X-Recollect-Console": "1"}, "trust_env": False}
    assert [httpx.post(f"{url}/console/session", **asked).status_code for _ in range(2)] == [201, 401]


def test_the_shares_that_recall_shows_add_up_to_the_score(run):
    for content in ("Ann bought green apples", "Ann sold the apples on Sunday", "Bob likes the sea"):
        run("remember", "--agent", "sums", content)
    rows = [line.split("│") for line in run("recall", "--agent", "sums", "which apples did Ann buy").splitlines()]
    told = [[cell.strip() for cell in row] for row in rows if len(row) > 5]
    scores = [(Decimal(one[2]), other[5].split()) for one, other in zip(told[::2], told[1::2], strict=True)]
    assert len(scores) == 3
    for score, why in scores:
        assert sum(map(Decimal, why[1::2])) == score
        assert "surroundings" in why, "preferences are shown, too"


def test_a_mistyped_setting_is_warned_of_by_every_command(settings, up):
    ended = command_line.call("admin", "embeddings", "list", settings=settings | {"RECOLLECT_POOLSIZE": "3"})
    assert ended.code == 0
    assert ended.stderr.splitlines() == ["RECOLLECT_POOLSIZE is not a setting; did you mean RECOLLECT_POOL_SIZE?"]


def test_recall_as_of_then_and_at_then(run):
    run("remember", "--agent", "past", "Ann bought green apples")
    for option in ("--as-of", "--at"):
        assert "nothing found" in run("recall", "--agent", "past", "apples", option, "2020-01-31")
        assert "green apples" in run("recall", "--agent", "past", "apples", option, "2900-01-31T12:00:00")


def test_up_serves_http_with_the_key_that_it_printed(up):
    url, secret = re.search(r"http://[\d.:]+", up)[0], re.search(r"rec_[\w-]+", up)[0]
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=60) as client:
        assert client.get("/health/ready").json() == {"status": "ok"}
        body = {"agent": "eve", "memories": [{"content": "hello"}]}
        assert client.post("/v1/memories", json=body).status_code == 201
        assert client.post("/v1/recall", json={"agent": "eve", "text": "hello"}).json()["hits"]


def test_the_worker_of_up_embeds_what_was_imported(run, home, up):
    lines = [{"content": f"memory {number}", "speaker": "Ann", "metadata": {"n": number}} for number in range(500)]
    source = home / "memories.jsonl"
    source.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert "500 memories imported" in run("mind", "import", "jsonl", str(source), "--agent", "imported")
    url = re.search(r"http://[\d.:]+", up)[0]
    deadline = time.monotonic() + 30
    while 'task="embed"' in httpx.get(f"{url}/metrics", timeout=60).text:
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
    run("mind", "import", "jsonl", str(first), "--agent", "copy-1")
    run("mind", "export", "jsonl", str(second), "--agent", "copy-1")
    run("mind", "import", "jsonl", str(second), "--agent", "copy-2")
    run("mind", "export", "jsonl", str(first), "--agent", "copy-2")
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
    said = run("mind", "import", "jsonl", str(source), "--agent", "bad", fails=True)
    assert "line 2: `contents` is not known here; did you mean `content`?" in said
    assert "0 memories exported" in run("mind", "export", "jsonl", str(home / "none.jsonl"), "--agent", "bad")


def test_a_saved_mind_goes_in_and_comes_out_equal(run, home):
    folder, back = write_saved_folder(home / "Ann Lee"), home / "back" / "Ann Lee"
    report = run("mind", "import", "generative-agents", str(folder))
    for step in ("loading", "embedding", "reading back"):
        assert re.search(rf"{step} .*100%", report)
    for thing, count in (("events", 4), ("evidence links", 7), ("vectors", 10), ("keyword strengths", 10)):
        assert re.search(rf"{thing}\W+{count}\W+{count}\W+0\W", report)
    assert "vector 0." in run("recall", "--agent", "Ann Lee", "tea")
    assert "10 memories exported" in run("mind", "export", "generative-agents", str(back))
    assert read_saved_folder(back) == read_saved_folder(folder)
    assert "Ann Lee has 10 memories already" in run("mind", "import", "generative-agents", str(folder), fails=True)


def test_a_folder_that_cannot_be_read_is_refused_in_one_line(run, home):
    folder = write_saved_folder(home / "broken", scratch=None)
    message = run("mind", "import", "generative-agents", str(folder), "--agent", "broken", fails=True)
    assert "scratch.json is missing" in message
    assert "Traceback" not in message
    assert "0 memories exported" in run("mind", "export", "jsonl", str(home / "none.jsonl"), "--agent", "broken")


def test_a_profile_is_shown_changed_and_reset(run):
    assert re.search(r"decay\W+usual", run("mind", "profile", "--agent", "ada"))
    options = ("--mode", "original", "--recency", "2", "--decay", "0.9", "--limit", "4", "--threshold", "60")
    changed = run("mind", "profile", "--agent", "ada", *options)
    assert re.search(r"mode\W+original", changed)
    assert re.search(r"similarity\W+usual", changed)
    again = run("mind", "profile", "--agent", "ada", "--similarity", "0.5", "--importance", "3")
    for name, value in (("recency", 2.0), ("similarity", 0.5), ("importance", 3.0), ("decay", 0.9), ("limit", 4)):
        assert re.search(rf"{name}\W+{value}", again)
    assert "decay" in run("mind", "profile", "--agent", "ada", "--decay", "2", fails=True)
    assert run("mind", "profile", "--agent", "ada") == again
    assert re.search(r"recency\W+usual", run("mind", "profile", "--agent", "ada", "--reset"))


def test_what_something_perceived_reminds_of(run, home):
    seen = [{"content": f"Ann drinks {drink}", "keywords": ["Ann", drink]} for drink in ("tea", "milk")]
    source = home / "seen.jsonl"
    source.write_text("\n".join(map(json.dumps, seen)), encoding="utf-8")
    run("mind", "import", "jsonl", str(source), "--agent", "perceiving")
    table = run("mind", "associate", "--agent", "perceiving", "The Ville:Ann", "drink", "tea")
    assert table.index("Ann drinks tea") < table.index("Ann drinks milk")
    assert "Ann drinks milk" not in run("mind", "associate", "--agent", "perceiving", "Ann", "", "tea", "--original")
    assert "nothing found" in run("mind", "associate", "--agent", "perceiving", "nobody", "", "")
    overview = run("mind", "overview", "--agent", "perceiving")
    assert re.search(r"events\W+2\W", overview)
    assert re.search(r"ann\W+event\W+2\W", overview)


def test_weights_are_learned_shown_and_applied_on_request(run, up):
    assert "there are 0" in run("mind", "tune", "--agent", "learner", fails=True)
    url, secret = re.search(r"http://[\d.:]+", up)[0], re.search(r"rec_[\w-]+", up)[0]
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=60) as client:
        memories = [{"content": f"note {number}", "importance": 1 + number % 10} for number in range(40)]
        client.post("/v1/memories", json={"agent": "learner", "memories": memories})
        client.put("/v1/profile", json={"agent": "learner", "recency": 5, "importance": 0.1})
        for number in range(12):
            asked = {"agent": "learner", "text": f"note {number}", "channels": ["stream"], "limit": 10, "touch": False}
            found = client.post("/v1/recall", json=asked).json()
            marks = [
                {"memory_id": hit["memory"]["id"], "useful": hit["memory"]["importance"] > 5}
                | hit["channels"]["stream"]["factors"]
                for hit in found["hits"]
            ]
            body = {"agent": "learner", "marks": marks, "candidates": found["tallies"]["stream"]["candidates"]}
            assert client.post("/v1/feedback", json=body).json() == {"marked": 10}
    table = run("mind", "tune", "--agent", "learner")
    assert "learned from 8 recalls" in table
    assert "Recommended" in table
    assert re.search(r"importance\W+0\.1", run("mind", "profile", "--agent", "learner"))
    assert "Applied" in run("mind", "tune", "--agent", "learner", "--apply")
    learned = re.search(r"importance\W+([\d.]+)", run("mind", "profile", "--agent", "learner"))[1]
    assert float(learned) > 0.5


def test_keys_are_made_listed_and_revoked(run):
    assert run("admin", "keys", "create", "bot", "--right", "read").startswith("rec_")
    listed = run("admin", "keys", "list")
    key_id = re.search(r"bot.*\n\W*([0-9a-f-]{36})", listed)[1]
    run("admin", "keys", "revoke", key_id)
    [revoked] = [key for key in json.loads(run("admin", "keys", "list", "--json")) if key["revoked_at"]]
    assert revoked["id"] == key_id
    assert re.search(rf"{key_id}.*revoked \d{{4}}-", run("admin", "keys", "list"))


def test_the_rest_of_the_words(run):
    assert "up to date" in run("admin", "migrate", "--first-block", "0")
    assert "active" in run("admin", "embeddings", "list")
    assert "0 scopes indexed" in run("admin", "embeddings", "index")
    [space] = re.findall(r"^\W*(\d+)\W.*active", run("admin", "embeddings", "list"), re.MULTILINE)
    assert "MB now" in run("admin", "embeddings", "compact", space)
    assert "No embedding space" in run("admin", "embeddings", "compact", "7", fails=True)
    assert "recall" in run("admin", "bench", "--memories", "10")


def test_errors_are_one_line_that_says_what_to_do(run, environment):
    message = run("remember", "--agent", "no/agent", "x", fails=True)
    assert "agent must be" in message
    assert "Traceback" not in message
    broken = environment | {
        "RECOLLECT_DATABASE_URL": "host=127.0.0.1 port=1",
        "RECOLLECT_POSTGRES__START_TIMEOUT_SECONDS": "0",
    }
    done = subprocess.run([COMMAND, "serve"], check=False, env=broken, capture_output=True, text=True, cwd="/")
    assert done.returncode == 1
    assert "RECOLLECT_DATABASE_URL" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_logs_in_by_what_is_printed(run):
    run("remember", "--agent", "clerk", "seen by SQL")
    dsn = run("admin", "sql-reader", "create", "clerk").strip()
    with psycopg.connect(dsn) as connection:
        ask = "select description from memory_nodes where persona_name = 'clerk'"
        assert connection.execute(ask).fetchall() == [("seen by SQL",)]
    assert re.search(r"clerk.*default", run("admin", "sql-reader", "list"))
    assert "Choose another name" in run("admin", "sql-reader", "create", "clerk", fails=True)
    assert "dropped" in run("admin", "sql-reader", "drop", "clerk")
    assert "There are no readers." in run("admin", "sql-reader", "list")
