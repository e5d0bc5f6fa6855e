"""What a filter admits is forgotten with all that was derived from it, at every door, and a dry run says so before."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime
from functools import partial

import pytest

from conftest import http_client, new_key
from integration.mcp.test_mcp import call
from recollect.client import Client
from recollect.errors import InvalidInputError
from recollect.models.filters import Filter
from recollect.models.knowledge import NewFact
from recollect.models.memories import Kind, NewMemory, RecallState
from recollect.verbs.memories import read
from support.measuring.sizes import Sizes
from support.memories.filter_cases import admit, draw_cases, fill
from support.programs import command_line
from support.programs.command_line import settings_of
from support.service.mcp_doors import listening, over_http

FILTERS = Sizes("filters", ci=60, long=1_000)
SCOPE = {"agent": "ada", "user": "li"}
MAY = datetime(2025, 5, 1, tzinfo=UTC)


def expect(owner, only):
    """Tell by plain SQL what a filter admits of all that can be read, and what rests on it."""
    shown = "select id from memories where withheld is null or withheld in ('archived', 'faded', 'past')"
    readable = shown if only.state is None else "select id from memories where withheld is distinct from 'deleted'"
    gone = admit(owner, only) & {row[0] for row in owner.execute(readable).fetchall()}
    evidence = owner.execute("select memory_id, source_id from evidence").fetchall()
    while more := {memory for memory, source in evidence if source in gone} - gone:
        gone |= more
    return gone


def stored(owner):
    return {row[0] for row in owner.execute("select id from memories").fetchall()}


@pytest.mark.promise(
    "To forget by a filter deletes what plain SQL finds, with what rests on it, and nothing else", FILTERS
)
async def test_what_a_filter_admits_is_forgotten(mind, owner):
    as_of = await fill(mind, owner)
    sources = [each.id for each in (await mind.list(limit=20)).memories]
    await mind.remember(
        [NewMemory(f"of {place}", Kind.THOUGHT, evidence=(each,)) for place, each in enumerate(sources)]
    )
    everything, largest = stored(owner), Filter(speakers=("Bob",))
    for case in draw_cases(random.Random(21), FILTERS.now, as_of):
        if case.base.past:
            continue
        found = await mind.forget(filter=case.whole, dry_run=True)
        assert {*found} == expect(owner, case.whole) and len(found) == len({*found}), case
        largest = max(largest, case.whole, key=lambda only: len(expect(owner, only)))
    assert stored(owner) == everything
    expected = expect(owner, largest)
    assert {*await mind.forget(filter=largest)} == expected and stored(owner) == everything - expected
    assert (await mind.list(filter=largest)).memories == ()
    assert await mind.forget(filter=largest) == []


async def test_a_filter_is_forgotten_in_portions(mind, owner, monkeypatch):
    monkeypatch.setattr(read, "MAX_MEMORIES", 4)
    await mind.remember([NewMemory(f"apple {number}", importance=9 if number % 2 else 5) for number in range(23)])
    assert len(await mind.forget(filter=Filter(min_importance=9), dry_run=True)) == 11
    assert len(await mind.forget(filter=Filter(min_importance=9))) == 11
    assert {each.importance for each in (await mind.list()).memories} == {5.0}
    with pytest.raises(InvalidInputError):
        await mind.forget([each.id for each in (await mind.list(limit=5)).memories])


async def test_no_version_comes_back(mind, owner):
    [rome] = await mind.knowledge.add([NewFact("Ann", "lives in", "Rome", valid_at=MAY)])
    await mind.knowledge.add([NewFact("Ann", "lives in", "Oslo", valid_at=MAY, replaces=(rome.id,))])
    gone = await mind.forget(filter=Filter(kinds=(Kind.FACT,)))
    assert len(gone) >= 2 and stored(owner) == set()


async def test_a_deleted_conversation_is_left_to_its_purge(mind, owner):
    await fill(mind, owner)
    [hidden] = owner.execute("select id from memories where withheld = 'deleted' and kind = 'message'").fetchone()
    for state in (None, *RecallState):
        only = Filter(state=state, since=MAY)
        assert hidden not in await mind.forget(filter=only, dry_run=True), state
        assert hidden not in {each.id for each in (await mind.list(limit=200, filter=only)).memories}, state


@pytest.mark.parametrize(
    "given", [{}, {"filter": Filter()}, {"filter": Filter(min_trust=101)}, {"ids": [], "dry_run": True}]
)
async def test_what_names_nothing_forgets_nothing(mind, given):
    await mind.remember("apples")
    with pytest.raises(InvalidInputError):
        await mind.forget(**given)


async def test_over_http_and_by_a_client(recollect, mind):
    [green, red] = await mind.remember([NewMemory("green", importance=9), NewMemory("red")])
    _, secret = await new_key(recollect)
    client = Client("http://test", secret)
    async with http_client(recollect, secret) as http:
        client._transport._http = http
        asked = SCOPE | {"min_importance": 9, "dry_run": True}
        assert (await http.post("/v1/forget", json=asked)).json() == {"forgotten": [str(green.id)]}
        for refused in ({}, {"ids": [str(red.id)], "min_importance": 9}, {"min_importance": 11}):
            answer = await http.post("/v1/forget", json=SCOPE | refused)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), refused
        remote = await client.mind("ada", "li")
        assert await remote.forget([red.id], dry_run=True) == [red.id]
        assert await remote.forget(filter=Filter(min_importance=9)) == [green.id]
    assert [each.id for each in (await mind.list()).memories] == [red.id]


async def test_by_mcp(recollect, mind):
    [green, red] = await mind.remember([NewMemory("green", importance=9), NewMemory("red")])
    _, secret = await new_key(recollect)
    async with listening(recollect) as url, over_http(url, secret) as client:
        _, text = await call(client, "forget", min_importance=9, dry_run=True, **SCOPE)
        gone, _ = await call(client, "forget", min_importance=9, **SCOPE)
    assert text == "Would be forgotten: 1, with all that was derived from them."
    assert gone["forgotten"] == [str(green.id)]
    assert [each.id for each in (await mind.list()).memories] == [red.id]


async def test_from_the_command_line(mind, addresses):
    def run(*words, **more):
        return command_line.run(*words, "--agent", "ada", "--user", "li", settings=settings_of(addresses), **more)

    _, red = await mind.remember([NewMemory("green", importance=9), NewMemory("red")])
    asked = ("forget", "--min-importance", "9")
    assert await asyncio.to_thread(run, *asked, "--dry-run") == "1 memories would be forgotten.\n"
    await asyncio.to_thread(partial(run, *asked, typed="n", fails=True))
    assert len((await mind.list()).memories) == 2
    assert await asyncio.to_thread(run, *asked, "--yes") == "1 memories are forgotten.\n"
    assert [each.id for each in (await mind.list()).memories] == [red.id]
    await asyncio.to_thread(run, "forget", str(red.id), "--yes")
    assert (await mind.list()).memories == ()
