"""The first minute of the command line: `up` as people meet it, and commands that ask the server which runs."""

from __future__ import annotations

import json
import re
import resource
import stat
import subprocess
import sys
from functools import partial

import pytest
import typer
from typer.testing import CliRunner

from recollect.doors import local_server
from recollect.doors.cli import main
from recollect.doors.cli.operators.doctor import hide_password
from recollect.errors import SetupError
from recollect.loading import package_version
from recollect.settings import Settings
from support.programs import command_line
from support.programs.folders import open_folder
from support.programs.programs import COMMAND, Started, plain_environment

LIBRARIES = [sys.executable, "-c", "import httpx, pydantic_settings, rich.console, typer"]
MOST_OF_LIBRARIES = 1.6
"""To load these libraries takes 0.25 CPU-seconds on two quiet cores; a command may take 0.4."""
RUNS = 12
ADA = ("--agent", "ada", "--user", "li")
CHINESE = (
    "上周三下午和客户开会，讨论了新的合同条款以及交付时间，大家同意在十二月之前完成第一阶段的全部工作，并且每周五汇报。"
)
WITHOUT_JSON = {
    *("up", "serve", "worker", "admin migrate", "mcp", "chat", "admin bench"),  # they run, and print as they go
    *("mind export", "mind import", "admin backup", "admin mirror", "admin shard", "admin cold", "admin tenants"),
    *("admin enrich", "admin vacuum-erased", "admin retention"),
    *("forget", "mind fade", "mind reflect", "admin embeddings index"),  # one sentence, or a report of progress
    "mind evaluate",  # its `--json` names a file
    *(f"mind conversations {name}" for name in ("archive", "restore", "delete", "purge")),
    *("mind graph export", "mind graph merge", "mind graph split", "admin jobs retry"),
    *(f"mind topics {name}" for name in ("link", "unlink", "update", "merge")),
    *("admin keys create", "admin keys revoke", "admin keys limit", "admin sql-reader create", "admin sql-reader drop"),
    *(f"admin embeddings {name}" for name in ("change", "drop", "compact")),
    *("admin model pull", "admin model use"),
}
"""Commands that print no data: a sentence about what was done, or one secret."""


@pytest.fixture(scope="module")
def home():
    with open_folder("minute") as folder:
        yield folder


@pytest.fixture(scope="module")
def settings(home):
    return {"RECOLLECT_DATA_DIR": str(home / "data"), "RECOLLECT_EMBEDDER": "fake"}


@pytest.fixture(scope="module")
def environment(settings):
    return plain_environment() | settings


@pytest.fixture(scope="module")
def up(environment):
    started = Started([COMMAND, "up", "--port", "0"], environment)
    started.read_until("Stop with")
    yield started
    assert started.stop() == 0
    assert "Stopping;" in started.said
    assert "Stopped. The data stays in " in started.said


@pytest.fixture
def run(settings, up):
    return partial(command_line.run, settings=settings)


def test_up_says_what_it_does_from_the_first_moment(up):
    steps = ["starting Recollect", "starting PostgreSQL", "bringing the schema", "loading the embedder", "ready"]
    lines = [line for line in up.said.splitlines() if re.match(r" *\d+\.\d s  ", line)]
    assert [step in line for step, line in zip(steps, lines, strict=True)] == [True] * len(steps)
    assert up.said.startswith("  0.0 s"), "something was loaded before the first line"


def test_up_leaves_its_address_to_its_user_alone(up, home):
    path = home / "data" / local_server.ADDRESS_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    server, runs = local_server.read_address(home / "data")
    assert runs
    assert server.url in up.said
    assert server.key not in up.said


def test_commands_ask_the_server_that_runs(run, up):
    run("remember", *ADA, "Li is allergic to peanuts.")
    assert "allergic" in run("recall", *ADA, "peanuts")
    up.read_until('"key": "command line", "method": "POST", "route": "/v1/recall"')


def test_another_tenant_is_looked_up_in_the_database(run):
    run("remember", *ADA, "--tenant", "other", "Li likes tea.")
    assert "tea" in run("recall", *ADA, "--tenant", "other", "tea")
    assert "tea" not in run("recall", *ADA, "tea")


def test_a_server_that_is_named_is_asked_with_its_key(up, home):
    server, _ = local_server.read_address(home / "data")
    named = {"RECOLLECT_URL": server.url, "RECOLLECT_KEY": server.key, "RECOLLECT_DATA_DIR": str(home / "elsewhere")}
    command_line.run("remember", *ADA, "Li plays chess.", settings=named)
    assert "chess" in command_line.run("recall", *ADA, "chess", settings=named)
    assert not (home / "elsewhere").exists()
    keyless = {"RECOLLECT_URL": server.url}
    assert "Set RECOLLECT_KEY to an API key" in command_line.run("recall", *ADA, settings=keyless, fails=True)
    other = command_line.run("recall", *ADA, "--tenant", "other", settings=named, fails=True)
    assert "determines the tenant" in other
    far = {"RECOLLECT_URL": "http://memory.example", "RECOLLECT_KEY": "rec_x", "RECOLLECT_DATA_DIR": str(home / "far")}
    assert "points to a server" in command_line.run("admin", "keys", "list", settings=far, fails=True)
    assert not (home / "far").exists()


