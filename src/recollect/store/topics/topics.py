"""Write and read one scope's topics: the tree, filed memories, and related topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg import sql
from psycopg.rows import DictRow

from recollect.core.service.numbers import tenant_of
from recollect.core.topics.paths import ARROW, Names, TopicNode, encode, parse_topic, prefixes, show_topic
from recollect.models.filters import Filter
from recollect.models.memories import NewMemory
from recollect.models.topics import LinkStrength, NewTopicLink, RelatedTopic, TopicLink
from recollect.store.database.filter import Columns, bind, list_allowed, restrict_among
from recollect.store.database.pool import Connection, Database, load_queries

QUERIES = load_queries(__file__)
EVERYTHING = Filter()


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A memory to file: its topic, and the kind of link."""

    topic: Names
    memory_id: UUID
    reach: LinkStrength
    related: tuple[Names, ...] = ()
    occurred_at: datetime | None = None


def file_as(topic: Names, filing: NewTopicLink) -> LinkRow:
    """Parse a caller's filing under a topic."""
    related = tuple(map(parse_topic, filing.related))
    return LinkRow(topic, filing.memory_id, filing.reach, related, filing.occurred_at)


async def file_new(connection: Connection, scope_id: int, new: Iterable[tuple[UUID, NewMemory]]) -> None:
    """File new memories under their topics, in the transaction that stores them."""
    filed = [
        file_as(parse_topic(memory.topic), NewTopicLink(memory_id, memory.reach, memory.related_topics))
        for memory_id, memory in new
        if memory.topic
    ]
    if filed:
        await file(connection, scope_id, filed)


async def file(connection: Connection, scope_id: int, filed: Sequence[LinkRow]) -> None:
    """File memories of a locked scope; missing topics are created, with all above them."""
    await ensure(connection, scope_id, [path for each in filed for path in (each.topic, *each.related)])
    # If a memory is filed twice in one call, the last one counts.
    latest = {(encode(each.topic), each.memory_id): each for each in filed}
    parameters = {
        "scope_id": scope_id,
        "paths": [path for path, _ in latest],
        "memory_ids": [memory_id for _, memory_id in latest],
        "activations": [each.reach.activation for each in latest.values()],
        "diffusions": [each.reach.diffusion for each in latest.values()],
        "independences": [each.reach.independence for each in latest.values()],
        "moments": [each.occurred_at for each in latest.values()],
    }
    await connection.execute(QUERIES["link"], parameters)
    await store_related_topics(connection, scope_id, filed)


async def ensure(connection: Connection, scope_id: int, paths: Iterable[Names]) -> None:
    """Create missing topics, and all above them."""
    wanted: dict[str, str] = {}
    for above in (above for path in paths for above in prefixes(path)):
        wanted.setdefault(encode(above), above[-1])
    if wanted:
        parameters = {"scope_id": scope_id, "paths": list(wanted), "names": list(wanted.values())}
        await connection.execute(QUERIES["ensure"], parameters)


async def store_related_topics(connection: Connection, scope_id: int, filed: Sequence[LinkRow]) -> None:
    """Store which topics links lead to."""
    pairs = dict.fromkeys(
        (encode(each.topic), each.memory_id, encode(related)) for each in filed for related in each.related
    )
    if pairs:
        parameters = {
            "scope_id": scope_id,
            "paths": [path for path, _, _ in pairs],
            "memory_ids": [memory_id for _, memory_id, _ in pairs],
            "related": [related for _, _, related in pairs],
        }
        await connection.execute(QUERIES["relate"], parameters)


async def find_present(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> set[UUID]:
    """Return which memories exist."""
    found = await connection.execute(QUERIES["present"], {"scope_id": scope_id, "ids": list(ids)})
    return {row["id"] for row in await found.fetchall()}


async def unlink(connection: Connection, scope_id: int, path: Names, ids: Sequence[UUID]) -> list[UUID]:
    """Remove memories from a topic; return which were filed under it."""
    parameters = {"scope_id": scope_id, "path": encode(path), "ids": list(ids)}
    found = await connection.execute(QUERIES["unlink"], parameters)
    return [row["memory_id"] for row in await found.fetchall()]


async def are_there(connection: Connection, scope_id: int, paths: Sequence[Names]) -> list[bool]:
    """Return for each path whether the topic exists."""
    found = await connection.execute(QUERIES["at"], {"scope_id": scope_id, "paths": list(map(encode, paths))})
    places = {row["place"] for row in await found.fetchall()}
    return [place in places for place in range(1, len(paths) + 1)]


async def measure(connection: Connection, scope_id: int, path: Names) -> tuple[int, int]:
    """Measure the longest path in a subtree: in characters of its labels, and in levels."""
    found = await connection.execute(QUERIES["deepest"], {"scope_id": scope_id, "path": encode(path)})
    row = await found.fetchone()
    return (row["letters"], row["levels"]) if row else (0, 0)


async def move_subtree(connection: Connection, scope_id: int, path: Names, new_path: Names) -> None:
    """Move a topic and its subtree to another path; an existing topic is merged with it."""
    await ensure(connection, scope_id, [new_path[:-1]] if new_path[:-1] else [])
    parameters = {"scope_id": scope_id, "path": encode(path), "new_path": encode(new_path)}
    await connection.execute(QUERIES["replant"], parameters)


async def name(connection: Connection, scope_id: int, path: Names) -> None:
    """Store the name of a topic as written in its path."""
    await connection.execute(QUERIES["name"], {"scope_id": scope_id, "path": encode(path), "name": path[-1]})


async def read_tree(database: Database, scope_id: int, path: Names = (), only: Filter = EVERYTHING) -> list[TopicNode]:
    """Read a topic with its ancestors and its subtree, or the whole tree; counts follow the filter."""
    parameters = {"scope_id": scope_id, "paths": [encode(above) for above in prefixes(path)], **bind(only)}
    query = sql.SQL(QUERIES["tree"]).format(allowed=list_allowed(only))
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(query, parameters)
    return [to_node(row) for row in await found.fetchall()]


async def read_links(
    database: Database, scope_id: int, path: Names, memory_id: UUID | None, limit: int, only: Filter = EVERYTHING
) -> list[TopicLink]:
    """Read links of a topic that a filter allows, or the links of a memory."""
    asked = {"path": encode(path), "memory_id": memory_id, "limit": limit, "arrow": ARROW, **bind(only)}
    query = sql.SQL(QUERIES["links"]).format(filter=restrict_among(only, Columns("link", id="memory_id")))
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(query, {"scope_id": scope_id, **asked})
    return [to_link(row) for row in await found.fetchall()]


async def read_related(database: Database, scope_id: int, path: Names, limit: int) -> list[RelatedTopic]:
    """Read the topics that a topic's links lead to, strongest first."""
    asked = {"scope_id": scope_id, "path": encode(path), "limit": limit}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["related"], asked)
    rows = await found.fetchall()
    return [RelatedTopic(show_topic(tuple(row["names"])), row["diffusion"], row["links"]) for row in rows]


def to_node(row: DictRow) -> TopicNode:
    """Turn a row into a node of the tree."""
    labels = tuple(row["path"].split("."))
    return TopicNode(labels, row["name"], row["memories"], row["seen"], row["activation"], row["newest_at"])


def to_link(row: DictRow) -> TopicLink:
    """Turn a row into a link."""
    return TopicLink(
        path=show_topic(tuple(row["names"])),
        memory_id=row["memory_id"],
        occurred_at=row["occurred_at"],
        reach=LinkStrength(row["activation"], row["diffusion"], row["independence"]),
        related=tuple(row["related"]),
    )
