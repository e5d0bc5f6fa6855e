"""The mirror in Neo4j holds entities and facts in both times, and proposes facts around what a cue names."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.core.mirrors.rows import MirrorBatch, MirroredRow, MirroredTable, RowKey
from recollect.errors import MirrorError
from recollect.jobs.mirror import check
from recollect.models.knowledge import NewFact
from recollect.models.memories import Kind
from recollect.models.recall import Cue
from support.engines.mirrored import feed_of, follow, held_ids, mirrored, scope_of
from support.service.purge_receipts import receipts_of

pytestmark = pytest.mark.engines
NAME, ALONE = "neo4j", ("neo4j",)
LONG_AGO, LATER = datetime(2020, 1, 1, tzinfo=UTC), datetime(2022, 1, 1, tzinfo=UTC)


def silently(_):
    """Report nothing."""


@pytest.fixture
async def recollect(addresses, embedder, graph_server):
    async with mirrored(addresses, embedder, neo4j__url=graph_server.url) as running:
        yield running


@pytest.fixture
async def mind(recollect):
    """A mind that knows of a town, in a mirror that is built."""
    opened = await recollect.mind("ada", "li")
    await state(opened, ("Li", "lives in", "Wells"))
    await recollect.operator.mirrors.build(NAME, silently)
    return opened


async def state(mind, *triples, **more):
    facts = await mind.knowledge.add([NewFact(*triple, valid_at=LONG_AGO, **more) for triple in triples])
    return [fact.version_id for fact in facts] if hasattr(facts[0], "version_id") else [fact.id for fact in facts]


async def said(mind, text, **more):
    found = await mind.recall(Cue(text, channels=ALONE, **more))
    assert found.methods == {NAME: "mirror"}
    return [hit.memory.content for hit in found.hits]


async def names(recollect, mind):
    feed = await feed_of(recollect, NAME)
    rows = [row async for page in feed.mirror.walk(feed.generation, await scope_of(mind)) for row in page]
    return sorted(row.values["name"] for row in rows if row.table is MirroredTable.ENTITIES)


async def differing(recollect):
    return (await recollect.operator.mirrors.verify(NAME, silently)).differing


async def test_facts_around_what_a_cue_names_are_proposed(recollect, mind):
    assert await said(mind, "Where does Li live?") == ["Li lives in Wells"]
    await state(mind, ("Wells", "lies in", "Somerset"), ("Somerset", "borders", "Devon"), ("Bo", "owns", "a boat"))
    await follow(recollect)
    assert set(await said(mind, "Tell me of Li.")) == {"Li lives in Wells", "Wells lies in Somerset"}, "two hops"
    found = await mind.recall(Cue("Li", channels=ALONE))
    assert found.methods == {NAME: "mirror"} and NAME in found.hits[0].channels
    assert await said(mind, "Tell me of nobody.") == []
    assert await differing(recollect) == 0


async def test_facts_are_asked_for_in_both_times(recollect, mind):
    [lives] = (await mind.knowledge.facts()).facts
    believed = datetime.now(UTC)
    await mind.knowledge.end(lives.id, LATER)
    await state(mind, ("Li", "moved to", "Bath"))
    await follow(recollect)
    assert await said(mind, "Li") == ["Li moved to Bath"]
    assert set(await said(mind, "Li", at=datetime(2021, 1, 1, tzinfo=UTC))) == {"Li lives in Wells", "Li moved to Bath"}
    assert await said(mind, "Li", as_of=believed) == ["Li lives in Wells"]
    assert await differing(recollect) == 0


async def test_what_is_forgotten_goes_with_entities_that_nothing_speaks_of(recollect, mind):
    [gone] = await state(mind, ("Bo", "owns", "a boat"))
    await follow(recollect)
    assert await names(recollect, mind) == ["Bo", "Li", "Wells", "a boat"]
    memory = next(each for each in (await mind.list(limit=50)).memories if "Bo" in each.content)
    await mind.forget([memory.id])
    await follow(recollect)
    assert await names(recollect, mind) == ["Li", "Wells"]
    assert memory.id not in await held_ids(recollect, NAME, mind, MirroredTable.FACTS)
    assert await differing(recollect) == 0 and gone


async def test_a_merged_entity_leads_on(recollect, mind):
    await state(mind, ("Li Wei", "plays", "chess"))
    known = {each.name: each.id for each in (await mind.knowledge.entities()).entities}
    await mind.knowledge.merge(known["Li"], known["Li Wei"])
    await follow(recollect)
    assert set(await said(mind, "Li Wei")) == set(await said(mind, "Li"))
    assert any("chess" in each for each in await said(mind, "Li"))
    assert await differing(recollect) == 0
    await mind.knowledge.split(known["Li Wei"])
    await follow(recollect)
    assert await differing(recollect) == 0


async def test_an_older_batch_is_refused_as_a_whole(recollect, mind):
    feed, scope = await feed_of(recollect, NAME), await scope_of(mind)
    rows = [row async for page in feed.mirror.walk(feed.generation, scope) for row in page]
    [memory] = (await mind.list(limit=50)).memories
    await mind.forget([memory.id])
    await follow(recollect)
    with pytest.raises(MirrorError, match="has advanced"):
        await feed.mirror.apply(feed.generation, [MirrorBatch(scope, 1, 1, rows)])
    assert await held_ids(recollect, NAME, mind, MirroredTable.FACTS) == set()
    assert await names(recollect, mind) == []


async def test_a_fact_with_other_ends_is_held_once(recollect, mind):
    feed, scope = await feed_of(recollect, NAME), await scope_of(mind)
    rows = [row async for page in feed.mirror.walk(feed.generation, scope) for row in page]
    [fact] = [row for row in rows if row.table is MirroredTable.FACTS]
    turned = {**fact.values, "subject_id": fact.values["object_id"], "object_id": fact.values["subject_id"]}
    await feed.mirror.apply(feed.generation, [MirrorBatch(scope, 99, 99, [MirroredRow(fact.table, fact.id, turned)])])
    held = [row async for page in feed.mirror.walk(feed.generation, scope) for row in page if row.table is fact.table]
    assert [row.values["subject_id"] for row in held] == [turned["subject_id"]]


async def test_a_purge_waits_for_both_ends_and_names(running_purge):
    recollect, mind = running_purge
    conversation = mind.conversation("talk")
    await conversation.append("Ann lives in Rome.")
    await follow(recollect)
    receipt = await conversation.purge()
    assert receipt.finished_at is None
    await follow(recollect)
    assert (await receipts_of(conversation))[0].finished_at is not None


@pytest.fixture
async def running_purge(recollect, mind):
    return recollect, mind


async def test_it_is_built_beside_and_others_see_one_generation(recollect, mind):
    feed = await feed_of(recollect, NAME)

    async def shown():
        found = await feed.mirror._driver.execute_query("MATCH (e:Entity) RETURN labels(e) AS labels")
        return sorted({label for record in found.records for label in record["labels"]})

    assert await shown() == ["Entity", "Entity_1"]
    await recollect.operator.mirrors.rebuild(NAME, silently)
    assert await shown() == ["Entity", "Entity_2"]
    await state(mind, ("Bo", "owns", "a boat"))
    await follow(recollect)
    assert await shown() == ["Entity", "Entity_2"]
    assert await differing(recollect) == 0


async def test_a_mirror_that_knows_less_than_it_had_is_mended(recollect, mind, owner):
    await state(mind, ("Bo", "owns", "a boat"))
    await follow(recollect)
    feed = await feed_of(recollect, NAME)
    await feed.mirror._driver.execute_query("MATCH (n) DETACH DELETE n")
    assert (await mind.recall(Cue("Bo", channels=ALONE))).methods[NAME].startswith("skipped: the mirror lost")
    await check(recollect.parts.database, recollect.parts.mirrors)
    assert await said(mind, "Bo") == ["Bo owns a boat"]
    assert await differing(recollect) == 0


async def test_a_deleted_conversation_takes_its_names_out_of_sight(addresses, embedder, graph_server, script):
    from recollect.verbs.knowledge.enrich import enrich
    from recollect.wiring import connected
    from support.models.fake_chat import FakeChatModel
    from support.models.scripted_extractions import entity, fact
    from support.service.made_settings import make_settings

    settings = make_settings(embedder="fake", neo4j__url=graph_server.url)
    async with connected(settings, addresses, embedder, FakeChatModel(script)) as recollect:
        mind = await recollect.mind("ada", "li")
        await recollect.operator.mirrors.build(NAME, silently)
        conversation = mind.conversation("talk")
        await conversation.append(["Ann lives in Rome."])
        script.extraction([entity("Ann", "person"), entity("Rome", "place")], [fact("Ann", "lives in", "Rome")])
        await conversation.update(close_segment=True)
        await enrich(recollect.parts, await scope_of(mind))
        await follow(recollect)
        assert await names(recollect, mind) == ["Ann", "Rome"]
        await conversation.delete()
        await follow(recollect)
        assert await names(recollect, mind) == []
        await conversation.update(state="active")
        await follow(recollect)
        assert await names(recollect, mind) == ["Ann", "Rome"] and await differing(recollect) == 0
        await conversation.purge()
        await follow(recollect)
        [receipt] = await receipts_of(conversation)
        assert receipt.finished_at is not None and await names(recollect, mind) == []
        feed = await feed_of(recollect, NAME)
        assert (
            await feed.mirror.find_held(feed.generation, await scope_of(mind), [RowKey(MirroredTable.FACTS, mind_id())])
            == set()
        )
        await recollect.operator.mirrors.drop(NAME)
        left = await feed.mirror._driver.execute_query("MATCH (n) RETURN count(n) AS n")
        assert left.records[0]["n"] == 0


def mind_id():
    from uuid import UUID

    return UUID(int=1)


async def test_only_facts_are_proposed(recollect, mind):
    skipped = await mind.recall(Cue("Li", channels=ALONE, kinds=(Kind.EVENT,)))
    assert skipped.methods[NAME] == "skipped: it finds facts only"
    assert await said(mind, "Li", kinds=(Kind.FACT,)) == ["Li lives in Wells"]
