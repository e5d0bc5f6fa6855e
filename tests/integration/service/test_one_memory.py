"""A chat scope and an agent scope walk through the same ten operations, with the same effects: it is one memory."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.core.agents.reflection import Insight, Insights, Questions
from recollect.models.agents import EnrichSource, Profile
from recollect.models.conversations import NewMessage
from recollect.models.filters import Filter
from recollect.models.imports import ExportRequest, ImportOptions
from recollect.models.memories import (
    FadeReason,
    FadingRules,
    ImportanceFrom,
    Kind,
    NewMemory,
    RecallState,
    Role,
)
from recollect.models.recall import Cue
from recollect.verbs.knowledge.enrich import enrich
from support.models.fake_chat import FakeChatModel
from support.service.known_numbers import first_number

MORNING = datetime(2026, 3, 2, 8, tzinfo=UTC)
LIVED = [
    "Li moved to Ghent in spring and likes the canals",
    "Li plays the cello in an orchestra on Thursdays",
    "The cat of Li is called Pascal",
    "Li is allergic to peanuts",
]
ENTITIES = [{"name": name, "type": "person", "aliases": [], "description": ""} for name in ("Li", "Pascal")]
FACT = {
    "subject": "Li",
    "predicate": "keeps",
    "object": "Pascal",
    "text": "Li keeps the cat Pascal.",
    "valid_at": None,
    "invalid_at": None,
    "replaces": [],
}


ALLERGIC = re.compile(r"^(\d+)\. .*allergic", re.MULTILINE)


def answer(prompt, asked):
    """Learn a fact, rate the line about peanuts, and reflect."""
    if asked is Questions:
        return Questions(questions=["What is Li like?"])
    if asked is Insights:
        said = {"subject": "Li", "predicate": "loves", "object": "music", "importance": 6}
        return Insights(insights=[Insight(text="Li loves music.", notes=[1], **said)])
    found = {"summary": "About Li.", "label": "Li", "paths": ["People -> Li"], "keywords": ["Li"], "importance": 6}
    rated = {"important": [{"number": int(line), "importance": 9} for line in ALLERGIC.findall(prompt)]}
    return json.dumps(found | rated | {"entities": ENTITIES, "facts": [FACT]})


class Walk:
    """One scope on its way; `store` is the one step that differs."""

    def __init__(self, running, mind, owner, kind):
        self.running, self.mind, self.owner, self.kind = running, mind, owner, kind

    async def store(self):
        moments = [MORNING + timedelta(minutes=number) for number in range(len(LIVED))]
        if self.kind is Kind.EVENT:
            new = [NewMemory(text, occurred_at=at) for text, at in zip(LIVED, moments, strict=True)]
            return [receipt.id for receipt in await self.mind.remember(new)]
        said = [NewMessage(Role.USER, text, occurred_at=at) for text, at in zip(LIVED, moments, strict=True)]
        return [each.id for each in await self.mind.conversation("c").append(said)]

    async def learn(self):
        """Let what was stored come to its end, and learn from it."""
        self.owner.execute("update conversations set idle_since = now() - interval '61 minutes'")
        return await enrich(self.mind.access.parts, first_number(self.mind))

    async def export(self, agent="ada"):
        file = io.BytesIO()
        caller = await self.running.operator.act_for("default")
        await self.running.operator.exports.write_export_file(caller, ExportRequest(agent=agent, user="li"), file)
        return file.getvalue()


@pytest.fixture(params=[Kind.MESSAGE, Kind.EVENT], ids=["chat", "agent"])
async def walk(recollect, owner, request):
    running = replace(recollect, parts=replace(recollect.parts, chat=FakeChatModel(answer)))
    mind = await running.mind("ada", "li")
    await mind.set_profile(Profile(enrich=EnrichSource.ALL, reflection_threshold=10_000))
    return Walk(running, mind, owner, request.param)


async def test_both_are_stored_scored_recalled_shown_and_enriched_alike(walk):
    mind, kind = walk.mind, walk.kind

    # Store, and score importance: by rules at once.
    ids = await walk.store()
    first, *_, last = [await mind.get(each) for each in ids]
    assert (first.importance, last.importance) == (8.0, 8.0)
    assert {first.importance_from, last.importance_from} == {ImportanceFrom.RULE}

    # Recall by filter, and context.
    only = Filter(since=MORNING + timedelta(minutes=1), until=MORNING + timedelta(minutes=3), kinds=(kind,))
    found = await mind.recall(Cue("Li", since=only.since, until=only.until, kinds=only.kinds))
    assert {hit.memory.id for hit in found.hits} == {*ids[1:3]}
    assert {each.id for each in (await mind.list(filter=only)).memories} == {*ids[1:3]}
    streamed = await mind.recall(Cue("Li", channels=("stream",), min_importance=8, touch=False))
    assert {hit.memory.id for hit in streamed.hits} == {ids[0], ids[3]}
    made = await mind.conversation("new").context("What is the cat of Li called?")
    assert "Pascal" in str(made.messages)

    # Enrich to facts: the model's word on importance takes the place of the rules'.
    assert await walk.learn() >= 1
    assert FACT["text"] in {fact.text for fact in (await mind.knowledge.facts()).facts}
    [summary, *_] = (await mind.list(filter=Filter(kinds=(Kind.SUMMARY,)))).memories
    assert set(summary.evidence) <= {*ids}
    rated = [await mind.get(each) for each in ids]
    assert {each.importance_from for each in rated} == {ImportanceFrom.MODEL}
    assert max(each.importance for each in rated) == 9.0
    overview = await mind.overview()
    assert overview.unreflected_importance > 0 and overview.unreflected_memories == len(ids)


async def test_both_are_reflected_on_revised_and_forgotten_alike(walk):
    mind, kind = walk.mind, walk.kind
    ids = await walk.store()
    await walk.learn()

    # Reflect.
    reflection = await mind.reflect()
    thought = await mind.get(reflection.thoughts[0].id)
    assert (thought.content, thought.kind) == ("Li loves music.", Kind.THOUGHT)
    assert (await mind.overview()).unreflected_memories == 0

    # Revise: the old words are past, and reached by the moment they were believed at.
    before = datetime.now(UTC) + timedelta(seconds=1)
    walk.owner.execute("select pg_sleep(1.1)")
    revised = await mind.update(ids[1], content="Li plays the viola in an orchestra on Thursdays")
    assert (revised.version, revised.changed) == (2, True)
    now = {hit.memory.content for hit in (await mind.recall(Cue("orchestra", kinds=(kind,)))).hits}
    assert any("viola" in text for text in now) and not any("cello" in text for text in now)
    then = {hit.memory.content for hit in (await mind.recall(Cue("orchestra", kinds=(kind,), as_of=before))).hits}
    assert any("cello" in text for text in then)

    # Forget: with what was derived from it alone, after a look at what would go.
    foreseen = await mind.forget([ids[2]], dry_run=True)
    assert ids[2] in foreseen and await mind.get(ids[2])
    assert set(await mind.forget([ids[2]])) == set(foreseen)
    assert "Pascal" not in str((await mind.recall(Cue("cat", kinds=(kind,)))).hits)


async def test_both_fade_and_come_back_alike(walk):
    mind = walk.mind
    [fading, *_] = await walk.store()
    walk.owner.execute("update memories set created_at = now() - interval '900 days', importance = 1")
    walk.owner.execute("update memories set occurred_at = now() - interval '900 days'")
    [judged] = (await mind.fade(ids=[fading], dry_run=True)).judgements
    faded = await mind.fade(FadingRules(days=1))
    if walk.kind is Kind.MESSAGE:
        # What is said in a conversation stays as long as that does.
        assert (judged.grounds, faded.faded) == (FadeReason.HELD, 0)
        return
    assert faded.faded == len(LIVED)
    gone = await mind.recall(Cue("Li", state=RecallState.FADED))
    assert fading in {hit.memory.id for hit in gone.hits}
    await mind.restore([fading])
    assert fading in {hit.memory.id for hit in (await mind.recall("Li moved to Ghent")).hits}


async def test_both_leave_and_come_back_the_same(walk, recollect):
    await walk.store()
    await walk.learn()
    await walk.mind.reflect()
    data = await walk.export()
    caller = await recollect.operator.act_for("default")
    order = ImportOptions("back", agent="eve")
    await recollect.operator.exports.import_export_file(caller, order, io.BytesIO(data))
    other = await recollect.mind("eve", "li")
    for kinds in ((walk.kind,), (Kind.FACT,), (Kind.THOUGHT,), (Kind.SUMMARY,)):
        one, two = [(await mind.list(filter=Filter(kinds=kinds))).memories for mind in (walk.mind, other)]
        assert [each.content for each in one] == [each.content for each in two] != []
    assert len((await other.knowledge.facts()).facts) == len((await walk.mind.knowledge.facts()).facts) > 0
