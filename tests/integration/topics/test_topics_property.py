"""Whatever is filed, renamed, moved, merged and forgotten: the store's tree and channel are what pure links make."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.core.topics.paths import encode, parse_topic, prefixes, show_topic
from recollect.core.topics.rating import collect, update_link
from recollect.errors import ConflictError, InvalidInputError, NotFoundError
from recollect.mind import Mind
from recollect.models.memories import NewMemory
from recollect.models.topics import LinkStrength, NewTopicLink, TopicLink
from support.measuring.sizes import Sizes
from support.memories.topic_cases import propose

EXAMPLES = Sizes("examples", ci=15, long=400)
NOW = datetime(2026, 3, 31, tzinfo=UTC)
MEMORIES = 4
NUMBERS = itertools.count()
names = st.sampled_from(["a", "b", "A"])
paths = st.lists(names, min_size=1, max_size=2).map("->".join) | st.just("a->b->中")
shares = st.sampled_from([0.0, 0.3, 1.0])
filings = st.tuples(
    st.just("file"),
    st.integers(0, MEMORIES - 1),
    paths,
    st.lists(paths, max_size=2),
    st.integers(0, 40),
    st.builds(LinkStrength, shares, shares, shares),
)
steps = st.one_of(
    filings,
    st.tuples(st.just("unlink"), st.integers(0, MEMORIES - 1), paths),
    st.tuples(st.just("forget"), st.integers(0, MEMORIES - 1)),
    st.tuples(st.just("rename"), paths, names),
    st.tuples(st.just("move"), paths, st.one_of(st.just(""), paths)),
    st.tuples(st.just("merge"), paths, paths),
)
quick = settings(max_examples=EXAMPLES.now)


def key(path):
    return encode(parse_topic(path))


def closure(links):
    """All topics that there are: what something is filed under, what is related to it, and all above."""
    written = [each for link in links for each in (link.path, *link.related)]
    return {encode(above) for path in written for above in prefixes(parse_topic(path))}


@dataclass
class World:
    """A scope, and the links that it should hold."""

    mind: Mind
    ids: list[UUID]
    links: list[TopicLink] = field(default_factory=list)

    async def take(self, step):
        verb, *given = step
        await getattr(self, verb)(*given)

    async def file(self, which, path, related, days, reach):
        moment = NOW - timedelta(days=days)
        await self.mind.topics.link(path, NewTopicLink(self.ids[which], reach, tuple(related), moment))
        self.links = update_link(self.links, TopicLink(path, self.ids[which], moment, reach, tuple(related)))

    async def unlink(self, which, path):
        await self.mind.topics.unlink(path, [self.ids[which]])
        self.links = [link for link in self.links if (link.memory_id, key(link.path)) != (self.ids[which], key(path))]

    async def forget(self, which):
        await self.mind.forget([self.ids[which]])
        self.links = [link for link in self.links if link.memory_id != self.ids[which]]
        [self.ids[which]] = [receipt.id for receipt in await self.mind.remember(f"memory {which}")]

    async def rename(self, path, name):
        target = show_topic((*parse_topic(path)[:-1], name))
        await self.change(self.mind.topics.update(path, name=name), path, target, joins=key(path) == key(target))

    async def move(self, path, under):
        target = show_topic((*parse_topic(under), parse_topic(path)[-1]))
        await self.change(self.mind.topics.update(path, parent=under), path, target, joins=key(path) == key(target))

    async def merge(self, path, into):
        refused = key(path) == key(into) or key(into) not in closure(self.links)
        await self.change(self.mind.topics.update(path, into=into), path, into, joins=True, refused=refused)

    async def change(self, call, path, target, *, joins, refused=False):
        """Do as asked if it can be done: from a topic that is there, not below itself, onto another only by a merge."""
        known = closure(self.links)
        below = key(path) != key(target) and f"{key(target)}.".startswith(f"{key(path)}.")
        taken = key(target) in known and not joins
        if refused or below or taken or key(path) not in known:
            try:
                await call
            except (ConflictError, InvalidInputError, NotFoundError):
                return
            raise AssertionError("it should have been refused")
        await call
        self.links = replant(self.links, path, target)

    async def compare(self):
        tree = await self.mind.topics.tree()
        assert {key(topic.path) for topic in tree.topics} == closure(self.links)
        assert tree.text.count("\n") == len(tree.topics)
        for topic in tree.topics:
            own = [link for link in self.links if key(link.path) == key(topic.path)]
            below = [link for link in self.links if key(link.path).startswith(key(topic.path) + ".")]
            assert (topic.memories, topic.below) == (len(own), len(below))
            stored = await self.mind.topics.links(topic.path)
            assert sorted(map(plain, stored)) == sorted(map(plain, own))
            for descendants in (False, True):
                expected = collect(self.links, topic.path, NOW, 10, descendants=descendants)
                found = await propose(self.mind, topic.path, now=NOW, limit=10, below=descendants)
                assert [*found.candidates] == expected


def plain(link):
    reach = (link.reach.activation, link.reach.diffusion, link.reach.independence)
    return key(link.path), link.memory_id, link.occurred_at, reach, sorted(map(key, link.related))


def replant(links, path, target):
    """Let one path with all below it be another: where a memory is filed there already, the newer link says how."""

    def rename(each):
        if not f"{key(each)}.".startswith(f"{key(path)}."):
            return each
        return show_topic((*parse_topic(target), *parse_topic(each)[len(parse_topic(path)) :]))

    stay = [link for link in links if rename(link.path) == link.path]
    go = [link for link in links if rename(link.path) != link.path]
    joined = []
    for link in (*stay, *go):
        new = replace(link, path=rename(link.path), related=tuple(map(rename, link.related)))
        same = [each for each in joined if (each.memory_id, key(each.path)) == (new.memory_id, key(new.path))]
        if same and same[0].occurred_at >= new.occurred_at:
            new = replace(same[0], related=new.related)
        joined = update_link(joined, new)
    return joined


@pytest.mark.promise("The tree of topics and its recalls are what its links make", EXAMPLES)
@quick
@given(st.lists(filings, min_size=2, max_size=8), st.lists(steps, max_size=10))
async def test_the_tree_and_its_recalls_are_what_links_make(recollect, begun, drawn):
    mind = await recollect.mind("tree", f"world-{next(NUMBERS)}")
    receipts = await mind.remember([NewMemory(f"memory {which}") for which in range(MEMORIES)])
    world = World(mind, [receipt.id for receipt in receipts])
    for step in (*begun, *drawn):
        await world.take(step)
    await world.compare()
