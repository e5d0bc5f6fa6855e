"""A recall says how it came about without being kept, by the same explanation as a kept one has."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from conftest import http_client, new_key
from integration.recall.kept.test_recalls_kept import APPLES, KEPT, count, hits_of, of
from recollect import sync
from recollect.client import Client
from recollect.models import Cue
from recollect.models.recall import CandidateOutcome
from recollect.models.service import Right
from recollect.verbs.recall import save as verb
from support.service.mcp_doors import listening

SCOPE = {"agent": "ada", "user": "li"}
ASKED = replace(KEPT, keep=False, explain=True, limit=2)


@pytest.fixture
async def apples(mind):
    return [receipt.id for receipt in await mind.remember(APPLES)]


async def test_nothing_is_kept_for_it(mind, apples, owner):
    found = await mind.recall(ASKED)
    assert (found.recall_id, found.explanation.recall_id, count(owner)) == (None, None, 0)
    assert [each.fate for each in found.explanation.placings] == [
        CandidateOutcome.HIT,
        CandidateOutcome.HIT,
        CandidateOutcome.BELOW,
        CandidateOutcome.BELOW,
    ]
    assert of(found.explanation.placings[:2]) == hits_of(found)
    assert {each.id for each in found.explanation.placings} == {*apples}
    assert [each.memory for each in found.explanation.placings] == [*(hit.memory for hit in found.hits), None, None]


async def test_it_is_the_explanation_of_a_kept_recall(mind, apples):
    found = await mind.recall(replace(ASKED, keep=True))
    kept = await mind.recalls.explain(found.recall_id)
    live = found.explanation
    assert live.recall_id == kept.recall_id == found.recall_id
    # Only the time of the question is taken twice, and an access is noted in between.
    again = {"asked_at": kept.asked_at, "placings": kept.placings}
    assert replace(live, **again) == kept
    assert [replace(each, memory=None) for each in live.placings] == [
        replace(each, memory=None) for each in kept.placings
    ]
    assert live.same and "explain" not in kept.cue


async def test_each_of_several_cues_is_explained_if_it_asks_for_that(mind, apples):
    both = await mind.recall_each([ASKED, "apples", replace(ASKED, channels=("text",))], isolated=True)
    assert [each.explanation is not None for each in both] == [True, False, True]
    assert both[2].explanation.proposals.keys() == {"text"}


async def test_a_recall_that_does_not_ask_ranks_once(mind, apples, monkeypatch):
    async def refuse(*_):
        raise AssertionError("explained")

    monkeypatch.setattr("recollect.verbs.recall.recall.explain_now", refuse)
    assert (await mind.recall(replace(ASKED, explain=False))).explanation is None
    with pytest.raises(AssertionError):
        await mind.recall(ASKED)
    monkeypatch.undo()
    ranked = []
    monkeypatch.setattr(verb, "rank_again", lambda *given, **more: ranked.append(given) or ())
    await mind.recall(replace(ASKED, explain=False))
    assert ranked == []


async def test_what_finds_nothing_is_explained_and_an_empty_scope_is_not(recollect, mind, apples):
    nothing = await mind.recall(Cue("zzz", channels=("text",), explain=True))
    assert (nothing.hits, nothing.explanation.placings, nothing.explanation.same) == ((), (), True)
    assert (await (await recollect.mind("nobody")).recall(ASKED)).explanation is None


async def test_of_scopes_read_beside_the_own_one_is_explained(recollect, mind, apples):
    other = await recollect.mind("bo")
    [foreign] = await other.remember("green apples are sour")
    found = await mind.recall(replace(ASKED, also=("bo",)))
    assert foreign.id in {hit.memory.id for hit in found.hits}
    assert foreign.id not in {each.id for each in found.explanation.placings}


async def test_a_block_carries_it_too(mind, apples):
    shown = await mind.blocks.show(ASKED)
    assert {each.id for each in shown.explanation.placings} == {*apples}
    assert (await mind.blocks.show("apples")).explanation is None


async def test_the_right_to_read_is_enough_over_http_and_by_both_clients(recollect, mind, apples):
    _, secret = await new_key(recollect, rights=(Right.READ,))
    here = await mind.recall(replace(ASKED, touch=False))
    async with http_client(recollect, secret) as http:
        asked = SCOPE | {"text": ASKED.text, "limit": 2, "explain": True, "touch": False}
        told = (await http.post("/v1/recall", json=asked)).json()
        assert [each["fate"] for each in told["explanation"]["placings"]] == ["hit", "hit", "below", "below"]
        assert told["explanation"]["recall_id"] is None
        assert told["explanation"]["placings"][0]["memory"]["content"] == here.hits[0].memory.content
        plain = await http.post("/v1/recall", json=asked | {"explain": False})
        assert plain.json()["explanation"] is None
        assert (await http.post("/v1/recall", json=asked | {"explain": "yes"})).status_code == 422

    def without_a_loop(url):
        with sync.connect(url, secret) as client:
            return client.mind("ada", "li").recall(replace(ASKED, touch=False))

    async with listening(recollect) as url, Client(url, secret) as client:
        found = await (await client.mind("ada", "li")).recall(replace(ASKED, touch=False))
        assert found.explanation.placings == here.explanation.placings
        assert (await asyncio.to_thread(without_a_loop, url)).explanation.placings == here.explanation.placings
