"""Relevance through the product: every hit of a usual recall has it, a floor binds, and a prompt has one by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from recollect.llm.build import has_minilm
from recollect.llm.local.minilm import load_minilm
from recollect.models.knowledge import NewFact
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue, Status
from recollect.wiring import prepare

ABOUT = [
    "Li is allergic to peanuts and carries a pen against it",
    "Li moved to Ghent in spring and likes the canals",
    "The cat of Li is called Pascal",
    "Li plays the cello in an orchestra on Thursdays",
]


@pytest.fixture
async def reads_meaning(recollect):
    """A mind whose memories are found by the real local model."""
    if not has_minilm():
        pytest.skip("the local model is not installed")
    embedder = load_minilm()
    await prepare(recollect.addresses, embedder)
    served = replace(recollect, parts=replace(recollect.parts, embedder=embedder))
    await served.operator.spaces.change(lambda _: None)
    return await served.mind("ada", "li")


async def test_every_hit_of_a_usual_recall_has_a_relevance_and_kept_ones_show_it(mind):
    await mind.remember(ABOUT)
    found = await mind.recall(Cue("What is the cat of Li called?", keep=True))
    assert all(0 < hit.relevance < 1 for hit in found.hits)
    assert found.hits[0].relevance == max(hit.relevance for hit in found.hits)
    explained = await mind.recalls.explain(found.recall_id)
    assert [each.relevance for each in explained.placings[: len(found.hits)]] == [hit.relevance for hit in found.hits]


async def test_a_channel_that_ranks_alone_and_a_list_tell_no_relevance(mind):
    await mind.remember(ABOUT)
    for cue in (Cue("cat", channels=("text",)), Cue("")):
        assert {hit.relevance for hit in (await mind.recall(cue)).hits} == {None}


async def test_a_least_relevance_binds_and_an_answer_with_nothing_relevant_says_so(mind):
    await mind.remember(ABOUT)
    cue = Cue("What is the cat of Li called?", touch=False)
    relevances = [hit.relevance for hit in (await mind.recall(cue)).hits]
    middle = sorted(relevances)[len(relevances) // 2]
    kept = await mind.recall(replace(cue, min_relevance=middle))
    assert [hit.relevance for hit in kept.hits] == [each for each in relevances if each >= middle]
    nothing = await mind.recall(replace(cue, min_relevance=1.0))
    assert (nothing.hits, nothing.status) == ((), Status.NOTHING_RELEVANT)
    assert (
        nothing.message
        == f"nothing is likely to help with the cue: the best that was found has relevance {max(relevances):.3f}"
    )
    assert (await mind.recall(replace(cue, text="xylophone quartz", min_relevance=0.5))).status in {
        Status.NOTHING_RELEVANT,
        Status.NO_CANDIDATES,
    }


async def test_over_http_relevance_and_its_floor_have_the_same_names(http, mind):
    await mind.remember(ABOUT)
    body = {"agent": "ada", "user": "li", "text": "What is the cat of Li called?"}
    usual = (await http.post("/v1/recall", json=body)).json()
    assert all(0 < hit["relevance"] < 1 for hit in usual["hits"])
    nothing = (await http.post("/v1/recall", json=body | {"min_relevance": 1})).json()
    assert (nothing["hits"], nothing["status"]) == ([], "nothing_relevant")
    assert (await http.post("/v1/recall", json=body | {"min_relevance": 2})).status_code == 422
    made = (await http.post("/v1/context", json=body | {"conversation": "c", "min_relevance": 1})).json()
    assert (made["hits"], made["status"]) == ([], "nothing_relevant")


async def test_what_a_cue_names_by_topic_or_entity_is_enough_for_a_prompt(mind):
    await mind.remember(NewMemory("Bring an umbrella", topic="travel->Japan"))
    await mind.knowledge.add([NewFact("Maria", "works at", "Acme")])
    named = await mind.conversation("c").context(Cue("anything new", topics=("travel->Japan",)), 500)
    assert "umbrella" in named.block
    assert "Acme" in (await mind.conversation("c").context("Maria then", 500)).block


async def test_a_question_that_nothing_answers_brings_no_memories_but_the_pinned(reads_meaning):
    mind = reads_meaning
    await mind.remember([*ABOUT, NewMemory("Always answer Li in Dutch", pinned=True)])
    made = await mind.conversation("c").context("What is 2+2?", 2_000)
    assert (made.hits, made.status) == ((), Status.NOTHING_RELEVANT)
    assert ["Always answer Li in Dutch" in line.text for line in made.lines] == [True]
    assert (await mind.blocks.show("What is 2+2?", 2_000)).status is Status.NOTHING_RELEVANT
    told = await mind.recall(Cue("What is 2+2?", touch=False))
    assert told.hits
    assert told.message.startswith("nothing is likely to help with the cue")
    asked = await mind.conversation("c").context("Which food must Li not eat?", 2_000)
    assert asked.hits[0].memory.content == ABOUT[0]


async def test_metrics_count_recalls_by_status_and_channels_that_are_late(http, mind, recollect, monkeypatch):
    await mind.remember(ABOUT)
    body = {"agent": "ada", "user": "li", "text": "What is the cat of Li called?"}

    async def count(name, **labels):
        told = (await http.get("/metrics")).text
        families = {family.name: family for family in text_string_to_metric_families(told)}
        samples = families[name].samples if name in families else []
        return sum(each.value for each in samples if each.name.endswith("_total") and each.labels == labels)

    before = await count("recollect_recalls", status="ok"), await count("recollect_recalls", status="nothing_relevant")
    late = await count("recollect_channels_late", channel="vector")
    await http.post("/v1/recall", json=body)
    await http.post("/v1/context", json=body | {"conversation": "c", "min_relevance": 1})
    monkeypatch.setattr(type(recollect.parts), "embed_in_time", give_nothing)
    await http.post("/v1/blocks", json=body)
    after = await count("recollect_recalls", status="ok"), await count("recollect_recalls", status="nothing_relevant")
    assert (after[0] - before[0], after[1] - before[1]) == (2, 1)
    assert await count("recollect_channels_late", channel="vector") == late + 1


async def give_nothing(*_, **__):
    """Stand for an embedder that is late."""
