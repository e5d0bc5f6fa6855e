"""Entities have vectors, and a cue finds them by spelling, by meaning and by the first hits."""

from __future__ import annotations

import pytest

from recollect.core.recall.relevance import MIN_RELEVANCE
from recollect.errors import InvalidInputError
from recollect.jobs.embed import embed_pending, fill_space
from recollect.llm.fake import FakeEmbedder
from recollect.models import Cue
from recollect.models.knowledge import EntityOrder, NewFact
from recollect.models.recall import Status
from recollect.store.memories.spaces import drop_space, ensure_space
from recollect.verbs.recall.recall import recall_each

COFFEE = "a large chain that sells coffee, an employer"


def count(owner, table):
    [(rows,)] = owner.execute(f"select count(*) from {table}").fetchall()
    return rows


def describe(owner, name, description):
    """Give an entity a description, as a segment's extraction does."""
    owner.execute(
        "update mentions set description = %s where normalised = lower(%s) and source_id = "
        "(select min(source_id::text)::uuid from mentions where normalised = lower(%s))",
        [description, name, name],
    )


async def embed(recollect, mind):
    """Do what the job does."""
    place = await mind.access.locate()
    return await embed_pending(recollect.parts.database, recollect.parts.embedder, 8, place.scope_id)


def texts(recollection):
    return [hit.memory.content for hit in recollection.hits]


@pytest.fixture
async def known(mind, owner):
    await mind.knowledge.add([NewFact("Ada", "works at", "Starbucks"), NewFact("Bob", "lives in", "Berlin")])
    describe(owner, "Starbucks", COFFEE)
    return mind


async def test_a_statement_needs_no_embedder_and_its_entities_wait(mind, owner, embedder):
    embedder.fail()
    await mind.knowledge.add(NewFact("Ada", "works at", "Starbucks"))
    assert count(owner, "entity_vectors") == 0
    assert count(owner, "pending_embeddings join entities using (scope_id, id)") == 2


async def test_the_embed_job_fills_what_waits(recollect, known, owner):
    await embed(recollect, known)
    assert count(owner, "entity_vectors") == 4
    assert count(owner, "pending_embeddings") == 0
    await known.knowledge.add(NewFact("Ada", "likes", "Berlin"))
    assert count(owner, "pending_embeddings join entities using (scope_id, id)") == 0


async def test_a_vector_goes_with_its_entity_and_with_a_name(recollect, known, owner):
    await embed(recollect, known)
    [fact] = (await known.knowledge.facts(predicate="lives in")).facts
    await known.forget([fact.memory_id])
    assert count(owner, "entity_vectors") == 2
    assert count(owner, "pending_embeddings") == 0


async def test_a_cue_that_describes_an_entity_reaches_it(recollect, known):
    cue = Cue("large coffee chain employer", channels=("graph",))
    assert (await known.recall(cue)).status is Status.ERROR
    await embed(recollect, known)
    assert texts(await known.recall(cue)) == ["Ada works at Starbucks"]


async def test_a_misspelt_name_reaches_its_entity(known):
    found = await known.recall(Cue("Who is at Starbuks now?", channels=("graph",)))
    assert texts(found) == ["Ada works at Starbucks"]
    assert 0.375 <= found.hits[0].channels["graph"].score < 0.75
    assert texts(await known.recall(Cue("Who is at Stanford now?", channels=("graph",)))) == []


async def test_the_ends_of_facts_among_the_first_hits_are_starts(known):
    await known.knowledge.add(NewFact("Bob", "owns", "a boat"))
    alone = await known.recall(Cue("lives in", channels=("graph",)))
    assert alone.status is Status.ERROR
    for channels in (("graph", "text"), ("vector", "graph")):
        found = await known.recall(Cue("lives in", channels=channels))
        by_graph = {hit.memory.content: hit.channels["graph"].score for hit in found.hits if "graph" in hit.channels}
        assert {"Bob lives in Berlin", "Bob owns a boat"} <= by_graph.keys()
        assert max(by_graph.values()) < 0.375


async def test_each_cue_starts_from_its_own_first_hits(known):
    cues = [Cue(text, channels=("text", "graph")) for text in ("lives in", "unheard")]
    first, second = await recall_each(known.access.parts, known.access.scope, cues, await known.access.locate())
    assert first.methods["graph"] == "exact"
    assert second.methods["graph"] == "skipped: no entity in the query"


async def test_only_what_a_cue_names_is_sure_to_be_relevant(known):
    named = await known.recall(Cue("Berlin", channels=("text", "graph")))
    led = await known.recall(Cue("lives in", channels=("text", "graph")))
    assert all(hit.relevance >= MIN_RELEVANCE for hit in named.hits)
    assert led.hits
    await known.knowledge.add([NewFact("Bob", "owns", f"boat {number}") for number in range(5)])
    found = await known.recall(Cue("lives in", channels=("text", "graph")))
    beside = [hit for hit in found.hits if "text" not in hit.channels]
    assert beside
    assert all(hit.relevance < MIN_RELEVANCE for hit in beside)


async def test_a_new_space_gets_vectors_of_entities_too(recollect, known, owner, addresses):
    await embed(recollect, known)
    space = await ensure_space(addresses.owner, "other@1", 32)
    other = FakeEmbedder(32)
    other.model = "other@1"
    filled = await fill_space(recollect.parts.database, other, 3, space)
    assert filled.refused == 0
    [(held,)] = owner.execute("select count(*) from entity_vectors where space_id = %s", [space.id]).fetchall()
    assert held == 4
    await drop_space(addresses.owner, space.id)
    assert count(owner, "entity_vectors") == 4


async def test_entities_are_listed_by_meaning(recollect, known, embedder):
    await embed(recollect, known)
    near = await known.knowledge.entities("a coffee chain", order="meaning", limit=2)
    assert (near.entities[0].name, near.ordered_by, len(near.entities)) == ("Starbucks", EntityOrder.MEANING, 2)
    assert near.next_cursor is None
    with pytest.raises(InvalidInputError):
        await known.knowledge.entities("coffee", order="meaning", cursor=near.entities[0].id)
    assert (await known.knowledge.entities("coffee", order="words")).ordered_by is EntityOrder.WORDS
    embedder.fail()
    worded = await known.knowledge.entities("coffee chains in Berlin", order="meaning")
    assert ([each.name for each in worded.entities], worded.ordered_by) == (["Starbucks", "Berlin"], EntityOrder.WORDS)
    assert (await known.knowledge.entities()).ordered_by is EntityOrder.AGE


async def test_an_absorbed_entity_leads_by_its_meaning_too(recollect, known):
    await known.knowledge.add(NewFact("The Roastery", "lies in", "Hamburg"))
    found = {each.name: each.id for each in (await known.knowledge.entities()).entities}
    await embed(recollect, known)
    await known.knowledge.merge(found["The Roastery"], found["Starbucks"])
    near = await known.knowledge.entities("a large coffee chain", order="meaning")
    assert near.entities[0].id == found["The Roastery"]
    reached = texts(await known.recall(Cue("large coffee chain employer", channels=("graph",))))
    assert {*reached} == {"Ada works at Starbucks", "The Roastery lies in Hamburg"}
