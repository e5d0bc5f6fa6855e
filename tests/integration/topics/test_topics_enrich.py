"""Enrichment files a segment's summary under the topic that a model named, or under the segment's own label."""

from __future__ import annotations

from dataclasses import replace

import pytest

from integration.knowledge.test_enrich import (
    NOON,
    ROWING,
    TAXES,
    dialogue,
    extraction,
    plain,
    run,
    scripted,
    segments_of,
)
from recollect.core.topics.rating import damp_link
from recollect.models.agents import Profile
from recollect.models.topics import LinkStrength
from recollect.verbs.knowledge.steps import choose_steps
from support.memories.topic_cases import propose

__all__ = ["plain"]


async def test_a_summary_lies_under_the_topic_that_the_model_named(recollect, owner):
    answer = extraction("They row on the lake.", "Rowing").replace('"Leisure -> Water"', '"Leisure -> Water", "Boats"')
    running, _ = scripted(recollect, answer)
    mind = await running.mind("ada", "li")
    await mind.set_profile(Profile(segment_depth=0.3))
    await mind.conversation("c").append(dialogue([*ROWING, *TAXES]))
    await run(running, mind, owner)
    [segment] = await segments_of(mind)
    [link] = await mind.topics.links("leisure->water")
    assert (link.memory_id, link.related, link.reach) == (segment.summary_id, ("Boats",), LinkStrength())
    found = await propose(mind, "Leisure->Water", now=NOON)
    assert [each.id for each in found.candidates] == [segment.summary_id]


async def test_without_a_model_the_label_is_the_path(plain, owner):
    mind = await plain.mind("ada", "li")
    await mind.conversation("c").append(dialogue([*ROWING, *TAXES]))
    await run(plain, mind, owner)
    [segment] = await segments_of(mind)
    [topic] = (await mind.topics.tree()).topics
    assert (topic.path, topic.memories) == (segment.label, 1)
    [link] = await mind.topics.links(memory_id=segment.summary_id)
    assert link.reach == damp_link(LinkStrength(), 0, 6)


async def test_without_a_summary_the_messages_themselves_are_filed(plain, owner):
    running = replace(plain, parts=replace(plain.parts, steps=choose_steps("label segment")))
    mind = await running.mind("ada", "li")
    appended = await mind.conversation("c").append(dialogue([*ROWING, *TAXES]))
    await run(running, mind, owner)
    [segment] = await segments_of(mind)
    links = await mind.topics.links(segment.label)
    assert {link.memory_id for link in links} == {each.id for each in appended[:6]}


@pytest.mark.parametrize("verb", ["forget", "purge"])
async def test_the_topic_goes_with_the_conversation_that_named_it(plain, owner, verb):
    mind = await plain.mind("ada", "li")
    appended = await mind.conversation("c").append(dialogue([*ROWING, *TAXES]))
    await run(plain, mind, owner)
    assert owner.execute("select count(*) from topics").fetchone() == (1,)
    if verb == "forget":
        await mind.forget([each.id for each in appended])
    else:
        await mind.conversation("c").purge()
    for table in ("topics", "topic_links", "related_topics"):
        assert owner.execute(f"select count(*) from {table}").fetchone() == (0,)


async def test_a_segment_that_is_told_again_is_filed_again(recollect, owner):
    running, chat = scripted(recollect, extraction("They row.", "Rowing"))
    mind = await running.mind("ada", "li")
    await mind.set_profile(Profile(segment_depth=0.3))
    appended = await mind.conversation("c").append(dialogue([*ROWING, *TAXES]))
    await run(running, mind, owner)
    await mind.forget([appended[1].id])
    assert (await mind.topics.tree()).topics == ()
    await run(running, mind, owner)
    assert [topic.path for topic in (await mind.topics.tree()).topics] == ["Leisure", "Leisure->Water"]
    assert chat.calls == 2
