"""One scope's topics as one object: the tree, what is filed under it, and how to reorganise it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.mind.access import Access
from recollect.mind.operations import operation
from recollect.models.service import Right
from recollect.models.topics import Filing, RelatedTopic, Topic, TopicLink, TopicTree
from recollect.verbs.topics.topics import link, list_links, merge, move, related, rename, tree, unlink


@dataclass(frozen=True, slots=True)
class TopicsView:
    """One caller's view of the topics of one scope; topics are named by their paths, `a->b->c`."""

    access: Access

    @operation("GET /v1/topics", Right.READ, command="topics")
    async def tree(self, path: str = "", limit: int = 1_000) -> TopicTree:
        """List a topic with all below it, or the whole tree, each topic with its number of memories."""
        return await tree(self.access.parts, self.access.scope, path, limit)

    @operation("GET /v1/topics/links", Right.READ, answer="links", command="topics")
    async def links(self, path: str = "", *, memory_id: UUID | None = None, limit: int = 50) -> list[TopicLink]:
        """List what is filed under a topic, or what a memory is filed under, the newest first."""
        return await list_links(self.access.parts, self.access.scope, path, memory_id, limit)

    @operation("GET /v1/topics/related", Right.READ, answer="related", command="topics")
    async def related(self, path: str, limit: int = 50) -> list[RelatedTopic]:
        """List the topics to which the links of one lead, the strongest first."""
        return await related(self.access.parts, self.access.scope, path, limit)

    @operation("POST /v1/topics/links", Right.WRITE, command="topics")
    async def link(self, path: str, memories: UUID | Filing | Sequence[UUID | Filing]) -> Topic:
        """File memories under a topic, which is created if it is new; what is filed there already is filed again."""
        return await link(self.access.parts, self.access.scope, path, as_filings(memories))

    @operation("POST /v1/topics/unlink", Right.WRITE, answer="unlinked", command="topics")
    async def unlink(self, path: str, ids: Sequence[UUID]) -> list[UUID]:
        """Remove memories from a topic and return which; a topic that is not needed any more is deleted."""
        return await unlink(self.access.parts, self.access.scope, path, ids)

    @operation("POST /v1/topics/rename", Right.WRITE, command="topics")
    async def rename(self, path: str, name: str) -> Topic:
        """Rename a topic, which changes its path and those below it."""
        return await rename(self.access.parts, self.access.scope, path, name)

    @operation("POST /v1/topics/move", Right.WRITE, command="topics")
    async def move(self, path: str, under: str = "") -> Topic:
        """Move a topic with all below it under another one, which is created if it is new; to the roots if none."""
        return await move(self.access.parts, self.access.scope, path, under)

    @operation("POST /v1/topics/merge", Right.WRITE, command="topics")
    async def merge(self, path: str, into: str) -> Topic:
        """Merge one topic with all below it into another: what is filed under both keeps the newer link."""
        return await merge(self.access.parts, self.access.scope, path, into)


def as_filings(memories: UUID | Filing | Sequence[UUID | Filing]) -> list[Filing]:
    """Take one or many memories, by id or with how they are filed."""
    given = [memories] if isinstance(memories, UUID | Filing) else memories
    return [each if isinstance(each, Filing) else Filing(each) for each in given]
