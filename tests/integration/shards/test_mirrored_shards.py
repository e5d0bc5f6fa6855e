"""Mirrors with several servers: each shard has its own."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from conftest import PATIENT
from recollect.llm.fake import FakeEmbedder
from recollect.models.knowledge import NewFact
from recollect.models.recall import Cue
from support.engines.mirrored import PATIENT as MIRRORED
from support.engines.mirrored import feed_of, mirrored, search_settings
from support.shards.shards import quiet

pytest_plugins = ("support.shards.two_shards",)

pytestmark = pytest.mark.engines
SEARCH, GRAPH = "opensearch", "neo4j"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def many(layout, tmp_path, search_server, graph_server):
    given = PATIENT | MIRRORED | search_settings(search_server.url, neo4j__url=graph_server.url)
    async with mirrored(layout.addresses, FakeEmbedder(), **given, shards__map_file=tmp_path / "map.json") as running:
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
