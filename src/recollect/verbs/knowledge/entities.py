"""Read entities: one, or a page of them by age, or the nearest to a text by meaning or by words."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.core.recall.checks import check_filter
from recollect.core.text.checks import check_limit, check_line
from recollect.core.text.terms import analyse_cue
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.knowledge import Entities, Entity, EntityOrder
from recollect.models.recall import Cue, Filter
from recollect.models.service import Scope
from recollect.store.knowledge import entities
from recollect.store.knowledge.entities import EntityQuery
from recollect.store.service.scopes import Place
from recollect.verbs.parts import Parts
from recollect.verbs.recall.recall import find_vectors

NO_ENTITY = "There is no such entity in this scope."


async def list_entities(
    parts: Parts, scope: Scope, wanted: EntityQuery, cursor: UUID | None = None, limit: int = 50
) -> Entities:
    """Fetch one page of entities, in the order in which they were first mentioned."""
    check_limit(limit)
    check_line("search", wanted.search)
    check_filter(Filter(as_of=wanted.as_of))
    found = await entities.page(parts.database, scope, wanted, cursor, limit + 1)
    return Entities(tuple(found[:limit]), found[limit - 1].id if len(found) > limit else None)


async def list_by_facts(
    parts: Parts, scope: Scope, wanted: EntityQuery, cursor: UUID | None = None, limit: int = 50
) -> Entities:
    """Fetch one page of entities, those first that most facts speak of, each with how many that are."""
    check_limit(limit)
    check_line("search", wanted.search)
    ranked = await entities.rank_by_facts(parts.database, scope, wanted, cursor, limit + 1)
    ids = [*ranked][:limit]
    found = await entities.fetch(parts.database, scope, ids) if ids else {}
    listed = tuple(replace(found[each], facts=ranked[each]) for each in ids if each in found)
    return Entities(listed, ids[-1] if len(ranked) > limit else None, EntityOrder.FACTS)


async def list_nearest(parts: Parts, scope: Scope, place: Place, wanted: EntityQuery, limit: int = 50) -> Entities:
    """Fetch the entities nearest in meaning to a text; by words where the embedder does not read it in time."""
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
    return Entities(tuple(nearest[:limit]), ordered_by=order)


def check_cursor(meaning: str, cursor: UUID | None) -> None:
    """Refuse a cursor where there are no pages."""
    if meaning and cursor is not None:
        raise InvalidInputError("what is ordered by meaning has one page: give no cursor")


async def get_entity(parts: Parts, scope: Scope, entity_id: UUID, as_of: datetime | None = None) -> Entity:
    """Fetch one entity with all its names, and its newest description."""
    check_filter(Filter(as_of=as_of))
    found = await entities.fetch(parts.database, scope, [entity_id], EntityQuery(as_of=as_of))
    if entity_id not in found:
        raise NotFoundError(NO_ENTITY)
    return found[entity_id]
