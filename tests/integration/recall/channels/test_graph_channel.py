"""The channel `graph` recalls facts about what a cue names, and about what that leads to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.models.conversations import NewMessage
from recollect.models.memories import Kind, Role
from recollect.models.recall import Cue, Status
from support.memories.fact_rows import NOW, open_facts

MAY = datetime(2025, 5, 1, tzinfo=UTC)


@pytest.fixture
async def rows(mind, owner):
    """Ada works at Acme, which lies in Berlin, where Bob lives."""
    known = await open_facts(mind, owner)
    known.fact("Ada", "works at", "Acme")
    known.fact("Acme", "lies in", "Berlin")
    known.fact("Bob", "lives in", "Berlin")
    return known


async def recall(mind, text, **more):
    return await mind.recall(Cue(text, channels=("graph",), **more))


def texts(recollection):
    return [hit.memory.content for hit in recollection.hits]


def scores(recollection):
    return [round(hit.channels["graph"].score, 3) for hit in recollection.hits]


async def test_facts_are_recalled_by_the_hops_from_what_is_named(mind, rows):
    found = await recall(mind, "Where does ADA's money come from?")
    assert texts(found) == ["Ada works at Acme", "Acme lies in Berlin"]
    assert scores(found) == [0.75, 0.375]
    assert found.methods == {"graph": "exact"}


async def test_a_fact_between_two_that_are_named_comes_first(mind, rows):
    rows.fact("Ada", "likes", "Tea")
    found = await recall(mind, "Ada and Acme")
    assert texts(found)[:2] == ["Ada works at Acme", "Ada likes Tea"]
    assert scores(found) == [1.0, 0.75, 0.75, 0.375]


async def test_a_cue_that_names_nothing_is_said_to(mind, rows):
    found = await recall(mind, "What happened yesterday?")
    assert (found.status, found.methods) == (Status.ERROR, {"graph": "skipped: no entity in the query"})
    beside = await mind.recall(Cue("What happened yesterday?", channels=("graph", "text")))
    assert beside.status is Status.NO_CANDIDATES
    assert (await recall(mind, "Ada", kinds=(Kind.EVENT,))).methods == {"graph": "skipped: it finds facts only"}


async def test_an_alias_names_its_entity(mind, rows):
    rows.mention("Acme", "the rocket company", rows.facts[0])
    assert "Acme lies in Berlin" in texts(await recall(mind, "Tell me about the Rocket Company!"))
    assert texts(await recall(mind, "a rocket, and some company")) == []


async def test_only_the_longest_name_is_meant(mind, rows):
    rows.fact("York", "has", "a wall")
    rows.fact("New York", "has", "a park")
    assert texts(await recall(mind, "I fly to New York")) == ["New York has a park"]
    assert set(texts(await recall(mind, "from York to New York"))) == {"York has a wall", "New York has a park"}
    rows.fact("Nevada", "borders", "Utah")
    assert "Ada works at Acme" in texts(await recall(mind, "Ada in Nevada"))


async def test_chinese_names_are_found_without_spaces(mind, rows):
    rows.fact("李雷", "在", "清华大学")
    rows.fact("韩梅梅", "住在", "北京")
    rows.fact("Google", "位于", "硅谷")
    assert texts(await recall(mind, "李雷最近在做什么？")) == ["李雷 在 清华大学"]
    assert texts(await recall(mind, "我在Google工作")) == ["Google 位于 硅谷"]
    assert texts(await recall(mind, "清华大学怎么样")) == ["李雷 在 清华大学"]


async def test_what_takes_no_part_in_recall_is_not_proposed(mind, rows):
    for reason in ("archived", "faded", "deleted"):
        fact_id = rows.fact("Ada", f"is {reason} with", "Zoe")
        rows.withhold(fact_id, reason)
    assert "Zoe" not in " ".join(texts(await recall(mind, "Ada")))


async def test_names_that_only_a_deleted_conversation_used_are_unknown(mind, rows, owner):
    [said] = await mind.conversation("talk").append(NewMessage(Role.USER, "Ada is Bunny."))
    secret = rows.fact("Ada", "is called", "Bunny", evidence=[said.id])
    rows.mention("Ada", "honey bunny", secret)
    assert texts(await recall(mind, "Where is honey bunny?"))
    await mind.conversation("talk").delete()
    assert (await recall(mind, "Where is honey bunny?")).methods["graph"].startswith("skipped")


async def test_times_and_trust_bound_what_is_recalled(mind, rows):
    rows.fact("Ada", "lives in", "Rome", valid_at=MAY, created_at=MAY)
    old = rows.fact("Ada", "lives in", "Paris", invalid_at=MAY)
    rows.withhold(old, "past")
    rows.fact("Ada", "rents", "Flat", trust=90)
    now = texts(await recall(mind, "Ada"))
    assert "Ada lives in Rome" in now
    assert "Ada lives in Paris" not in now
    then = texts(await recall(mind, "Ada", at=MAY - timedelta(days=1)))
    assert ("Ada lives in Paris" in then, "Ada lives in Rome" in then) == (True, False)
    assert texts(await recall(mind, "Ada", min_trust=80)) == ["Ada rents Flat"]
    rows.fact("Ada", "will see", "Mars", valid_at=NOW + timedelta(days=3))
    assert "Ada will see Mars" not in texts(await recall(mind, "Ada"))


async def test_a_hub_is_bounded_and_says_so(mind, rows):
    for number in range(120):
        rows.fact("Ada", "met", f"somebody {number}")
    found = await recall(mind, "Ada", limit=5)
    assert texts(found) == [f"Ada met somebody {number}" for number in range(119, 114, -1)]
    assert found.methods == {"graph": "approximate"}


async def test_another_scope_is_never_reached(recollect, mind, rows, owner):
    neighbour = await open_facts(await recollect.mind("ada", "zoe"), owner)
    neighbour.fact("Ada", "owes", "Zoe")
    assert "owes" not in " ".join(texts(await recall(mind, "Ada")))


async def test_facts_join_the_other_channels(mind, rows):
    await mind.remember("Bob cooks in the evening")
    found = await mind.recall(Cue("Bob", channels=("text", "graph")))
    assert {"Bob cooks in the evening", "Bob lives in Berlin"} <= set(texts(found))
    assert set(found.methods) == {"text", "graph"}
