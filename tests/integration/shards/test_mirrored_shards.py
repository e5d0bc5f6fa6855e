"""Mirrors beside several servers: each shard has its own, and a tenant that moves is let go of and held anew."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from conftest import PATIENT
from mirrored import PATIENT as MIRRORED
from mirrored import feed_of, follow, mirrored, scope_of, search_settings
from recollect.errors import UnavailableError
from recollect.llm.fake import FakeEmbedder
from recollect.models.knowledge import NewFact
from recollect.models.recall import Cue
from recollect.verbs.service import moves as verbs
from recollect.verbs.service.moves import Moves
from shards import quiet

pytest_plugins = ("moving_shards",)

pytestmark = pytest.mark.engines
SEARCH, GRAPH = "opensearch", "neo4j"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def many(layout, tmp_path, search_server, graph_server):
    given = PATIENT | MIRRORED | search_settings(search_server.url, neo4j_url=graph_server.url)
    async with mirrored(layout.addresses, FakeEmbedder(), **given, map_file=tmp_path / "map.json") as running:
        yield running


@pytest.fixture
async def minds(many):
    """Two tenants, each on a shard of its own, in mirrors that are built."""
    opened = [await many.mind("ada", "li", tenant=tenant) for tenant in ("one", "two")]
    for mind, town in zip(opened, ("Wells", "Bath"), strict=True):
        await mind.remember(f"Li walks along the harbour of {town}.")
        await mind.knowledge.add([NewFact("Li", "lives in", town, valid_at=LONG_AGO)])
    for name in (SEARCH, GRAPH):
        made = await many.operator.mirrors.build(name, quiet)
        assert [(each.shard, each.generation, each.scopes) for each in made] == [("north", 1, 1), ("south", 1, 1)]
    return opened


async def said(mind, name, text):
    found = await mind.recall(Cue(text, channels=(name,)))
    assert found.methods == {name: "mirror"}
    return [hit.memory.content for hit in found.hits]


async def differing(many):
    return [(await many.operator.mirrors.verify(name, quiet)).differing for name in (SEARCH, GRAPH)]


async def test_each_shard_is_held_and_asked_apart_and_a_rebuild_of_one_leaves_the_other(many, minds):
    for _ in range(2):
        for mind, town in zip(minds, ("Wells", "Bath"), strict=True):
            assert f"Li walks along the harbour of {town}." in await said(mind, SEARCH, "harbour")
            assert await said(mind, GRAPH, "Where does Li live?") == [f"Li lives in {town}"]
        assert await differing(many) == [0, 0]
        for name in (SEARCH, GRAPH):
            await many.operator.mirrors.rebuild(name, quiet)
    search = (await feed_of(many, SEARCH, "north")).mirror
    aliased = await search._client.indices.get_alias(name=search._layout.prefix)
    assert sorted(name.partition("-")[2] for name in aliased) == ["1_3", "2_3"], "both answer to who reads the engine"
    # Of one shard a generation is filled and shown: what others show stays.
    feed = await feed_of(many, GRAPH, "north")
    await feed.mirror.switch(feed.generation)
    async with feed.mirror._driver.session() as session:
        answer = await session.run("MATCH (e:Entity) RETURN count(e) AS shown")
        assert (await answer.single())["shown"] == 4


@pytest.mark.promise("After a move the mirrors of the new shard hold a tenant's rows, and those of the old one none")
async def test_a_tenant_that_moves_is_let_go_of_and_held_anew(many, layout, minds):
    mind, other = minds
    scope_id = await scope_of(mind)
    before = {name: await held(many, name, "north", scope_id) for name in (SEARCH, GRAPH)}
    assert all(before.values())
    await Moves(layout.owner).move("one", "south", quiet)
    await mind.remember("Li has moved to the south.")
    await many.work(until_empty=True)
    for name in (SEARCH, GRAPH):
        assert await held(many, name, "north", scope_id) == set()
        assert await held(many, name, "south", scope_id) >= before[name]
    assert "Li has moved to the south." in await said(mind, SEARCH, "moved")
    assert await said(mind, GRAPH, "Where does Li live?") == ["Li lives in Wells"]
    assert await said(other, GRAPH, "Where does Li live?") == ["Li lives in Bath"]
    assert await differing(many) == [0, 0]
    # And back again, where mirrors still know how far they had followed.
    await Moves(layout.owner).move("one", "north", quiet)
    await many.work(until_empty=True)
    for name in (SEARCH, GRAPH):
        assert await held(many, name, "south", scope_id) == set()
        assert await held(many, name, "north", scope_id) >= before[name]
    assert await differing(many) == [0, 0]


async def held(many, name, shard, scope_id):
    return set(await (await feed_of(many, name, shard)).read_held(scope_id))


async def test_what_was_purged_does_not_move_before_the_mirror_has_followed(many, layout, minds, monkeypatch):
    mind = minds[0]
    await mind.conversation("c").append("Bo brings the rice.")
    await follow(many)
    await mind.conversation("c").purge()
    [receipt] = (await many.tenant.receipts(await many.operator.act_for("one"), mind.access.caller.bounds)).receipts
    assert receipt.finished_at is None
    monkeypatch.setattr(verbs, "RECEIPT_SECONDS", 0.0)
    with pytest.raises(UnavailableError, match="mirror"):
        await Moves(layout.owner).move("one", "south", quiet)
    await mind.remember("The source is still in charge.")
    await many.work(until_empty=True)
    assert await Moves(layout.owner).move("one", "south", quiet) == [(-1, 4095)]
    caller = await many.operator.act_for("one")
    [receipt] = (await many.tenant.receipts(caller, mind.access.caller.bounds)).receipts
    assert receipt.finished_at is not None
    await many.work(until_empty=True)
    assert await differing(many) == [0, 0]
