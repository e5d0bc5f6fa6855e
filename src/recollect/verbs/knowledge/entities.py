"""Read entities: one, a page by age, or the nearest to a text by meaning or by words."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.core.recall.checks import check_filter
from recollect.core.text.checks import check_limit, check_line
from recollect.core.text.terms import analyse_cue
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.knowledge import Entity, EntityOrder, EntityPage
from recollect.models.recall import Cue, Filter
from recollect.models.service import Scope
from recollect.store.knowledge import entities
from recollect.store.knowledge.entities import EntityQuery
from recollect.store.service.scopes import ScopeHandle
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recall.recall import find_vectors

NO_ENTITY = "No such entity in this scope."


async def list_entities(
    parts: Dependencies, scope: Scope, wanted: EntityQuery, cursor: UUID | None = None, limit: int = 50
) -> EntityPage:
    """Fetch one page of entities, in the order in which they were first mentioned."""
    check_limit(limit)
    check_line("search", wanted.search)
    check_filter(Filter(as_of=wanted.as_of))
    found = await entities.page(parts.database, scope, wanted, cursor, limit + 1)
    return EntityPage(tuple(found[:limit]), found[limit - 1].id if len(found) > limit else None)


async def list_by_facts(
    parts: Dependencies, scope: Scope, wanted: EntityQuery, cursor: UUID | None = None, limit: int = 50
) -> EntityPage:
    """Fetch one page of entities, sorted by their number of facts, with these numbers."""
    check_limit(limit)
    check_line("search", wanted.search)
    ranked = await entities.rank_by_facts(parts.database, scope, wanted, cursor, limit + 1)
    ids = [*ranked][:limit]
    found = await entities.fetch(parts.database, scope, ids) if ids else {}
    listed = tuple(replace(found[each], facts=ranked[each]) for each in ids if each in found)
    return EntityPage(listed, ids[-1] if len(ranked) > limit else None, EntityOrder.FACTS)


async def list_nearest(
    parts: Dependencies, scope: Scope, place: ScopeHandle, wanted: EntityQuery, limit: int = 50
) -> EntityPage:
    """Fetch the entities nearest in meaning to a text; by words if the embedder fails or is late."""
    check_limit(limit)
    check_line("meaning", wanted.meaning)
    check_line("search", wanted.search)
    check_filter(Filter(as_of=wanted.as_of))
    [(vector, _)] = await find_vectors(parts, [Cue(wanted.meaning)], place)
    order = EntityOrder.WORDS
    ids: list[UUID] = []
    if vector is not None and place.space is not None:
        order = EntityOrder.MEANING
        ids = await entities.list_near(parts.database, scope, place.space.id, vector, wanted.as_of)
    if not ids:
        order = EntityOrder.WORDS
        ids = await entities.list_worded(parts.database, scope, analyse_cue(wanted.meaning), wanted.as_of)
    found = await entities.fetch(parts.database, scope, ids, wanted) if ids else {}
    nearest = [found[each] for each in ids if each in found]
    return EntityPage(tuple(nearest[:limit]), ordered_by=order)


def check_cursor(meaning: str, cursor: UUID | None) -> None:
    """Refuse a cursor if the result has only one page."""
    if meaning and cursor is not None:
        raise InvalidInputError("results ordered by meaning have one page: omit the cursor")


async def get_entity(parts: Dependencies, scope: Scope, entity_id: UUID, as_of: datetime | None = None) -> Entity:
    """Fetch one entity with all its names, and its newest description."""
    check_filter(Filter(as_of=as_of))
    found = await entities.fetch(parts.database, scope, [entity_id], EntityQuery(as_of=as_of))
    if entity_id not in found:
        raise NotFoundError(NO_ENTITY)
    return found[entity_id]
