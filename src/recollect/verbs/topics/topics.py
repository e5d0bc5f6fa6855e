"""Topics: list the tree, file memories under it, and rename, move or merge topics, one transaction each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
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
from recollect.models.recall import Filter
from recollect.models.service import Scope
from recollect.models.topics import NewTopicLink, RelatedTopic, Topic, TopicLink, TopicTree
from recollect.store.database.pool import Connection
from recollect.store.service.scopes import locate, lock_scope
from recollect.store.topics import topics
from recollect.verbs.dependencies import Dependencies

MAX_TOPICS = 10_000
UNKNOWN = "No such topic in this scope."


async def tree(parts: Dependencies, scope: Scope, path: str, limit: int, only: Filter = topics.EVERYTHING) -> TopicTree:
    """List the topic tree, or a subtree, with counts."""
    if not 1 <= limit <= MAX_TOPICS:
        raise InvalidInputError(f"limit must be between 1 and {MAX_TOPICS}")
    check_filter(only)
    asked = read_topic(path) if path else ()
    scope_id = (await locate(parts.database, scope)).scope_id
    nodes = await topics.read_tree(parts.database, scope_id, asked, only) if scope_id is not None else []
    found = grow(nodes, len(asked))
    if asked and not found:
        raise NotFoundError(UNKNOWN)
    return TopicTree(tuple(found[:limit]), whole=len(found) <= limit)


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


async def related(parts: Dependencies, scope: Scope, path: str, limit: int) -> list[RelatedTopic]:
    """List the topics that the links of a topic lead to."""
    check_limit(limit)
    names = read_topic(path)
    scope_id = (await locate(parts.database, scope)).scope_id
    return [] if scope_id is None else await topics.read_related(parts.database, scope_id, names, limit)


async def rename(parts: Dependencies, scope: Scope, path: str, name: str) -> Topic:
    """Rename a topic."""
    names, new = read_topic(path), read_topic(name, "name")
    if len(new) > 1:
        raise InvalidInputError("name must be a single name; use move to change the path")
    return await move_subtree(parts, scope, names, (*names[:-1], *new), renamed=True)


async def move(parts: Dependencies, scope: Scope, path: str, under: str) -> Topic:
    """Move a topic and its subtopics. Creates the target if needed."""
    names, parent = read_topic(path), read_topic(under, "under") if under else ()
    return await move_subtree(parts, scope, names, (*parent, names[-1]))


async def move_subtree(
    parts: Dependencies, scope: Scope, path: Names, new_path: Names, *, renamed: bool = False
) -> Topic:
    """Move a topic to a path that does not exist yet."""
    read_topic(show_topic(new_path))
    same = encode(path) == encode(new_path)
    if not same:
        refuse_below(path, new_path)
    async with changing(parts, scope) as (connection, scope_id):
        there, taken = await topics.are_there(connection, scope_id, [path, new_path])
        if not there:
            raise NotFoundError(UNKNOWN)
        if taken and not same:
            raise ConflictError("This topic already exists. Merge the two instead.")
        await check_room(connection, scope_id, path, new_path)
        if not same:
            await topics.move_subtree(connection, scope_id, path, new_path)
        if renamed:
            await topics.name(connection, scope_id, new_path)
    return await read_one(parts, scope_id, new_path)


async def merge(parts: Dependencies, scope: Scope, path: str, into: str) -> Topic:
    """Merge a topic and its subtopics into another."""
    names, heir = read_topic(path), read_topic(into, "into")
    if encode(names) == encode(heir):
        raise InvalidInputError("into must be another topic")
    refuse_below(names, heir)
    async with changing(parts, scope) as (connection, scope_id):
        if not all(await topics.are_there(connection, scope_id, [names, heir])):
            raise NotFoundError(UNKNOWN)
        await check_room(connection, scope_id, names, heir)
        await topics.move_subtree(connection, scope_id, names, heir)
    return await read_one(parts, scope_id, heir)


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
