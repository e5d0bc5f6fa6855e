"""One scope's topics as one object: the tree, the memories filed under it, and how to reorganize it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.mind.access import Access
from recollect.mind.operations import operation
from recollect.models.service import Right
from recollect.models.topics import NewTopicLink, Topic, TopicLink, TopicTree
from recollect.verbs.topics.topics import TopicChange, link, list_links, tree, unlink, update_topic


@dataclass(frozen=True, slots=True)
class TopicsView:
    """One caller's view of the topics of one scope; topics are named by their paths, `a->b->c`."""

    access: Access

    @operation("GET /v1/topics", Right.READ, command="mind topics")
    async def tree(self, path: str = "", limit: int = 1_000) -> TopicTree:
        """List the topic tree with counts, or a subtree and the topics related to its root."""
        return await tree(self.access.parts, self.access.scope, path, limit)

    @operation("GET /v1/topics/links", Right.READ, answer="links", command="mind topics")
    async def links(self, path: str = "", *, memory_id: UUID | None = None, limit: int = 50) -> list[TopicLink]:
        """List the memories of a topic, or the topics of a memory, newest first."""
        return await list_links(self.access.parts, self.access.scope, path, memory_id, limit)

    @operation("POST /v1/topics/links", Right.WRITE, command="mind topics")
    async def link(self, path: str, memories: UUID | NewTopicLink | Sequence[UUID | NewTopicLink]) -> Topic:
        """Add memories to a topic. Creates the topic if needed."""
        return await link(self.access.parts, self.access.scope, path, as_filings(memories))

    @operation("POST /v1/topics/unlink", Right.WRITE, answer="unlinked", command="mind topics")
    async def unlink(self, path: str, ids: Sequence[UUID]) -> list[UUID]:
        """Remove memories from a topic. Empty topics are deleted."""
        return await unlink(self.access.parts, self.access.scope, path, ids)

    @operation("PATCH /v1/topics", Right.WRITE, command="mind topics")
    async def update(
        self, path: str, *, name: str | None = None, parent: str | None = None, into: str | None = None
    ) -> Topic:
        """Rename a topic, move it, or merge it with its subtopics into another.

        A parent is created if needed; an empty one is the root. `into` excludes the others.
        """
        return await update_topic(self.access.parts, self.access.scope, path, TopicChange(name, parent, into))


def as_filings(memories: UUID | NewTopicLink | Sequence[UUID | NewTopicLink]) -> list[NewTopicLink]:
    """Convert one or many memories, given by ID or with their links, to topic links."""
    given = [memories] if isinstance(memories, UUID | NewTopicLink) else memories
    return [each if isinstance(each, NewTopicLink) else NewTopicLink(each) for each in given]
