"""Events that were remembered are enriched like talk, where the profile says so: in batches, at one question each."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.models.agents import EnrichSource, Profile
from recollect.models.filters import Filter
from recollect.models.memories import ImportanceFrom, Kind, MemoryProgress, NewMemory, Triple
from recollect.models.recall import Cue
from recollect.verbs.knowledge.enrich import enrich
from recollect.verbs.knowledge.steps.segment import MAX_EVENTS
from support.models.fake_chat import FakeChatModel
from support.service.known_numbers import first_number

MORNING = datetime(2026, 3, 2, 8, tzinfo=UTC)
ENTITIES = [
    {"name": "Ada", "type": "person", "aliases": [], "description": ""},
    {"name": "Mill Cafe", "type": "place", "aliases": [], "description": "a cafe"},
]
FACT = {
    "subject": "Ada",
    "predicate": "works at",
    "object": "Mill Cafe",
    "text": "Ada works at the Mill Cafe.",
    "valid_at": None,
    "invalid_at": None,
    "replaces": [],
}


class Reader:
    """A chat model that learns the same from whatever it reads, and keeps the prompts."""

    def __init__(self):
        self.prompts = []

    def __call__(self, prompt, _):
        self.prompts.append(prompt)
        found = {
            "summary": "Ada worked.",
            "label": "Work",
            "paths": ["Work -> Cafe"],
            "keywords": [],
            "importance": 4,
        }
        rated = {"important": [{"number": 1, "importance": 9}]}
        return json.dumps(found | rated | {"entities": ENTITIES, "facts": [FACT]})


@pytest.fixture
def reader():
    return Reader()


@pytest.fixture
async def living(recollect, reader):
    """An agent that learns from what it lives through."""
    running = replace(recollect, parts=replace(recollect.parts, chat=FakeChatModel(reader)))
    mind = await running.mind("ada")
    await mind.set_profile(Profile(enrich=EnrichSource.ALL))
    return mind


def events(count, begun=MORNING):
    return [
        NewMemory(f"Ada serves guest {number}", occurred_at=begun + timedelta(minutes=number))
        for number in range(count)
    ]


async def learn(mind):
    return await enrich(mind.access.parts, first_number(mind))


def fall_silent(owner):
    owner.execute("update conversations set idle_since = now() - interval '61 minutes'")


async def test_a_full_batch_becomes_a_summary_entities_facts_and_topics_by_one_question(living, owner, reader):
    receipts = await living.remember(events(MAX_EVENTS))
    assert owner.execute("select count(*) from procrastinate_jobs where task_name = 'enrich'").fetchone() == (1,)
    assert await learn(living) == 1
    assert len(reader.prompts) == 1
    assert "Ada (user)" not in reader.prompts[0]
    assert "ada (user): Ada serves guest 0" in reader.prompts[0]
    [fact] = (await living.knowledge.facts()).facts
    assert fact.text == FACT["text"]
    [summary] = (await living.list(filter=Filter(kinds=(Kind.SUMMARY,)))).memories
    assert summary.evidence == tuple(receipt.id for receipt in receipts)
    assert {entity.name for entity in (await living.knowledge.entities()).entities} == {"Ada", "Mill Cafe"}
    first, second = [await living.get(receipt.id) for receipt in receipts[:2]]
    assert (first.importance, first.importance_from) == (9.0, ImportanceFrom.MODEL)
    assert (second.importance, second.progress) == (2.0, MemoryProgress.ENRICHED)
    found = await living.recall(Cue("Ada", topics=("Work->Cafe",), topics_only=True))
    assert summary.id in {hit.memory.id for hit in found.hits}


async def test_another_day_or_silence_ends_a_batch(living, owner, reader):
    await living.remember([*events(3), *events(2, MORNING + timedelta(days=1))])
    assert await learn(living) == 1
    assert reader.prompts[0].count("Ada serves guest") == 3
    fall_silent(owner)
    assert await learn(living) == 1
    assert reader.prompts[1].count("Ada serves guest") == 2


async def test_the_journal_is_no_conversation_that_anybody_sees(living, owner):
    await living.remember(events(MAX_EVENTS))
    await learn(living)
    assert (await living.conversations()).conversations == ()
    assert (await living.overview()).conversations == 0
    [memory, *_] = (await living.list()).memories
    assert (memory.conversation, memory.role) == ("", None)
    hits = (await living.recall("Ada serves guest")).hits
    assert {hit.memory.conversation for hit in hits} == {""}


async def test_what_is_forgotten_takes_what_was_learned_from_it_alone(living, owner, reader):
    receipts = await living.remember(events(MAX_EVENTS))
    await learn(living)
    await living.forget([receipts[0].id])
    assert owner.execute("select count(*) from messages where id = %s", [receipts[0].id]).fetchone() == (0,)
    await living.forget([receipt.id for receipt in receipts[1:]])
    assert (await living.knowledge.facts()).facts == ()
    assert owner.execute("select count(*) from segments").fetchone() == (0,)


async def test_idle_events_and_other_kinds_are_not_read(living, owner, reader):
    idle = NewMemory("the bed is idle", triple=Triple("bed", "is", "idle"))
    await living.remember([idle, NewMemory("a thought", Kind.THOUGHT), NewMemory("Ada rests")])
    fall_silent(owner)
    assert await learn(living) == 1
    assert (
        "bed" not in reader.prompts[0] and "thought" not in reader.prompts[0].partition("<facts>")[0].split("<conv")[-1]
    )


async def test_by_itself_only_talk_is_learned_from(recollect, owner):
    mind = await recollect.mind("ada")
    await mind.remember(events(MAX_EVENTS))
    assert owner.execute("select count(*) from procrastinate_jobs where task_name = 'enrich'").fetchone() == (0,)
    assert owner.execute("select count(*) from messages").fetchone() == (0,)
