"""One scope's topics as one object: the tree, what is filed under it, and how to reorganise it: on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from recollect.client.calls import RemoteView

if TYPE_CHECKING:
    from recollect.models.topics import Filing, RelatedTopic, Topic, TopicLink, TopicTree


class RemoteTopics(RemoteView):
    """The topics of one scope; topics are named by their paths, `a->b->c`, on a server."""

    __slots__ = ()

    async def tree(self, path: str = "", limit: int = 1_000) -> TopicTree:
        """List a topic with all below it, or the whole tree, each topic with its number of memories."""
        answer: TopicTree = await self.call("topics.tree", path=path, limit=limit)
        return answer

    async def links(self, path: str = "", *, memory_id: UUID | None = None, limit: int = 50) -> list[TopicLink]:
        """List what is filed under a topic, or what a memory is filed under, the newest first."""
        answer: list[TopicLink] = await self.call("topics.links", path=path, memory_id=memory_id, limit=limit)
        return answer

    async def related(self, path: str, limit: int = 50) -> list[RelatedTopic]:
        """List the topics to which the links of one lead, the strongest first."""
        answer: list[RelatedTopic] = await self.call("topics.related", path=path, limit=limit)
        return answer

    async def link(self, path: str, memories: UUID | Filing | Sequence[UUID | Filing]) -> Topic:
        """File memories under a topic, which is created if it is new; what is filed there already is filed again."""
        answer: Topic = await self.call("topics.link", path=path, memories=memories)
        return answer

    async def unlink(self, path: str, ids: Sequence[UUID]) -> list[UUID]:
        """Remove memories from a topic and return which; a topic that is not needed any more is deleted."""
        answer: list[UUID] = await self.call("topics.unlink", path=path, ids=ids)
        return answer

    async def rename(self, path: str, name: str) -> Topic:
        """Rename a topic, which changes its path and those below it."""
        answer: Topic = await self.call("topics.rename", path=path, name=name)
        return answer

    async def move(self, path: str, under: str = "") -> Topic:
        """Move a topic with all below it under another one, which is created if it is new; to the roots if none."""
        answer: Topic = await self.call("topics.move", path=path, under=under)
        return answer

    async def merge(self, path: str, into: str) -> Topic:
        """Merge one topic with all below it into another: what is filed under both keeps the newer link."""
        answer: Topic = await self.call("topics.merge", path=path, into=into)
        return answer
