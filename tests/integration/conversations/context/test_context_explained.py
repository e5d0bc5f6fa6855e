"""A context says what each share was granted and used, and what it left out, and why."""

from __future__ import annotations

import asyncio

import pytest

from conftest import http_client, new_key
from integration.conversations.messages.test_threads_plan import asked, explain, fill
from recollect import sync
from recollect.client import Client
from recollect.core.recall import relevance
from recollect.models import BudgetShares, Cue, HistoryOptions
from recollect.models.blocks import OmitReason
from recollect.models.conversations import NewMessage
from recollect.models.memories import NewMemory, Role
from recollect.models.service import Right
from recollect.store.conversations.conversations import QUERIES
from recollect.verbs.conversations import context as verb
from support.database import plans
from support.service.mcp_doors import listening

SCOPE = {"agent": "ada", "user": "li"}
TEXT = "which nuts may go into the cake"


async def talk(mind, turns):
    """Say a few turns about nuts."""
    said = []
    for number in range(turns):
        said += [NewMessage(Role.USER, f"turn {number}: nuts?"), NewMessage(Role.ASSISTANT, f"turn {number}: nuts.")]
    return await mind.conversation("c").append(said)


async def ask(mind, budget=4_000, **more):
    cue = Cue(TEXT, explain=True, touch=False, **{"min_relevance": 0.0} | more.pop("cue", {}))
    return await mind.conversation("c").context(cue, budget, **more)


def reasons(made):
    return {hit.id: hit.why for hit in made.left_out.hits}


async def test_shares_say_what_was_granted_and_used(mind):
    await talk(mind, 3)
    await mind.remember([f"nuts for the cake, kind {number}" for number in range(4)])
    made = await ask(mind)
    shares, spent = made.shares, made.spending
    assert (shares.history.used, shares.memories.used, shares.summary.used) == (
        spent.history, spent.memories, spent.summary
    )  # fmt: skip
    assert shares.history.used <= shares.history.granted
    assert shares.memories.granted > shares.memories.used > 0
    assert shares.summary.granted == 0
    none = await ask(mind, shares=BudgetShares(1.0, 0.0, 0.0))
    assert (none.shares.memories.granted, none.shares.memories.used, none.left_out.hits) == (0, 0, ())


async def test_everything_that_fits_leaves_nothing_out(mind):
    await talk(mind, 2)
    await mind.remember("walnuts are fine for the cake")
    made = await ask(mind)
    assert (made.left_out.turns, made.left_out.tokens) == (0, 0)
    # The messages of the history are recalled, too.
    assert {*reasons(made).values()} <= {OmitReason.IN_HISTORY}


async def test_what_finds_no_room_is_named_with_its_cost(mind):
    receipts = await mind.remember([f"nuts for the cake number {number}, " + "and more " * 30 for number in range(9)])
    made = await ask(mind, 250)
    shown = {hit.memory.id for hit in made.hits}
    assert reasons(made) == {each.id: OmitReason.NO_ROOM for each in receipts if each.id not in shown}
    assert len(made.left_out.hits) > 0
    assert all(hit.tokens > 30 for hit in made.left_out.hits)
    scores = [hit.score for hit in made.left_out.hits]
    assert scores == sorted(scores, reverse=True)


async def test_what_the_history_says_is_not_shown_again(mind):
    await mind.conversation("c").append(
        [{"role": "user", "content": "no nuts"}, {"role": "assistant", "content": "fine"}]
    )
    made = await ask(mind)
    assert [*reasons(made).values()] == [OmitReason.IN_HISTORY] * 2
    assert not made.hits
    # What the user says now is said, too.
    [same] = await mind.remember(NewMemory(TEXT, speaker="Bo"))
    assert reasons(await ask(mind))[same.id] is OmitReason.IN_HISTORY


async def test_what_another_memory_says_is_not_repeated(mind):
    first, second = await mind.remember([NewMemory("hazelnuts in the cake", speaker=name) for name in ("Ann", "Bo")])
    made = await ask(mind, cue={"channels": ("text",)})
    assert sorted([hit.memory.id for hit in made.hits] + [*reasons(made)]) == sorted([first.id, second.id])
    assert [*reasons(made).values()] == [OmitReason.REPEATED]


async def test_beyond_the_limit_is_said(mind):
    await mind.remember([f"nuts for the cake, kind {number}" for number in range(5)])
    made = await ask(mind, cue={"limit": 2})
    assert len(made.hits) == 2
    assert [*reasons(made).values()] == [OmitReason.LIMIT] * 3


