"""A cue in traditional characters finds what was said in simplified ones, by every way that goes by words, and back."""

from __future__ import annotations

import pytest

from recollect.models.filters import Filter
from recollect.models.knowledge import NewFact
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue

SCRIPTS = pytest.mark.parametrize(
    ("stored", "asked"),
    [
        (("图书馆", "马丽"), ("圖書館", "馬麗")),
        (("圖書館", "馬麗"), ("图书馆", "马丽")),
        (("図書館", "馬麗"), ("圖書館", "马丽")),
        (("图书馆", "ＭＡ麗"), ("図書館", "ma丽")),
        (("ﾎﾝﾔ", "ﾏﾘｱ"), ("ホンヤ", "マリア")),
    ],
)


async def find(mind, text="", **more):
    """Ask one channel, and return what was found."""
    return [hit.memory.content for hit in (await mind.recall(Cue(text, limit=1, **more))).hits]


@SCRIPTS
async def test_by_text(mind, stored, asked):
    await mind.remember([f"明天去{stored[0]}", "今天下雨"])
    assert await find(mind, f"{asked[0]}在哪里", channels=("text",)) == [f"明天去{stored[0]}"]


@SCRIPTS
async def test_by_keyword(mind, stored, asked):
    await mind.remember([NewMemory("quiet", keywords=(stored[0],)), NewMemory("loud", keywords=("street",))])
    assert await find(mind, asked[0], channels=("keyword",)) == ["quiet"]


@SCRIPTS
async def test_by_speaker(mind, stored, asked):
    await mind.remember([NewMemory("quiet", speaker=stored[1]), NewMemory("loud", speaker="Bo")])
    assert await find(mind, "quiet loud", channels=("text",), speakers=(asked[1],)) == ["quiet"]
    page = await mind.list(filter=Filter(speakers=(asked[1],)))
    assert [memory.content for memory in page.memories] == ["quiet"]


@SCRIPTS
async def test_by_topic(mind, stored, asked):
    await mind.remember([NewMemory("quiet", topic=f"城市->{stored[0]}"), NewMemory("loud", topic="城市")])
    assert await find(mind, topics=(f"城市->{asked[0]}",), channels=("topic",)) == ["quiet"]
    await mind.remember(NewMemory("dusty", topic=f"城市->{asked[0]}"))
    assert [topic.memories for topic in (await mind.topics.tree()).topics] == [1, 2]


@SCRIPTS
async def test_by_the_name_of_an_entity(mind, stored, asked):
    await mind.knowledge.add(NewFact(stored[1], "works_at", stored[0], text="quiet"))
    await mind.knowledge.add(NewFact(asked[1], "lives_in", "Paris", text="abroad"))
    [found] = (await mind.knowledge.entities(asked[1])).entities
    assert {fact.text for fact in (await mind.knowledge.facts(found.id)).facts} == {"quiet", "abroad"}
    assert set(await find(mind, f"{asked[0]}?", channels=("graph",))) == {"quiet"}
