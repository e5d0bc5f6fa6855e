"""Enrichment with a real, very small model: what it says is of no worth, but every part must fit the next."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from conftest import new_key
from recollect.doors.http.app import create_app
from recollect.llm.openai.chat import ChatEndpoint, OpenAIChatModel
from recollect.models.knowledge import EntityType
from recollect.settings import Settings
from recollect.wiring import connected
from support.measuring.sizes import Sizes
from support.models.chat_server import MODEL, find_weights, serving_chat
from support.service.serving import serving

SCOPE = {"agent": "ada", "user": "li"}
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TOPICS = (
    ("Ann lives in Oslo and rows her boat on the lake.", "Her boat on the lake needs new oars for rowing."),
    ("Bob works for Acme and waits for his tax return.", "The tax office sent the tax return of Bob to Acme."),
)
SEGMENTS = Sizes("segments", ci=1, long=2)
ANSWER_TOKENS = 100
"""Short enough for a slow machine. Such a model seldom comes to an end before: what it said until then is used."""
TRIES = 12


def tell(texts):
    """Every message of the user's with an answer."""
    for number, text in enumerate(texts):
        at = NOON + timedelta(minutes=number)
        yield {"role": "user", "content": text, "occurred_at": at.isoformat()}
        yield {"role": "assistant", "content": "I see.", "occurred_at": at.isoformat()}


@pytest.mark.real_model
@pytest.mark.slow
@pytest.mark.skipif(find_weights() is None, reason="the weights of the small chat model are not installed")
@pytest.mark.promise("A real model enriches segments, and every part of what it says fits the next", SEGMENTS)
async def test_a_real_model_enriches_what_was_said(addresses):
    with serving_chat() as server:
        endpoint = ChatEndpoint(server.url, MODEL, seconds=240, characters=2_000, answer_tokens=ANSWER_TOKENS)
        chat = OpenAIChatModel(endpoint)
        async with connected(Settings(embedder="none"), addresses, None, chat) as recollect:
            _, secret = await new_key(recollect)
            async with serving(create_app(recollect=recollect)) as url:
                headers = {"Authorization": f"Bearer {secret}"}
                async with httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as http:
                    await enrich_by(http, recollect, chat)
        await chat.close()


async def enrich_by(http, recollect, chat):
    messages = []
    for topic in TOPICS[: SEGMENTS.now]:
        answer = await http.post("/v1/messages", json=SCOPE | {"conversation": "c", "messages": list(tell(topic))})
        messages += [message["id"] for message in answer.json()["messages"]]
        await http.patch("/v1/conversations/c", json=SCOPE | {"close_segment": True})
    segments = await wait_patiently(http, recollect)
    spans = [(segment["first_number"], segment["last_number"]) for segment in segments]
    assert spans == [(1, 4), (5, 8)][: SEGMENTS.now]
    print([(segment["state"], segment["label"], segment["reason"]) for segment in segments], chat.total)
    assert "enriched" in {segment["state"] for segment in segments}
    for number, segment in enumerate(segments):
        await check_segment(http, segment, messages[4 * number : 4 * number + 4])
    await check_ledger(http, chat, segments)
    await check_facts(http, messages)


async def wait_patiently(http, recollect):
    """Let a worker work; where so small a model said nothing of use, it asks again a little later."""
    for _ in range(TRIES):
        await recollect.work(until_empty=True)
        answer = await http.get("/v1/conversations/c/segments", params=SCOPE)
        segments = answer.json()["segments"]
        if all(segment["state"] != "closed" for segment in segments):
            return segments
        await asyncio.sleep(1)
    raise AssertionError([(segment["state"], segment["reason"]) for segment in segments])


async def check_segment(http, segment, messages):
    summary = (await http.get(f"/v1/memories/{segment['summary_id']}", params=SCOPE)).json()
    assert summary["kind"] == "summary" and summary["content"].strip()
    assert set(summary["evidence"]) == set(messages)
    assert 1 <= summary["importance"] <= 10
    assert segment["label"]
    assert bool(segment["reason"]) == (segment["state"] == "failed")
    for message in messages:
        assert (await http.get(f"/v1/memories/{message}", params=SCOPE)).json()["progress"] == segment["state"]


async def check_ledger(http, chat, segments):
    sums = (await http.get("/v1/ledger", params=SCOPE)).json()["sums"]
    asked = [row for row in sums if row["model"]]
    assert {row["step"] for row in asked} >= {"summarise"} and {row["model"] for row in asked} == {MODEL}
    assert sum(row["prompt_tokens"] for row in asked) == chat.total.prompt_tokens > 100 * len(segments)
    spent = sum(row["completion_tokens"] for row in asked)
    assert spent == chat.total.completion_tokens and 0 < spent <= ANSWER_TOKENS * chat.total.requests
    assert {row["step"] for row in sums} >= {"label", "segment", "summarise", "extract", "resolve", "link"}


async def check_facts(http, messages):
    """Whatever it takes for a fact joins two entities of the scope, has two times, and rests on what was said."""
    facts = (await http.get("/v1/facts", params=SCOPE)).json()["facts"]
    found = (await http.get("/v1/entities", params=SCOPE | {"limit": 200})).json()["entities"]
    entities = {entity["id"]: entity for entity in found}
    print([fact["text"] for fact in facts], [entity["name"] for entity in found])
    assert {entity["type"] for entity in found} <= set(EntityType)
    for fact in facts:
        assert fact["subject"] != fact["object"] and {fact["subject"], fact["object"]} <= entities.keys()
        assert fact["text"].strip() and fact["predicate"].strip()
        begun, over = fact["span"]["valid_at"], fact["span"]["invalid_at"]
        assert not begun or not over or datetime.fromisoformat(begun) < datetime.fromisoformat(over)
        memory = (await http.get(f"/v1/memories/{fact['memory_id']}", params=SCOPE)).json()
        assert memory["kind"] == "fact" and memory["evidence"] and set(memory["evidence"]) <= set(messages)
