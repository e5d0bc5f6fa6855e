"""The graph: neighbors of an entity, paths between two, and exports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from recollect.core.knowledge.graph import find_leaders, find_paths, is_whole
from recollect.core.knowledge.graph_export import CypherText, GraphmlText, GraphText
from recollect.core.recall.checks import check_filter
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.filters import Filter
from recollect.models.knowledge import Entity, FactPath, GraphFormat, Neighbor, Neighbors, Relation
from recollect.models.service import Scope
from recollect.store.knowledge import graph
from recollect.store.knowledge.graph import WalkLimits
from recollect.verbs.dependencies import Dependencies

MAX_HOPS = 3
MAX_BEAM_WIDTH = 500
MAX_PATH_HOPS = 6
MAX_PATHS = 50
PATH_BEAM = 200
"""Maximum number of facts per hop that a search for paths follows from each end."""
UNKNOWN = "No such entity in this scope."


async def find_neighbors(parts: Dependencies, scope: Scope, entity_id: UUID, bounds: WalkLimits) -> Neighbors:
    """Return the entities that facts connect with one, nearest first, and the followed facts."""
    check_range("hops", bounds.hops, MAX_HOPS)
    check_range("beam", bounds.beam, MAX_BEAM_WIDTH)
    check_filter(bounds.only)
    [entity], walked = await graph.walk(parts.database, scope, [entity_id], bounds)
    if entity is None:
        raise NotFoundError(UNKNOWN)
    found = find_leaders([entity.id], walked.steps)
    reached = (
        Neighbor(end_of(walked.relations[step.memory_id], target), step.hop, step.memory_id)
        for target, step in found.items()
    )
    whole = is_whole([entity.id], walked.steps, bounds.beam)
    return Neighbors(entity, tuple(reached), tuple(walked.relations.values()), whole)


async def list_paths(
    parts: Dependencies, scope: Scope, ends: tuple[UUID, UUID], hops: int, limit: int, only: Filter
) -> list[FactPath]:
    """Return the paths between two entities, shortest first."""
    check_range("hops", hops, MAX_PATH_HOPS)
    check_range("limit", limit, MAX_PATHS)
    check_filter(only)
    bounds = WalkLimits((hops + 1) // 2, PATH_BEAM, only), WalkLimits(hops // 2, PATH_BEAM, only)
    entities, walked = await graph.search_bidirectional(parts.database, scope, ends, bounds)
    reached = [entity.id for entity in entities if entity is not None]
    if len(reached) < len(ends):
        raise NotFoundError(UNKNOWN)
    start, end = reached
    if start == end:
        raise InvalidInputError("start and end must be different entities")
    found = find_paths(walked.steps, start, end, hops, limit)
    relations = [[walked.relations[step.memory_id] for step in path] for path in found]
    return [to_path(start, path) for path in relations]


async def export(parts: Dependencies, scope: Scope, written: GraphFormat, only: Filter) -> AsyncIterator[str]:
    """Export the facts of one time within a filter, and their entities, as text in pieces."""
    check_filter(only)
    text: GraphText = GraphmlText() if written is GraphFormat.GRAPHML else CypherText()
    moment = await graph.find_moment(parts.database, scope, only)
    yield text.begin()
    if moment is not None:
        async for page in graph.page_facts(parts.database, scope, moment):
            yield text.write_page(page)
    yield text.write_end()


def end_of(relation: Relation, entity_id: UUID) -> Entity:
    """Return the end of a fact with a given ID."""
    return relation.object if relation.object.id == entity_id else relation.subject


def to_path(start: UUID, relations: list[Relation]) -> FactPath:
    """List the entities of a path, from its start."""
    entities = [end_of(relations[0], start)]
    for relation in relations:
        here = entities[-1].id
        entities.append(relation.object if relation.subject.id == here else relation.subject)
    return FactPath(tuple(entities), tuple(relations))


def check_range(field: str, value: int, most: int) -> None:
    """Refuse an invalid limit of a walk."""
    if not 1 <= value <= most:
        raise InvalidInputError(f"{field} must be between 1 and {most}")
