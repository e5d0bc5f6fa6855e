"""All that a cue may ask for travels through every door, and what makes no sense is refused at each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from conftest import http_client, new_key
from recollect import wiring
from recollect.client import Client
from recollect.client.bodies import flatten
from recollect.doors.cli import main
from recollect.doors.cli.terminal import FILTER_OPTIONS
from recollect.doors.dify.document import FILTER
from recollect.doors.http.bodies.fields import build
from recollect.doors.http.bodies.memories import FilterBody, RecallOptionsBody
from recollect.doors.mcp.arguments import FilterArguments
from recollect.errors import ForbiddenError
from recollect.models.conversations import NewMessage
from recollect.models.filters import FIELDS, Filter
from recollect.models.memories import Kind, NewMemory, RecallState, Role
from recollect.models.recall import Cue, Mode, StreamWeights
from recollect.models.service import Right
from recollect.settings import Settings
from recollect.wiring import connected
from support.service.accesses import with_access

MAY = datetime(2025, 5, 1, tzinfo=UTC)
EVERYTHING = Cue(
    "apples",
    embedding=[1.0, 0.0],
    limit=3,
    kinds=(Kind.EVENT, Kind.FACT),
    min_trust=7,
    as_of=MAY,
    channels=("text", "recent"),
    weighing=StreamWeights(Mode.PAPER, recency=0.5, gains=(1.0, 2.0, 3.0), decay=0.9),
    touch=False,
    now=MAY,
    at=MAY,
    zone="Asia/Shanghai",
    since=MAY - timedelta(days=2),
    until=MAY,
    topics=("travel->Japan", "旅行"),
    below=True,
    topics_only=True,
    conversations=("c-1",),
    roles=(Role.USER, Role.TOOL),
    speakers=("Ann",),
    origins=("http",),
    min_importance=2.5,
    pinned=False,
    state=RecallState.FADED,
    where=("project == alpha", "size >= 3"),
    weights={"text": 0.25, "recent": 2.0},
    consult=True,
    judge=True,
    keep=True,
)


NAMED = {name: getattr(EVERYTHING, name) for name in (*FIELDS, "below", "topics_only")}
"""Every field of a filter, under the name that it has at every door."""


def test_every_field_of_a_filter_is_tried():
    assert len(EVERYTHING.named) == len(FIELDS)
    assert {*FIELDS, "below", "topics_only"} == {*FilterBody.model_fields} == {*FilterArguments.model_fields}
    assert {*FIELDS, "below", "topics_only"} == {*FILTER_OPTIONS} == {*FILTER} == {*Filter.__dataclass_fields__}


def test_a_filter_travels_whole_through_the_tools_of_a_model():
    given = FilterArguments.model_validate(flatten(Filter(**NAMED)))
    assert Filter(**given.to_fields()) == Filter(**NAMED)


def test_a_cue_travels_whole():
    for cue in (EVERYTHING, Cue("apples"), replace(EVERYTHING, keep=False, embedding=None)):
        assert build(Cue, RecallOptionsBody.model_validate(flatten(cue))) == cue


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
        {"below": "yes"},
        {"topics_only": True},
        {"state": "lost"},
        {"roles": ["king"]},
        {"min_importance": 11},
        {"where": ["project = alpha"]},
        {"where": [{"project": "alpha"}]},
        {"speakers": ["two\nlines"]},
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
        asked = Cue("apples", zone="Europe/Berlin", since=MAY, topics=("food",), below=True, weights={"text": 2.0})
        remote = await (await client.mind("ada", "li")).recall(asked)
    assert [hit.memory.content for hit in remote.hits] == ["green apples"]
    assert [hit.memory.content for hit in (await mind.recall(asked)).hits] == ["green apples"]


TRIED = (
    {"kinds": (Kind.THOUGHT,)}, {"speakers": ("ann",)}, {"since": MAY}, {"until": MAY}, {"min_importance": 8},
    {"where": ("size >= 3", "project == alpha")}, {"topics": ("food",)}, {"topics": ("food",), "below": True},
    {"pinned": True}, {"state": RecallState.FADED}, {"origins": ("library",)}, {"conversations": ("c-1",)},
    {"roles": (Role.USER,)}, {"min_trust": 101 - 1}, {"as_of": MAY}, {"at": MAY},
)  # fmt: skip


async def test_a_list_is_restricted_alike_at_every_door(recollect, mind):
    await mind.remember(
        [
            NewMemory("green apples", Kind.THOUGHT, "Ann", 9, topic="food", pinned=True),
            NewMemory("red apples", occurred_at=MAY - timedelta(days=1), metadata={"size": 3, "project": "alpha"}),
            NewMemory("no apples", topic="food->none", metadata={"size": 2}),
        ]
    )
    await mind.conversation("c-1").append([NewMessage(Role.USER, "apples?"), NewMessage(Role.ASSISTANT, "Yes.")])
    _, secret = await new_key(recollect)
    client, sizes = Client("http://test", secret), set()
    async with http_client(recollect, secret) as http:
        client._transport._http = http
        remote = await client.mind("ada", "li")
        for named in TRIED:
            only = Filter(**named)
            page = await mind.list(filter=only)
            assert await remote.list(filter=only) == page, named
            blank = {"topics_only": True} if only.topics else {}
            listed = await remote.recall(Cue("", **named, **blank, touch=False))
            assert {hit.memory.id for hit in listed.hits} == {each.id for each in page.memories}, named
            sizes.add(len(page.memories))
        answer = await http.get("/v1/memories", params={"agent": "ada", "user": "li", "where": "size = 3"})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert {0, 1, 2, 5} <= sizes


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
    monkeypatch.setattr(
        wiring, "open_recollect", lambda *_, **__: connected(Settings(embedder="fake"), addresses, embedder)
    )
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(main.app, [*arguments, "--agent", "ada"])


def test_the_command_line_has_an_option_for_all_of_it(run):
    run("remember", "green apples")
    options = ["--kinds", "event", "--zone", "Asia/Shanghai", "--since", "2020-01-01", "--until", "2900-01-01T00:00:00"]
    options += ["--topics", "food", "--below", "--weight", "text=0.5", "--weight", "vector=0", "--no-keep"]
    shown = run("recall", "apples", *options, "--consult")
    assert shown.exit_code == 0, shown.output
    assert "green apples" in shown.output
    assert "read: skipped: no chat model is configured" in shown.output
    assert "nothing found" in run("recall", "apples", "--kinds", "fact").output


def test_the_command_line_lists_and_exports_what_a_filter_admits(run, tmp_path):
    run("remember", "green apples", "--importance", "9")
    run("remember", "red apples")
    assert "red" not in run("recall", "--min-importance", "9").output
    assert "red" in run("recall", "--until", "2900-01-01").output
    path = tmp_path / "some.jsonl"
    shown = run("mind", "export", "jsonl", str(path), "--min-importance", "9")
    assert shown.exit_code == 0, shown.output
    assert [line.split(",")[0] for line in path.read_text().splitlines()] == ['{"content":"green apples"']


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--weight", "text"], "--weight must be written as in text=0.5"),
        (["--weight", "text=much"], "--weight must be written as in text=0.5"),
        (["--zone", "Mars/Olympus"], "zone must be"),
        (["--since", "2025-05-02", "--until", "2025-05-01"], "since must be before until"),
        (["--topics", "->"], "topics must be a topic path"),
    ],
)
def test_the_command_line_refuses_what_makes_no_sense(run, options, says):
    assert says in str(run("recall", "apples", *options).exception)
