"""Topics: list the tree, file memories under it, and update topics, one transaction each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from recollect.core.memories.checks import MAX_MEMORIES
from recollect.core.recall.checks import check_filter
from recollect.core.text.checks import check_limit, check_moment
from recollect.core.topics.paths import (
    MAX_LABELS_LENGTH,
    MAX_LEVELS,
    Names,
    check_filing,
    encode,
    grow,
    read_topic,
    show_topic,
)
from recollect.errors import ConflictError, InvalidInputError, NotFoundError
from recollect.models.filters import Filter
from recollect.models.service import Scope
from recollect.models.topics import NewTopicLink, Topic, TopicLink, TopicTree
from recollect.store.database.pool import Connection
from recollect.store.service.scopes import locate, lock_scope
from recollect.store.topics import topics
from recollect.verbs.dependencies import Dependencies

MAX_TOPICS, MAX_RELATED = 10_000, 50
UNKNOWN = "No such topic in this scope."


async def tree(parts: Dependencies, scope: Scope, path: str, limit: int, only: Filter = topics.EVERYTHING) -> TopicTree:
    """List the topic tree with counts, or a subtree and the topics that the links of its root lead to."""
    if not 1 <= limit <= MAX_TOPICS:
        raise InvalidInputError(f"limit must be between 1 and {MAX_TOPICS}")
    check_filter(only)
    asked = read_topic(path) if path else ()
    scope_id = (await locate(parts.database, scope)).scope_id
    nodes = await topics.read_tree(parts.database, scope_id, asked, only) if scope_id is not None else []
    found = grow(nodes, len(asked))
    if scope_id is None or not found:
        if asked:
            raise NotFoundError(UNKNOWN)
        return TopicTree(())
    related = await topics.read_related(parts.database, scope_id, asked, MAX_RELATED) if asked else []
    return TopicTree(tuple(found[:limit]), len(found) <= limit, tuple(related))


async def link(parts: Dependencies, scope: Scope, path: str, filings: Sequence[NewTopicLink]) -> Topic:
    """Add memories to a topic. Creates the topic if needed."""
    if not 1 <= len(filings) <= MAX_MEMORIES:
        raise InvalidInputError(f"memories must have 1 to {MAX_MEMORIES} items")
    names = read_topic(path)
    for filing in filings:
        check_filing(path, filing.related, filing.reach)
        if filing.occurred_at is not None:
            check_moment("occurred_at", filing.occurred_at)
    async with changing(parts, scope) as (connection, scope_id):
        present = await topics.find_present(connection, scope_id, [filing.memory_id for filing in filings])
        if any(filing.memory_id not in present for filing in filings):
            raise NotFoundError("No such memory in this scope.")
        await topics.file(connection, scope_id, [topics.file_as(names, filing) for filing in filings])
    return await read_one(parts, scope_id, names)


async def unlink(parts: Dependencies, scope: Scope, path: str, ids: Sequence[UUID]) -> list[UUID]:
    """Remove memories from a topic. Empty topics are deleted."""
    if not 1 <= len(ids) <= MAX_MEMORIES:
        raise InvalidInputError(f"ids must hold 1 to {MAX_MEMORIES} items")
    names = read_topic(path)
    async with changing(parts, scope) as (connection, scope_id):
        return sorted(await topics.unlink(connection, scope_id, names, ids))


async def list_links(
    parts: Dependencies, scope: Scope, path: str, memory_id: UUID | None, limit: int, only: Filter = topics.EVERYTHING
) -> list[TopicLink]:
    """List the memories of a topic, or the topics of a memory, newest first."""
    check_limit(limit)
    check_filter(only)
    if not path and memory_id is None:
        raise InvalidInputError("path or memory_id is required")
    names = read_topic(path) if path else ()
    scope_id = (await locate(parts.database, scope)).scope_id
    if scope_id is None:
        return []
    return await topics.read_links(parts.database, scope_id, names, memory_id, limit, only)


@dataclass(frozen=True, slots=True)
class TopicChange:
    """A new name or parent of a topic, or another topic to merge it into."""

    name: str | None = None
    parent: str | None = None
    into: str | None = None

    def apply(self, path: Names) -> Names:
        """Return the path after the change."""
        if self.into is not None:
            if self.name is not None or self.parent is not None:
                raise InvalidInputError("into excludes name and parent")
            return read_topic(self.into, "into")
        if self.name is None and self.parent is None:
            raise InvalidInputError("name, parent or into is required")
        own = path[-1:] if self.name is None else read_topic(self.name, "name")
        if len(own) > 1:
            raise InvalidInputError("name must be a single name; use parent to change the path")
        above = path[:-1] if self.parent is None else read_topic(self.parent, "parent") if self.parent else ()
        return read_topic(show_topic((*above, *own)))


async def update_topic(parts: Dependencies, scope: Scope, path: str, change: TopicChange) -> Topic:
    """Rename a topic or move it with its subtopics to a new path, or merge it with them into another topic."""
    names, merges = read_topic(path), change.into is not None
    new_path = change.apply(names)
    same = encode(names) == encode(new_path)
    if same and merges:
        raise InvalidInputError("into must be another topic")
    if not same:
        refuse_below(names, new_path)
    async with changing(parts, scope) as (connection, scope_id):
        there, taken = await topics.are_there(connection, scope_id, [names, new_path])
        if not there or (merges and not taken):
            raise NotFoundError(UNKNOWN)
        if taken and not same and not merges:
            raise ConflictError("This topic already exists. Merge the two instead.")
        await check_room(connection, scope_id, names, new_path)
        if not same:
            await topics.move_subtree(connection, scope_id, names, new_path)
        if change.name is not None:
            await topics.name(connection, scope_id, new_path)
    return await read_one(parts, scope_id, new_path)


def refuse_below(path: Names, new_path: Names) -> None:
    """Refuse to move a topic below itself."""
    if f"{encode(new_path)}.".startswith(f"{encode(path)}."):
        raise InvalidInputError("a topic cannot be moved below itself")


async def check_room(connection: Connection, scope_id: int, path: Names, new_path: Names) -> None:
    """Refuse paths that would become too long or too deep."""
    letters, levels = await topics.measure(connection, scope_id, path)
    longer, deeper = len(encode(new_path)) - len(encode(path)), len(new_path) - len(path)
    if letters + longer > MAX_LABELS_LENGTH or levels + deeper > MAX_LEVELS:
        raise InvalidInputError("the subtopics would be too deep or their paths too long: move some of them first")


@asynccontextmanager
async def changing(parts: Dependencies, scope: Scope) -> AsyncIterator[tuple[Connection, int]]:
    """Open a transaction that locks the scope."""
    async with parts.database.transaction(scope.tenant_id) as connection:
        locked = await (await lock_scope(connection, scope)).fetchone()
        if locked is None:
            raise NotFoundError(UNKNOWN)
        yield connection, locked["id"]


async def read_one(parts: Dependencies, scope_id: int, path: Names) -> Topic:
    """Read a topic as it is now."""
    found = grow(await topics.read_tree(parts.database, scope_id, path), len(path))
    # A topic that has only deleted messages is not shown.
    return found[0] if found else Topic(show_topic(path), path[-1], 0, 0)
