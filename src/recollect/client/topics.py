"""One scope's topics as one object: the tree, the memories filed under it, and how to reorganize it: on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from recollect.client.calls import RemoteView

if TYPE_CHECKING:
    from recollect.models.topics import NewTopicLink, Topic, TopicLink, TopicTree


class RemoteTopics(RemoteView):
    """The topics of one scope; topics are named by their paths, `a->b->c`, on a server."""

    __slots__ = ()

    async def tree(self, path: str = "", limit: int = 1_000) -> TopicTree:
        """List the topic tree with counts, or a subtree and the topics related to its root."""
        answer: TopicTree = await self.call("topics.tree", path=path, limit=limit)
        return answer

    async def links(self, path: str = "", *, memory_id: UUID | None = None, limit: int = 50) -> list[TopicLink]:
        """List the memories of a topic, or the topics of a memory, newest first."""
        answer: list[TopicLink] = await self.call("topics.links", path=path, memory_id=memory_id, limit=limit)
        return answer

    async def link(self, path: str, memories: UUID | NewTopicLink | Sequence[UUID | NewTopicLink]) -> Topic:
        """Add memories to a topic. Creates the topic if needed."""
        answer: Topic = await self.call("topics.link", path=path, memories=memories)
        return answer

    async def unlink(self, path: str, ids: Sequence[UUID]) -> list[UUID]:
        """Remove memories from a topic. Empty topics are deleted."""
        answer: list[UUID] = await self.call("topics.unlink", path=path, ids=ids)
        return answer

    async def update(
        self, path: str, *, name: str | None = None, parent: str | None = None, into: str | None = None
    ) -> Topic:
        """Rename a topic, move it, or merge it with its subtopics into another.

        A parent is created if needed; an empty one is the root. `into` excludes the others.
        """
        answer: Topic = await self.call("topics.update", path=path, name=name, parent=parent, into=into)
        return answer
