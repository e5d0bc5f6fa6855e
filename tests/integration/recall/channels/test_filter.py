"""Every channel and every list obeys one filter: its answer is the unfiltered one, restricted and then cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from types import MappingProxyType
from uuid import UUID

import pytest

from recollect.channels.date import DateChannel
from recollect.channels.graph import GraphChannel
from recollect.channels.keyword import KeywordChannel
from recollect.channels.past import PastChannel
from recollect.channels.recent import RecentChannel
from recollect.channels.stream import StreamChannel
from recollect.channels.text import TextChannel
from recollect.channels.topic import TopicChannel
from recollect.channels.vector import VectorChannel
from recollect.core.recall.cues import parse_cue
from recollect.errors import InvalidInputError
from recollect.models.filters import Filter
from recollect.models.knowledge import NewFact
from recollect.models.memories import Kind, NewMemory, Triple
from recollect.models.recall import Cue, Mode, StreamWeights
from recollect.store.knowledge import graph as graph_store
from recollect.store.knowledge.facts import FactQuery
from recollect.store.memories import memories
from recollect.store.service.scopes import locate
from recollect.verbs.agents.associate import associate
from recollect.verbs.knowledge.facts import list_facts
from recollect.verbs.knowledge.graph import find_neighbors
from recollect.verbs.memories.read import ListQuery, list_memories
from recollect.verbs.recall.channels import PlannedCue, ask_channels
from recollect.verbs.topics.topics import list_links, tree
from support.service.accesses import with_access

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DAY = timedelta(days=1)
MANY = 200
EVERYTHING = Filter()
ROWS = """select m.id, m.kind, m.trust, m.created_at, m.occurred_at, b.valid_at, b.id is not null, f.pinned
from memories m join memory_features f using (scope_id, id) left join beliefs b using (scope_id, id)"""
CHANNELS = (
    VectorChannel,
    TextChannel,
    KeywordChannel,
    DateChannel,
    RecentChannel,
    TopicChannel,
    StreamChannel,
    GraphChannel,
)


@dataclass(frozen=True)
class Known:
    """What a test knows of a memory, read around the code that is tested."""

    id: UUID
    kind: str
    trust: int
    created_at: datetime
    occurred_at: datetime
    valid_at: datetime | None
    believed: bool
    pinned: bool

    def passes(self, only):
        moment = self.valid_at if self.believed else self.occurred_at
        return (
            (not only.kinds or self.kind in only.kinds)
            and self.trust >= only.min_trust
            and (only.as_of is None or self.created_at <= only.as_of)
            and (only.at is None or moment is None or moment <= only.at)
            and (only.pinned is None or self.pinned == only.pinned)
        )


@dataclass(frozen=True)
class World:
    mind: object
    rows: dict
    filters: tuple

    def restrict(self, ids, only):
        return [each for each in ids if self.rows[each].passes(only)]

    async def check(self, ask, base=EVERYTHING, scores=MappingProxyType({})):
        """Ask once for all, then under every filter; cut, it is the beginning of what it is uncut."""
        everything = await ask(base, MANY)
        assert len(everything) > 5
        for only in self.filters:
            wanted = Filter(
                **{name: getattr(only if name in only.named else base, name) for name in {*only.named, *base.named}}
            )
            found = await ask(wanted, MANY)
            assert sorted(found) == sorted(self.restrict(everything, wanted)), wanted
            cut = await ask(wanted, 2)
            assert {*cut} <= {*found} and len(cut) == min(2, len(found)), wanted
            # What a channel scores alike may stand in either order.
            assert [scores.get(each, each) for each in cut] == [scores.get(each, each) for each in found[:2]], wanted


def combine(as_of):
    """Each field by itself, and each two of them."""
    said = [
        {"kinds": (Kind.FACT, Kind.THOUGHT)},
        {"min_trust": 50},
        {"as_of": as_of},
        {"at": NOW - 6 * DAY},
        {"pinned": True},
        {"pinned": False},
    ]
    pairs = [one | other for one, other in combinations(said, 2) if one.keys() != other.keys()]
    return tuple(Filter(**each) for each in (*said, *pairs))


@pytest.fixture
async def world(mind, owner):
    """Two batches of two writers: kinds, days and pins take turns; facts join Ann to others."""
    wary = with_access(mind, caller=replace(mind.access.caller, trust=20))
    kinds = (Kind.EVENT, Kind.THOUGHT, Kind.CHAT, Kind.FACT)
    for batch in range(2):
        for writer, who in enumerate((mind, wary)):
            new = [
                NewMemory(
                    f"river number {batch} {writer} {number}",
                    kinds[number % 4],
                    triple=Triple("Ann", "sees", f"river {number}"),
                    keywords=("river",),
                    occurred_at=NOW - timedelta(days=number, hours=batch, minutes=writer),
                    topic="travel",
                    pinned=number % 3 == 0,
                )
                for number in range(12)
            ]
            await (who.remember if writer else who.load)(new)
            stated = [
                NewFact(
                    "Ann",
                    "visits",
                    f"place {batch} {writer} {number}",
                    valid_at=NOW - number * DAY,
                    occurred_at=NOW - number * DAY,
                )
                for number in range(8)
            ]
            facts = await who.knowledge.add(stated)
            for fact in facts[::3]:
                await mind.update(fact.memory_id, pinned=True)
        if not batch:
            [as_of] = owner.execute("select max(created_at) from memories").fetchone()
    rows = {row[0]: Known(*row) for row in owner.execute(ROWS).fetchall()}
    return World(mind, rows, combine(as_of))


async def propose(mind, channel, only, limit, **more):
    """Put a cue to one channel, as recall does."""
    filtered = {name: getattr(only, name) for name in only.named}
    cue = Cue("river visits of Ann", topics=("travel",), since=NOW - 90 * DAY, until=NOW + DAY, **filtered, **more)
    parts = mind.access.parts
    [vector] = await parts.embedder.embed([cue.text])
    asked = PlannedCue(cue, parse_cue(cue, vector, now=NOW), [channel], limit)
    [found] = await ask_channels(parts, await locate(parts.database, mind.access.scope), [asked])
    return found[channel.name]


@pytest.mark.parametrize("kind", CHANNELS, ids=lambda each: each.name)
async def test_a_channel_filters_before_it_limits(world, kind):
    async def ask(only, limit):
        # Of itself the stream holds two kinds only.
        kinds = only.kinds or tuple(Kind)
        asked = replace(only, kinds=kinds) if kind is StreamChannel else only
        found = (await propose(world.mind, kind(), asked, limit)).candidates
        scores.update({each.id: each.score for each in found})
        return [each.id for each in found]

    scores = {}
    await world.check(ask, scores=scores)


@pytest.mark.parametrize("mode", [Mode.ORIGINAL, Mode.PAPER])
async def test_the_stream_filters_in_every_mode(world, mode):
    async def ask(only, limit):
        asked = replace(only, kinds=only.kinds or tuple(Kind))
        found = await propose(world.mind, StreamChannel(), asked, limit, weighing=StreamWeights(mode))
        return [each.id for each in found.candidates]

    await world.check(ask)


@pytest.mark.parametrize("unit", ["text", "vector"])
async def test_past_versions_are_filtered_before_they_are_limited(world, owner, unit):
    """Facts that were ended since have left the indexes; as of before they are found all the same."""
    [as_of] = owner.execute("select max(created_at) from memories").fetchone()
    for fact in [row.id for row in world.rows.values() if row.believed][::2]:
        await world.mind.knowledge.end(fact, NOW + DAY)
    bases = [only for only in world.filters if only.as_of is None and only.at is None]

    async def ask(only, limit):
        return [each.id for each in (await propose(world.mind, PastChannel(), only, limit)).lent[unit]]

    await replace(world, filters=tuple(bases)).check(ask, Filter(as_of=as_of))


async def list_browsed(mind, only, limit):
    page = await list_memories(mind.access.parts, mind.access.scope, ListQuery(only, limit=limit))
    return [each.id for each in page.memories]


async def list_stated(mind, only, limit):
    page = await list_facts(mind.access.parts, mind.access.scope, FactQuery(only=only), None, limit)
    return [each.memory_id for each in page.facts]


async def list_filed(mind, only, limit):
    links = await list_links(mind.access.parts, mind.access.scope, "travel", None, limit, only)
    return [each.memory_id for each in links]


async def list_associated(mind, only, limit):
    triple = Triple("Ann", "sees", "river")
    [found] = await associate(mind.access.parts, mind.access.scope, [triple], limit, original=False, only=only)
    return [each.id for each in found.events]


async def list_exported(mind, only, limit):
    access = mind.access
    moment = await graph_store.find_moment(access.parts.database, access.scope, only)
    pages = [page async for page in graph_store.page_facts(access.parts.database, access.scope, moment)]
    return [each.memory_id for page in pages for each in page][:limit]


async def list_fetched(mind, only, limit):
    every = [each.id for each in (await mind.list(limit=MANY)).memories]
    return [*await memories.fetch(mind.access.parts.database, mind.access.scope, every, only)][:limit]


LISTS = (list_browsed, list_stated, list_filed, list_associated, list_exported, list_fetched)


@pytest.mark.parametrize("listed", LISTS, ids=lambda each: each.__name__)
async def test_a_list_filters_before_it_limits(world, listed):
    async def ask(only, limit):
        return await listed(world.mind, only, limit)

    await world.check(ask)


async def test_topics_count_what_a_filter_allows(world):
    access = world.mind.access
    filed = await list_filed(world.mind, Filter(), MANY)
    for only in world.filters:
        found = (await tree(access.parts, access.scope, "", 10, only)).topics
        expected = len(world.restrict(filed, only))
        assert [topic.memories for topic in found] == ([expected] if expected else [])


async def test_a_walk_follows_only_what_a_filter_allows(world, owner):
    access = world.mind.access
    [ann] = owner.execute("select id from entities where name = 'Ann'").fetchone()
    for only in world.filters:
        found = await find_neighbors(access.parts, access.scope, ann, graph_store.WalkLimits(1, MANY, only))
        believed = [row.id for row in world.rows.values() if row.believed]
        assert sorted(each.memory_id for each in found.relations) == sorted(world.restrict(believed, only))


async def test_a_recall_obeys_the_filter_and_says_what_nothing_was_found_by(world):
    found = await world.mind.recall(Cue("river", pinned=True, limit=50))
    assert found.hits and all(hit.memory.pinned for hit in found.hits)
    others = await world.mind.recall(Cue("river", pinned=False, kinds=(Kind.CHAT,), limit=50))
    assert others.hits and not any(hit.memory.pinned or hit.memory.kind is not Kind.CHAT for hit in others.hits)


async def test_what_no_read_can_be_restricted_to_is_refused(mind):
    for only in (Filter(min_trust=101), Filter(as_of=datetime(2026, 1, 1)), Filter(at=datetime(2026, 1, 1))):  # noqa: DTZ001
        with pytest.raises(InvalidInputError):
            await list_memories(mind.access.parts, mind.access.scope, ListQuery(only, limit=10))


def test_a_filter_names_what_is_not_as_by_default():
    assert Filter().named == ()
    assert Filter(pinned=False, min_trust=1).named == ("min_trust", "pinned")
    cue = Cue("x", pinned=True, kinds=(Kind.EVENT,), limit=3)
    assert cue.filter == Filter(pinned=True, kinds=(Kind.EVENT,)) and cue.named == ("kinds", "pinned")