async def test_what_is_hardly_likely_to_help_is_named(mind, monkeypatch):
    await mind.remember(["the cake may have any nuts", "a train leaves at noon"])
    [best, worse] = (await mind.recall(Cue(TEXT, touch=False))).hits
    monkeypatch.setattr(relevance, "FLOOR", best.relevance)
    monkeypatch.setattr(relevance, "MIN_RELEVANCE", 0.0)
    made = await ask(mind, cue={"min_relevance": None})
    assert [hit.memory.id for hit in made.hits] == [best.memory.id]
    assert reasons(made) == {worse.memory.id: OmitReason.IRRELEVANT}


async def test_older_turns_that_fell_out_are_counted_along_the_thread(mind):
    said = await talk(mind, 10)
    # Another branch is no part of this thread.
    await mind.conversation("c").append(NewMessage(Role.USER, "elsewhere", parent=said[3].id))
    made = await ask(mind, 120, window=HistoryOptions(leaf=said[-1].id), shares=BudgetShares(1.0, 0.0, 0.0))
    kept = len(made.history.messages)
    assert 0 < kept < 20
    assert made.left_out.turns == 10 - kept // 2
    whole = await mind.conversation("c").history(HistoryOptions(100_000, leaf=said[-1].id))
    assert made.left_out.tokens == sum(each.tokens for each in whole.messages[: 20 - kept])
    none = await ask(mind, 4_000, window=HistoryOptions(leaf=said[-1].id), shares=BudgetShares(0.0, 1.0, 0.0))
    assert (none.history.messages, none.left_out.turns, none.left_out.tokens) == ((), 10, whole.tokens)


async def test_a_conversation_that_does_not_exist_yet_leaves_no_turn_out(mind):
    made = await mind.conversation("new").context(Cue(TEXT, explain=True), 500)
    assert (made.left_out.turns, made.left_out.hits) == (0, ())


async def test_who_does_not_ask_pays_nothing(mind, monkeypatch):
    await talk(mind, 2)

    def refuse(*_):
        raise AssertionError("explained")

    monkeypatch.setattr(verb, "list_left_out", refuse)
    monkeypatch.setattr(verb, "count_above", refuse)
    plain = await mind.conversation("c").context(Cue(TEXT, touch=False), 4_000)
    assert (plain.shares, plain.left_out) == (None, None)
    with pytest.raises(AssertionError):
        await ask(mind)


async def test_the_same_prompt_is_made(mind):
    await talk(mind, 4)
    await mind.remember([f"nuts for the cake, kind {number}" for number in range(9)])
    plain = await mind.conversation("c").context(Cue(TEXT, touch=False, min_relevance=0.0), 200)
    made = await ask(mind, 200)
    assert (made.messages, made.spending) == (plain.messages, plain.spending)


async def test_the_right_to_read_is_enough_over_http_and_by_both_clients(recollect, mind):
    _, secret = await new_key(recollect, rights=(Right.READ,))
    await talk(mind, 8)
    await mind.remember([f"nuts for the cake, kind {number}" for number in range(9)])
    here = await ask(mind, 150)
    asked = SCOPE | {"conversation": "c", "text": TEXT, "budget": 150, "min_relevance": 0.0, "touch": False}
    async with http_client(recollect, secret) as http:
        told = (await http.post("/v1/context", json=asked | {"explain": True})).json()
        assert told["shares"]["history"] == {
            "granted": here.shares.history.granted, "used": here.shares.history.used
        }  # fmt: skip
        assert told["left_out"]["turns"] == here.left_out.turns > 0
        assert [(each["id"], each["why"]) for each in told["left_out"]["hits"]] == [
            (str(each.id), each.why) for each in here.left_out.hits
        ]
        plain = (await http.post("/v1/context", json=asked)).json()
        assert (plain["shares"], plain["left_out"]) == (None, None)

    cue = Cue(TEXT, explain=True, touch=False, min_relevance=0.0)

    def without_a_loop(url):
        with sync.connect(url, secret) as client:
            return client.mind("ada", "li").conversation("c").context(cue, 150)

    async with listening(recollect) as url, Client(url, secret) as client:
        found = await (await client.mind("ada", "li")).conversation("c").context(cue, 150)
        assert (found.shares, found.left_out) == (here.shares, here.left_out)
        assert (await asyncio.to_thread(without_a_loop, url)).left_out == here.left_out


@pytest.mark.parametrize("mode", plans.MODES)
async def test_a_thread_is_counted_by_the_key(mind, owner, addresses, mode):
    [said] = await mind.conversation("long").append(NewMessage(Role.USER, "first"))
    await mind.forget([said.id])
    fill(owner, "long", 400, 1_000)
    owner.execute("analyze")
    [(leaf,)] = owner.execute("select id from messages where number = 300").fetchall()
    with plans.planning(addresses, mind.access.scope.tenant_id, mode) as connection:
        parameters = asked(leaf=leaf, most=20_000)
        [row] = connection.execute(QUERIES["count_thread"], parameters).fetchall()
        work = explain(connection, QUERIES["count_thread"], parameters)
    assert row == (150, 3_000)
    assert work.rows <= 310
