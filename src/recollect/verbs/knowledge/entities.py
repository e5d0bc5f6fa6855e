"""Read entities: by their IDs, a page by age, or the nearest to a text by meaning or by words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from recollect.core.recall.checks import check_filter
from recollect.core.text.checks import check_limit, check_line
from recollect.core.text.terms import analyse_cue
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.filters import Filter
from recollect.models.knowledge import Entity, EntityOrder, EntityPage
from recollect.models.recall import Cue
from recollect.models.service import Scope
from recollect.store.knowledge import entities
from recollect.store.knowledge.entities import EntityQuery
from recollect.store.service.scopes import ScopeHandle
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recall.recall import find_vectors

NO_ENTITY = "No such entity in this scope."
MAX_IDS = 200
BY_TEXT = (EntityOrder.MEANING, EntityOrder.WORDS)
"""Orders by similarity to the searched text."""


async def list_entities(
    parts: Dependencies, scope: Scope, wanted: EntityQuery, cursor: UUID | None = None, limit: int = 50
) -> EntityPage:
    """Fetch one page of entities, in the order in which they were first mentioned."""
    check_limit(limit)
    check_line("search", wanted.search)
    check_filter(Filter(as_of=wanted.as_of))
    found = await entities.page(parts.database, scope, wanted, cursor, limit + 1)
    return EntityPage(tuple(found[:limit]), found[limit - 1].id if len(found) > limit else None)


async def list_by_ids(
    parts: Dependencies, scope: Scope, ids: Sequence[UUID], wanted: EntityQuery, cursor: UUID | None = None
) -> EntityPage:
    """Fetch entities by their IDs, in this order; unknown ones are omitted."""
    if wanted != EntityQuery(as_of=wanted.as_of) or cursor is not None:
        raise InvalidInputError("ids exclude search, type, order and cursor")
    if len(ids) > MAX_IDS:
        raise InvalidInputError(f"ids must have at most {MAX_IDS} items")
    check_filter(Filter(as_of=wanted.as_of))
    found = await entities.fetch(parts.database, scope, ids, wanted)
    return EntityPage(tuple(found[each] for each in dict.fromkeys(ids) if each in found))


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
    """Fetch the entities most similar to the searched text; by words if the embedder fails or is late."""
    check_limit(limit)
    check_line("search", wanted.search)
    check_filter(Filter(as_of=wanted.as_of))
    order, ids = EntityOrder.MEANING, list[UUID]()
    if wanted.order == EntityOrder.MEANING:
        [(vector, _)] = await find_vectors(parts, [Cue(wanted.search)], place)
        if vector is not None and place.space is not None:
            ids = await entities.list_near(parts.database, scope, place.space.id, vector, wanted.as_of)
    if not ids:
        order = EntityOrder.WORDS
        ids = await entities.list_worded(parts.database, scope, analyse_cue(wanted.search), wanted.as_of)
    found = await entities.fetch(parts.database, scope, ids, replace(wanted, search="")) if ids else {}
    nearest = [found[each] for each in ids if each in found]
    return EntityPage(tuple(nearest[:limit]), ordered_by=order)


def check_order(wanted: EntityQuery, cursor: UUID | None) -> None:
    """Refuse an unknown order, and arguments that an order does not take."""
    if wanted.order not in tuple(EntityOrder):
        raise InvalidInputError(f"order must be one of {', '.join(EntityOrder)}")
    if wanted.order in BY_TEXT and (cursor is not None or not wanted.search):
        raise InvalidInputError(f"order {wanted.order} needs search, and has one page: omit the cursor")
    if wanted.order == EntityOrder.FACTS and wanted.as_of is not None:
        raise InvalidInputError("order facts counts present facts: omit as_of")


async def get_entity(parts: Dependencies, scope: Scope, entity_id: UUID) -> Entity:
    """Fetch one entity with all its names, and its newest description."""
    found = await entities.fetch(parts.database, scope, [entity_id])
    if entity_id not in found:
        raise NotFoundError(NO_ENTITY)
    return found[entity_id]