@pytest.mark.parametrize("words", [("--help",), ("recall", *ADA, "peanuts")])
def test_a_command_takes_little_of_the_processor(environment, up, words):
    """Against its libraries alone, by turns; the cheapest of each counts, as a busy machine takes longer."""
    commands, libraries = [], []
    while len(commands) < RUNS and (not commands or min(commands) > MOST_OF_LIBRARIES * min(libraries)):
        libraries.append(measure_processor(LIBRARIES, environment))
        commands.append(measure_processor([COMMAND, *words], environment))
    assert min(commands) <= MOST_OF_LIBRARIES * min(libraries), (commands, libraries)


def measure_processor(words, environment) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_command_that_asks_a_server_does_not_load_the_engine(environment, up):
    words = ["recollect", "recall", *ADA, "peanuts"]
    program = f"""
import sys
sys.argv = {words}
from recollect.doors.cli.main import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
    asked = [sys.executable, "-c", program]
    ended = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)
    loaded = set(ended.stderr.split())
    assert "recollect.client.client" in loaded
    assert loaded & {"psycopg", "numpy", "fastapi", "uvicorn", "recollect.wiring", "recollect.mind.mind"} == set()


def test_short_ids_can_be_given_back(run):
    whole = json.loads(run("remember", *ADA, "Li has a cat.", "--json"))["id"]
    short = re.search(r"(m[0-9a-f]{8}) .*Li has a cat", run("list", *ADA, "cat"))[1]
    assert whole.replace("-", "").endswith(short[1:])
    assert json.loads(run("get", short, *ADA, "--json"))["content"] == "Li has a cat."
    assert "Li has a cat." in run("get", whole, *ADA)
    revised = run("update", short, *ADA, "Li has two cats.").split()[0]
    assert revised in run("update", "--pin", f"m{revised[-8:]}", *ADA)
    assert "pinned: Li has two cats." in run("list", *ADA, "cats")
    assert "forgotten" in run("forget", f"m{revised[-8:]}", *ADA, "--yes")
    assert "two cats" not in run("list", *ADA, "cats")
    assert "No memory with this short ID" in run("get", "m00000000", *ADA, fails=True)


def test_browsing_goes_on_behind_a_page(run):
    for number in range(3):
        run("remember", "--agent", "pages", f"page {number}")
    first = run("list", "--agent", "pages", "--limit", "2")
    cursor = re.search(r"--after (m\w+)", first)[1]
    assert "page 0" not in first
    assert "page 0" in run("list", "--agent", "pages", "--limit", "2", "--after", cursor)
    assert run("list", "--agent", "pages", "--oldest", "--limit", "1").count("page 0") == 1


def test_a_fact_is_stated_and_replaced(run):
    run("mind", "facts", "add", "Li", "works_at", "Acme", *ADA, "--since", "2024-01-01")
    short = re.search(r"m[0-9a-f]{8}", run("mind", "facts", "list", *ADA, "--entity", "Li"))[0]
    stated = json.loads(run("mind", "facts", "add", "Li", "works_at", "Globex", *ADA, "--replaces", short, "--json"))
    assert stated["text"] == "Li works_at Globex"
    assert [fact["text"] for fact in json.loads(run("mind", "facts", "list", *ADA, "--json"))["facts"]] == [
        "Li works_at Globex"
    ]
    assert "Acme" in run("mind", "facts", "versions", short, *ADA)


def test_an_empty_scope_is_answered_with_what_there_is(run):
    run("remember", *ADA, "Li is allergic to peanuts.")
    assert "users with memories: li" in run("recall", "--agent", "ada", "peanuts")
    asked = command_line.call("recall", "--agent", "ada", "x", "--json", settings=run.keywords["settings"])
    found = json.loads(asked.stdout)
    assert (found["hits"], "users with memories: li" in found["message"]) == ([], True)


def test_tables_fit_80_columns_and_wrap_chinese(settings, run):
    run("remember", "--agent", "wide", CHINESE)
    run("mind", "facts", "add", "Li", "is_head_of", "the department of very long names in the north", "--agent", "wide")
    narrow = settings | {"COLUMNS": "80"}
    shown_by = (("recall", "客户"), ("list",), ("mind", "facts", "list"), ("mind", "entities"), ("mind", "overview"))
    for words in shown_by:
        shown = command_line.run(*words, "--agent", "wide", settings=narrow)
        assert "…" not in shown
        assert all(len(line) + sum(ord(each) > 0x2E80 for each in line) <= 80 for line in shown.splitlines())
    shown = command_line.run("list", "--agent", "wide", settings=narrow)
    assert CHINESE in "".join(line.split("│")[-2].strip() for line in shown.splitlines() if "│" in line)
    assert "…" not in command_line.run("admin", "keys", "list", settings=narrow)


def list_commands(path, command):
    if not isinstance(command, typer.core.TyperGroup) or command.invoke_without_command:
        yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from list_commands(f"{path} {name}", each)


def test_every_command_that_prints_data_has_json():
    lacking = {
        words
        for path in main.HELP
        for words, command in list_commands(path, main.load_command(path))
        if "--json" not in {option for parameter in command.params for option in parameter.opts}
    }
    assert {words for words in lacking if not {words, " ".join(words.split()[:2])} & WITHOUT_JSON} == set()


def test_the_version_and_the_completion():
    runner = CliRunner()
    assert runner.invoke(main.app, ["--version"]).output.strip() == package_version()
    assert "--install-completion" in runner.invoke(main.app, ["--help"]).output
    completing = {"_RECOLLECT_COMPLETE": "complete_bash", "COMP_WORDS": "recollect mind over", "COMP_CWORD": "2"}
    ended = subprocess.run([COMMAND], env=plain_environment() | completing, capture_output=True, text=True, check=False)
    assert ended.stdout.split() == ["overview"]


def test_the_doctor_says_what_runs_and_where_the_data_lies(run, home):
    findings = {each["check"]: each for each in json.loads(run("doctor", "--json"))}
    assert findings["data folder"]["found"] == str(home / "data")
    assert findings["server"]["state"] == findings["PostgreSQL"]["state"] == findings["schema"]["state"] == "ok"
    assert findings["embedder"]["found"].startswith("fake")
    assert (findings["chat model"]["state"], findings["chat model"]["advice"] != "") == ("missing", True)


def test_the_doctor_starts_nothing_and_names_what_is_wrong(home, tmp_path):
    nothing = {"RECOLLECT_DATA_DIR": str(tmp_path / "data")}
    found = {each["check"]: each for each in json.loads(command_line.run("doctor", "--json", settings=nothing))}
    assert (found["data folder"]["state"], found["data folder"]["advice"]) == ("missing", "run `recollect up`")
    assert not (tmp_path / "data").exists()
    broken = {"RECOLLECT_DATABASE_URL": "postgresql://u:hidden@127.0.0.1:1/d", "RECOLLECT_POOLSIZE": "1"}
    said = command_line.run("doctor", settings=broken)
    assert "nothing listens there" in " ".join(said.split())
    assert "hidden" not in said
    assert "RECOLLECT_POOL_SIZE" in said.replace("\n", "")


@pytest.mark.parametrize("dsn", ["postgresql://u:hidden@h/d", "host=h password=hidden user=u"])
def test_a_password_is_hidden(dsn):
    assert "hidden" not in hide_password(dsn)
    assert "u" in hide_password(dsn)


def test_the_key_of_the_last_start_serves_again_and_a_revoked_one_is_replaced(environment, up, home, run):
    """In a folder of its own, with a server that is started three times."""
    folder = home / "again"
    settings = {"RECOLLECT_DATA_DIR": str(folder), "RECOLLECT_EMBEDDER": "none"}
    keys = []
    for round_number in range(3):
        started = Started([COMMAND, "up", "--port", "0"], environment | settings)
        started.read_until("Stop with")
        server, runs = local_server.read_address(folder)
        keys.append(server.key)
        if round_number == 1:
            [mine] = [
                key["id"]
                for key in json.loads(command_line.run("admin", "keys", "list", "--json", settings=settings))
                if key["name"] == "command line"
            ]
            command_line.run("admin", "keys", "revoke", mine, settings=settings)
        assert (runs, started.stop()) == (True, 0)
        assert local_server.read_address(folder)[1] is False, "an address that nobody serves counts as running"
    assert keys[0] == keys[1] != keys[2]


def test_an_address_is_only_followed_while_it_is_locked(tmp_path, monkeypatch):
    monkeypatch.delenv("RECOLLECT_URL", raising=False)
    settings, server = Settings(data_dir=tmp_path), local_server.RunningServer("http://127.0.0.1:1", "rec_x", "default")
    assert local_server.choose_server(settings, "default") is None
    with local_server.announced(tmp_path, server):
        assert local_server.choose_server(settings, "default") == server
        assert local_server.choose_server(settings, "other") is None
        monkeypatch.setattr(local_server, "LOCK_SECONDS", 0)
        with local_server.announced(tmp_path, local_server.RunningServer("http://127.0.0.1:2", "rec_y", "default")):
            assert local_server.choose_server(settings, "default") == server
    assert local_server.choose_server(settings, "default") is None


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:7077"),
        ("0.0.0.0", "http://127.0.0.1:7077"),
        ("::", "http://[::1]:7077"),
    ],
)
def test_the_address_of_a_server_is_one_that_can_be_asked(host, url):
    assert local_server.to_url(host, 7077) == url


def test_who_asks_a_server_elsewhere_does_not_start_a_database(monkeypatch):
    monkeypatch.setenv("RECOLLECT_URL", "https://memory.example/")
    with pytest.raises(SetupError, match="Run it there"):
        local_server.check_local(Settings(database_url="embedded"))
    local_server.check_local(Settings(database_url="host=db"))
    monkeypatch.setenv("RECOLLECT_URL", "http://localhost:7077")
    local_server.check_local(Settings(database_url="embedded"))
