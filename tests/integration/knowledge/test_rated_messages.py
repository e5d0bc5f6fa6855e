"""How important what is said is: rated by rules when it is written, by the model's answer when its segment is learned
from; and a chat agent reflects on it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from recollect.core.agents.reflection import Insight, Insights, Questions
from recollect.models.agents import Profile
from recollect.models.conversations import NewMessage
from recollect.models.memories import ImportanceFrom, Kind, Role
from recollect.models.recall import Cue
from recollect.verbs.knowledge.enrich import enrich
from support.models.fake_chat import FakeChatModel
from support.service.known_numbers import first_number

SAID = ["Hello!", "My mother died on Monday.", "I had soup for lunch.", "The soup was warm."]


def answer(prompt, asked):
    """Rate the second line, and reflect on whatever is asked for."""
    if asked is Questions:
        return Questions(questions=["What weighs on Li?"])
    if asked is Insights:
        said = {"subject": "Li", "predicate": "mourns", "object": "mother", "importance": 9}
        return Insights(insights=[Insight(text="Li mourns his mother.", notes=[1], **said)])
    rated = {"important": [{"number": 2, "importance": 9}]}
    return json.dumps({"summary": "Li lost his mother.", "label": "Loss", "importance": 8, **rated})


async def talk(running, owner, messages, profile=None):
    mind = await running.mind("ada", "li")
    if profile:
        await mind.set_profile(profile)
    await mind.conversation("c").append(messages)
    owner.execute("update conversations set idle_since = now() - interval '61 minutes'")
    return mind


async def learn(running):
    await enrich(running.parts, first_number(await running.mind("ada", "li")))


async def rate(mind):
    page = await mind.list()
    return {each.content: (each.importance, each.importance_from) for each in page.memories}


@pytest.fixture
def running(recollect):
    return replace(recollect, parts=replace(recollect.parts, chat=FakeChatModel(answer)))


async def test_a_message_is_rated_by_rules_until_a_model_has_read_it(running, owner):
    messages = [NewMessage(Role.USER, text) for text in SAID[:3]]
    mind = await talk(running, owner, [*messages, NewMessage(Role.USER, SAID[3], importance=4.0)])
    before = await rate(mind)
    assert [before[text] for text in SAID] == [
        *((2.0, ImportanceFrom.RULE), (8.0, ImportanceFrom.RULE), (5.0, ImportanceFrom.RULE)),
        (4.0, ImportanceFrom.CALLER),
    ]
    assert (await mind.overview()).unreflected_importance == 4.0
    await learn(running)
    after = await rate(mind)
    assert [after[text] for text in SAID] == [
        *((2.0, ImportanceFrom.MODEL), (9.0, ImportanceFrom.MODEL), (2.0, ImportanceFrom.MODEL)),
        (4.0, ImportanceFrom.CALLER),
    ]
    assert after["Li lost his mother."] == (8.0, ImportanceFrom.MODEL)
    overview = await mind.overview()
    assert (overview.unreflected_importance, overview.unreflected_memories) == (17.0, 4)


async def test_without_a_model_the_rules_stand_and_count(recollect, owner):
    mind = await talk(recollect, owner, [NewMessage(Role.USER, text) for text in SAID])
    await learn(recollect)
    assert {source for _, source in (await rate(mind)).values()} == {ImportanceFrom.RULE}
    assert (await mind.overview()).unreflected_importance == 2 + 8 + 5 + 5


async def test_a_segment_that_is_learned_from_again_counts_once(running, owner):
    mind = await talk(running, owner, [NewMessage(Role.USER, text) for text in SAID])
    await learn(running)
    gathered = await mind.overview()
    owner.execute("update segments set state = 'closed'")
    await learn(running)
    assert await mind.overview() == gathered


async def test_a_chat_agent_reflects_on_what_was_said(running, owner):
    mind = await talk(running, owner, [NewMessage(Role.USER, text) for text in SAID], Profile(reflection_threshold=15))
    await learn(running)
    assert owner.execute("select count(*) from procrastinate_jobs where task_name = 'reflect'").fetchone() == (1,)
    reflection = await mind.reflect()
    thought = await mind.get(reflection.thoughts[0].id)
    assert (thought.content, thought.importance_from) == ("Li mourns his mother.", ImportanceFrom.MODEL)
    kinds = {(await mind.get(source)).kind for source in thought.evidence}
    assert kinds <= {Kind.MESSAGE, Kind.SUMMARY}


async def test_what_is_said_is_in_the_stream(running, owner):
    mind = await talk(running, owner, [NewMessage(Role.USER, text) for text in SAID])
    await learn(running)
    found = await mind.recall(Cue("the soup", channels=("stream",), limit=10))
    assert {hit.memory.kind for hit in found.hits} == {Kind.MESSAGE, Kind.SUMMARY}
    assert {hit.memory.content for hit in found.hits} >= set(SAID)
