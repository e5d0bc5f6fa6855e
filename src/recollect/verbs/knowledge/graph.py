"""The graph: neighbours of an entity, paths between two, the timeline of one, and exports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

from recollect.core.knowledge.graph import find_leaders, find_paths, is_whole
from recollect.core.knowledge.graph_export import CypherText, GraphmlText, GraphText
from recollect.core.recall.checks import check_filter
from recollect.core.text.checks import check_limit
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.knowledge import Entity, FactPath, GraphFormat, Neighbour, Neighbourhood, Relation, Timeline
from recollect.models.recall import Filter
from recollect.models.service import Scope
from recollect.store.knowledge import graph
from recollect.store.knowledge.graph import WalkLimits
from recollect.store.service.scopes import BEGINNING
from recollect.verbs.parts import Parts

MOST_HOPS = 3
MOST_BEAM = 500
MOST_PATH_HOPS = 6
MOST_PATHS = 50
PATH_BEAM = 200
"""How many facts a search for paths follows per hop, from either end."""
UNKNOWN = "There is no such entity in this scope."


async def neighbours(parts: Parts, scope: Scope, entity_id: UUID, bounds: WalkLimits) -> Neighbourhood:
    """Return which entities facts lead to from one, nearest first, and the facts that were followed."""
    check_range("hops", bounds.hops, MOST_HOPS)
    check_range("beam", bounds.beam, MOST_BEAM)
    check_filter(bounds.only)
    [entity], walked = await graph.walk(parts.database, scope, [entity_id], bounds)
    if entity is None:
        raise NotFoundError(UNKNOWN)
    found = find_leaders([entity.id], walked.steps)
    reached = (
        Neighbour(end_of(walked.relations[step.memory_id], target), step.hop, step.memory_id)
        for target, step in found.items()
    )
    whole = is_whole([entity.id], walked.steps, bounds.beam)
    return Neighbourhood(entity, tuple(reached), tuple(walked.relations.values()), whole)


async def connections(
    parts: Parts, scope: Scope, ends: tuple[UUID, UUID], hops: int, limit: int, only: Filter
) -> list[FactPath]:
    """Return how two entities are connected, the shortest path first."""
    check_range("hops", hops, MOST_PATH_HOPS)
    check_range("limit", limit, MOST_PATHS)
    check_filter(only)
    bounds = WalkLimits((hops + 1) // 2, PATH_BEAM, only), WalkLimits(hops // 2, PATH_BEAM, only)
    entities, walked = await graph.meet(parts.database, scope, ends, bounds)
    reached = [entity.id for entity in entities if entity is not None]
    if len(reached) < len(ends):
        raise NotFoundError(UNKNOWN)
    start, end = reached
    if start == end:
        raise InvalidInputError("start and end must be two entities")
    found = find_paths(walked.steps, start, end, hops, limit)
    relations = [[walked.relations[step.memory_id] for step in path] for path in found]
    return [to_path(start, path) for path in relations]


async def timeline(
    parts: Parts, scope: Scope, entity_id: UUID, as_of: datetime | None, cursor: str, limit: int
) -> Timeline:
    """Fetch one page of all versions of the facts about an entity, ordered by when they are true."""
    check_limit(limit)
    check_filter(Filter(as_of=as_of))
    after = read_cursor(cursor)
    entity, rows = await graph.read_timeline(parts.database, scope, entity_id, as_of, after, limit + 1)
    if entity is None:
        raise NotFoundError(UNKNOWN)
    return Timeline(tuple(rows[:limit]), write_cursor(rows[limit - 1]) if len(rows) > limit else "")


async def export(parts: Parts, scope: Scope, written: GraphFormat, only: Filter) -> AsyncIterator[str]:
    """Export the facts of one moment within a filter and their entities as text, piece by piece."""
    check_filter(only)
    text: GraphText = GraphmlText() if written is GraphFormat.GRAPHML else CypherText()
    moment = await graph.find_moment(parts.database, scope, only)
    yield text.begin()
    if moment is not None:
        async for page in graph.page_facts(parts.database, scope, moment):
            yield text.add(page)
    yield text.end()


def end_of(relation: Relation, entity_id: UUID) -> Entity:
    """Return the end of a fact that has an id."""
    return relation.object if relation.object.id == entity_id else relation.subject


def to_path(start: UUID, relations: list[Relation]) -> FactPath:
    """List the entities of a path, from its start on."""
    entities = [end_of(relations[0], start)]
    for relation in relations:
        here = entities[-1].id
        entities.append(relation.object if relation.subject.id == here else relation.subject)
    return FactPath(tuple(entities), tuple(relations))


def check_range(field: str, value: int, most: int) -> None:
    """Refuse an invalid limit of a walk."""
    if not 1 <= value <= most:
        raise InvalidInputError(f"{field} must be between 1 and {most}")


def write_cursor(last: Relation) -> str:
    """Write where the next page begins, in characters that are safe in a URL."""
    since = last.valid_at.astimezone(UTC).isoformat().replace("+00:00", "Z") if last.valid_at else ""
    return f"{since}_{last.memory_id}"


def read_cursor(cursor: str) -> tuple[datetime | None, UUID]:
    """Read where a page begins."""
    if not cursor:
        return None, BEGINNING
    since, _, last = cursor.partition("_")
    try:
        return datetime.fromisoformat(since).astimezone(UTC) if since else None, UUID(last)
    except (ValueError, OverflowError):
        raise InvalidInputError("cursor must be the next_cursor of the page before") from None
