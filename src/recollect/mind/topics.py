"""One scope's topics as one object: the tree, what is filed under it, and the ways to put it in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.mind.access import Access
from recollect.models.service import Right
from recollect.models.topics import Filing, RelatedTopic, Topic, TopicLink, TopicTree
from recollect.verbs.topics.topics import link, list_links, merge, move, related, rename, tree, unlink


@dataclass(frozen=True, slots=True)
class TopicsView:
    """One caller's view of the topics of one scope; topics are named by their paths, `a->b->c`."""

    access: Access

    async def tree(self, path: str = "", limit: int = 1_000) -> TopicTree:
        """List a topic with all below it, or the whole tree, each topic with its number of memories."""
        async with self.access.asking(Right.READ) as access:
            return await tree(access.parts, access.scope, path, limit)

    async def links(self, path: str = "", *, memory_id: UUID | None = None, limit: int = 50) -> list[TopicLink]:
        """List what is filed under a topic, or what a memory is filed under, the newest first."""
        async with self.access.asking(Right.READ) as access:
            return await list_links(access.parts, access.scope, path, memory_id, limit)

    async def related(self, path: str, limit: int = 50) -> list[RelatedTopic]:
        """List the topics that what is filed under one leads to, the strongest first."""
        async with self.access.asking(Right.READ) as access:
            return await related(access.parts, access.scope, path, limit)

    async def link(self, path: str, memories: UUID | Filing | Sequence[UUID | Filing]) -> Topic:
        """File memories under a topic, which comes to be if it is new; what is filed there already is filed anew."""
        async with self.access.asking(Right.WRITE) as access:
            return await link(access.parts, access.scope, path, as_filings(memories))

    async def unlink(self, path: str, ids: Sequence[UUID]) -> list[UUID]:
        """Take memories from a topic and tell which; a topic that nothing needs any more goes."""
        async with self.access.asking(Right.WRITE) as access:
            return await unlink(access.parts, access.scope, path, ids)

    async def rename(self, path: str, name: str) -> Topic:
        """Give a topic another name, and so another path to it and to all below it."""
        async with self.access.asking(Right.WRITE) as access:
            return await rename(access.parts, access.scope, path, name)

    async def move(self, path: str, under: str = "") -> Topic:
        """Bring a topic with all below it under another one, which comes to be if it is new; to the roots if none."""
        async with self.access.asking(Right.WRITE) as access:
            return await move(access.parts, access.scope, path, under)

    async def merge(self, path: str, into: str) -> Topic:
        """Let one topic absorb another with all below it: what is filed under both is filed as its newer link says."""
        async with self.access.asking(Right.WRITE) as access:
            return await merge(access.parts, access.scope, path, into)


def as_filings(memories: UUID | Filing | Sequence[UUID | Filing]) -> list[Filing]:
    """Take one or many memories, by id or with how they are filed."""
    given = [memories] if isinstance(memories, UUID | Filing) else memories
    return [each if isinstance(each, Filing) else Filing(each) for each in given]
