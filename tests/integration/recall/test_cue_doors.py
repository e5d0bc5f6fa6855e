"""All that a cue may ask for travels through every door, and what makes no sense is refused at each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from accesses import with_access
from conftest import http_client, new_key
from recollect.client import Client
from recollect.client.bodies import flatten
from recollect.doors.cli import main, terminal
from recollect.doors.http.bodies.fields import build
from recollect.doors.http.bodies.memories import CueBody
from recollect.errors import ForbiddenError
from recollect.models.memories import Kind, NewMemory
from recollect.models.recall import Cue, Mode, Weighing
from recollect.models.service import Right
from recollect.settings import Settings
from recollect.wiring import connected

MAY = datetime(2025, 5, 1, tzinfo=UTC)
EVERYTHING = Cue(
    "apples",
    embedding=[1.0, 0.0],
    limit=3,
    kinds=(Kind.EVENT, Kind.FACT),
    min_trust=7,
    as_of=MAY,
    channels=("text", "recent"),
    weighing=Weighing(Mode.PAPER, recency=0.5, gains=(1.0, 2.0, 3.0), decay=0.9),
    touch=False,
    now=MAY,
    at=MAY,
    zone="Asia/Shanghai",
    since=MAY - timedelta(days=2),
    until=MAY,
    topics=("travel->Japan", "旅行"),
    descendants=True,
    weights={"text": 0.25, "recent": 2.0},
    consult=True,
    judge=True,
    keep=True,
)


def test_a_cue_travels_whole():
    for cue in (EVERYTHING, Cue("apples"), replace(EVERYTHING, keep=False, embedding=None)):
        assert build(Cue, CueBody.model_validate(flatten(cue))) == cue


@pytest.mark.parametrize(
    "fields",
    [
        {"zone": "Mars/Olympus"},
        {"zone": ""},
        {"since": "2025-05-02T00:00:00Z", "until": "2025-05-01T00:00:00Z"},
        {"since": "2025-05-02T00:00:00"},
        {"since": 1746057600},
        {"topics": ["->"]},
        {"topics": [""]},
        {"weights": {"text": -1}},
        {"weights": {"text": "heavy"}},
        {"weights": {"a b": 1}},
        {"descendants": "yes"},
        {"consult": "yes"},
        {"judge": 1},
        {"keep": "maybe"},
    ],
)
async def test_http_refuses_what_makes_no_sense(http, fields):
    answer = await http.post("/v1/recall", json={"agent": "ada", "text": "apples"} | fields)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_a_client_asks_for_all_of_it(recollect, mind):
    await mind.remember(NewMemory("green apples"))
    _, secret = await new_key(recollect)
    client = Client("http://test", secret)
    async with http_client(recollect, secret) as http:
        client._transport._http = http
        asked = Cue(
            "apples", zone="Europe/Berlin", since=MAY, topics=("food",), descendants=True, weights={"text": 2.0}
        )
        remote = await (await client.mind("ada", "li")).recall(asked)
    assert [hit.memory.content for hit in remote.hits] == ["green apples"]
    assert [hit.memory.content for hit in (await mind.recall(asked)).hits] == ["green apples"]


async def test_a_moment_of_its_own_needs_the_right_to_write_only_where_it_is_noted(recollect, mind):
    await mind.remember(NewMemory("green apples"))
    reader = with_access(mind, caller=replace(mind.access.caller, rights=frozenset({Right.READ})))
    assert (await reader.recall(Cue("apples", now=MAY, touch=False))).hits
    with pytest.raises(ForbiddenError):
        await reader.recall(Cue("apples", now=MAY))
    with pytest.raises(ForbiddenError):
        await reader.recall_each([Cue("apples", now=MAY, touch=False), Cue("apples", now=MAY)])


@pytest.fixture
def run(addresses, embedder, monkeypatch):
    monkeypatch.setattr(terminal, "open_recollect", lambda _: connected(Settings(embedder="fake"), addresses, embedder))
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(main.app, [*arguments, "--agent", "ada"])


def test_the_command_line_has_an_option_for_all_of_it(run):
    run("remember", "green apples")
    options = ["--kind", "event", "--zone", "Asia/Shanghai", "--since", "2020-01-01", "--until", "2900-01-01T00:00:00"]
    options += ["--topic", "food", "--descendants", "--weight", "text=0.5", "--weight", "vector=0", "--no-keep"]
    shown = run("recall", "apples", *options, "--consult")
    assert shown.exit_code == 0, shown.output
    assert "green apples" in shown.output
    assert "read: skipped: no chat model is configured" in shown.output
    assert "nothing found" in run("recall", "apples", "--kind", "fact").output


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--weight", "text"], "--weight must be written as in text=0.5"),
        (["--weight", "text=much"], "--weight must be written as in text=0.5"),
        (["--zone", "Mars/Olympus"], "zone must be"),
        (["--since", "2025-05-02", "--until", "2025-05-01"], "since must be before until"),
        (["--topic", "->"], "topics must name a topic"),
    ],
)
def test_the_command_line_refuses_what_makes_no_sense(run, options, says):
    assert says in str(run("recall", "apples", *options).exception)
