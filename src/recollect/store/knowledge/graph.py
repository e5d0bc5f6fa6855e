"""Walk the graph of facts by hops, and page through all facts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.core.knowledge.graph import FollowedFact
from recollect.models.filters import Filter
from recollect.models.knowledge import Entity, EntityType, Relation
from recollect.models.service import Scope
from recollect.store.database.filter import bind, list_allowed
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.service.scopes import BEGINNING, names

QUERIES = load_queries(__file__)
SCOPE = sql.Identifier("scopes", "id")
NOT_VISIBLE = ["deleted", "to_rederive"]
"""Why a fact is hidden from readers of the graph; whether it is past depends on the times only."""
PAGE = 250
"""Number of facts of an export to read and write at once; other requests wait that long."""


@dataclass(frozen=True, slots=True)
class WalkLimits:
    """The limits of a walk: maximum hops, maximum facts per hop, and a filter."""

    hops: int
    beam: int
    only: Filter


@dataclass(frozen=True, slots=True)
class GraphWalk:
    """The steps of a walk, and the followed facts by the IDs of their memories; nearest first."""

    steps: list[FollowedFact]
    relations: dict[UUID, Relation]


async def walk(
    database: Database, scope: Scope, starts: Sequence[UUID], bounds: WalkLimits
) -> tuple[list[Entity | None], GraphWalk]:
    """Follow facts from entities, in one round trip; entities of other scopes are None."""
    async with database.reading(scope.tenant_id) as connection:
        entities = await ask_entities(connection, scope, starts, bounds.only.as_of)
        steps = await ask_walk(connection, scope, starts, bounds)
    return await read_entities(entities, starts), await read_walk(steps)


async def search_bidirectional(
    database: Database, scope: Scope, ends: tuple[UUID, UUID], bounds: tuple[WalkLimits, WalkLimits]
) -> tuple[list[Entity | None], GraphWalk]:
    """Follow facts from two entities towards each other, in one round trip."""
    async with database.reading(scope.tenant_id) as connection:
        entities = await ask_entities(connection, scope, ends, bounds[0].only.as_of)
        walks = [await ask_walk(connection, scope, [end], each) for end, each in zip(ends, bounds, strict=True)]
    there, back = [await read_walk(each) for each in walks]
    met = GraphWalk([*there.steps, *back.steps], there.relations | back.relations)
    return await read_entities(entities, ends), met


async def ask_entities(
    connection: Connection, scope: Scope, ids: Sequence[UUID], as_of: datetime | None
) -> AsyncCursor[DictRow]:
    """Query the entities that entities were merged into at a time, or themselves."""
    parameters = {**names(scope), "ids": list(ids), "as_of": as_of}
    return await connection.execute(QUERIES["entities"], parameters)


async def read_entities(answer: AsyncCursor[DictRow], ids: Sequence[UUID]) -> list[Entity | None]:
    """Read the result of `ask_entities`, in the requested order."""
    rows = await answer.fetchall()
    found = {row["asked"]: Entity(row["id"], row["name"], EntityType(row["type"])) for row in rows}
    return [found.get(entity_id) for entity_id in ids]


async def ask_walk(
    connection: Connection, scope: Scope, starts: Sequence[UUID], bounds: WalkLimits
) -> AsyncCursor[DictRow]:
    """Query the neighborhood of entities."""
    parameters = {
        **names(scope),
        "starts": list(starts),
        "hops": bounds.hops,
        "beam": bounds.beam,
        "hidden": NOT_VISIBLE,
        **bind(bounds.only),
    }
    return await connection.execute(compose("walk", bounds.only), parameters)


async def read_walk(answer: AsyncCursor[DictRow]) -> GraphWalk:
    """Read the result of `ask_walk`."""
    rows = await answer.fetchall()
    steps = [FollowedFact(row["id"], row["hop"], row["source"], row["target"]) for row in rows]
    return GraphWalk(steps, {relation.memory_id: relation for relation in to_relations(rows)})


async def find_moment(database: Database, scope: Scope, only: Filter) -> Filter | None:
    """Return the filter with the times for all pages of a graph, so that they match; None without a scope."""
    async with database.reading(scope.tenant_id) as connection:
        parameters = {**names(scope), "as_of": only.as_of, "at": only.at}
        answer = await connection.execute(QUERIES["moment"], parameters)
    row = await answer.fetchone()
    return replace(only, as_of=row["as_of"], at=row["at"]) if row else None


async def page_facts(database: Database, scope: Scope, only: Filter) -> AsyncIterator[list[Relation]]:
    """Yield all facts at a time, in order of ID, page by page; no connection is held between pages."""
    bounds = {**names(scope), "hidden": NOT_VISIBLE, "limit": PAGE, **bind(only)}
    query = compose("page_facts", only)
    cursor: UUID | None = BEGINNING
    while cursor is not None:
        async with database.reading(scope.tenant_id) as connection:
            answer = await connection.execute(query, {**bounds, "cursor": cursor})
        rows = await answer.fetchall()
        if rows:
            yield to_relations(rows)
        cursor = rows[-1]["id"] if len(rows) == PAGE else None


def compose(name: str, only: Filter) -> sql.Composed:
    """Write a statement that follows facts; the times of a filter are those of its walk."""
    return sql.SQL(QUERIES[name]).format(allowed=list_allowed(replace(only, as_of=None, at=None), SCOPE))


def to_relations(rows: Sequence[DictRow]) -> list[Relation]:
    """Convert rows to versions of facts with their entities; most entities are in many of them."""
    entities: dict[UUID, Entity] = {}
    for row in rows:
        for end in ("subject", "object"):
            if (entity_id := row[f"{end}_id"]) not in entities:
                entities[entity_id] = Entity(entity_id, row[f"{end}_name"], EntityType(row[f"{end}_type"]))
    return [
        Relation(
            memory_id=row["id"],
            fact_id=row["lineage"],
            version=row["version"],
            subject=entities[row["subject_id"]],
            predicate=row["predicate"],
            object=entities[row["object_id"]],
            text=row["content"],
            valid_at=row["valid_at"],
            invalid_at=row["invalid_at"],
            created_at=row["created_at"],
            superseded_at=row["superseded_at"],
        )
        for row in rows
    ]
