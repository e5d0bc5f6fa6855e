"""Find, create and read the entities of one scope, and store their names by source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import DictRow

from recollect.core.knowledge.entities import EntityCandidate, MatchMethod, least_alike
from recollect.core.text.names import normalize_name
from recollect.models.knowledge import Entity, EntityOrder, EntityType
from recollect.models.service import Scope
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.memories.embeddings import to_half
from recollect.store.service.scopes import BEGINNING, names

QUERIES = load_queries(__file__)
MAX_SIMILAR = 5
MAX_ALIASES = 32
MAX_RANKED_ENTITIES = 400
"""Maximum number of entities ranked by meaning or by words; hidden ones and other types are removed later."""


@dataclass(frozen=True, slots=True)
class NewEntity:
    """An entity to create unless the scope has one of this name and type."""

    id: UUID
    name: str
    type: EntityType

    @property
    def key(self) -> tuple[str, EntityType]:
        """Return the fields that identify an entity."""
        return normalize_name(self.name), self.type


@dataclass(frozen=True, slots=True)
class EntityName:
    """A name of an entity in one source, and its description there."""

    source_id: UUID
    entity_id: UUID
    name: str
    mentioned_at: datetime
    description: str = ""


async def find_candidates(
    connection: Connection,
    scope_id: int,
    asked: Sequence[str],
    *,
    similar: bool = False,
    without: Sequence[UUID] = (),
) -> list[EntityCandidate]:
    """Find the entities that names may mean: with this exact name, or with a similar one if requested.

    Names in the sources `without` are ignored.
    """
    if not asked:
        return []
    normalised = [normalize_name(name) for name in asked]
    parameters = {
        "scope_id": scope_id,
        "names": normalised,
        "least": [least_alike(name) for name in normalised],
        "most": MAX_SIMILAR if similar else 0,
        "without": list(without),
    }
    found = await connection.execute(QUERIES["candidates"], parameters)
    return [
        EntityCandidate(
            row["number"],
            Entity(row["id"], row["name"], EntityType(row["type"])),
            MatchMethod(row["way"]),
            row["alike"],
        )
        for row in await found.fetchall()
    ]


async def ensure(
    connection: Connection, scope_id: int, new: Sequence[NewEntity], moment: datetime
) -> Mapping[tuple[str, EntityType], UUID]:
    """Create entities that the scope lacks at a time; return all of them by name and type."""
    if not new:
        return {}
    parameters = {
        "scope_id": scope_id,
        "moment": moment,
        "ids": [entity.id for entity in new],
        "names": [entity.name for entity in new],
        "normalised": [normalize_name(entity.name) for entity in new],
        "types": [entity.type.value for entity in new],
    }
    found = await connection.execute(QUERIES["ensure"], parameters)
    return {(row["normalised"], EntityType(row["type"])): row["id"] for row in await found.fetchall()}


async def mention(connection: Connection, scope_id: int, namings: Sequence[EntityName]) -> None:
    """Store the names that sources use for entities, each once per source."""
    if not namings:
        return
    parameters = {
        "scope_id": scope_id,
        "sources": [naming.source_id for naming in namings],
        "entities": [naming.entity_id for naming in namings],
        "normalised": [normalize_name(naming.name) for naming in namings],
        "names": [naming.name for naming in namings],
        "descriptions": [naming.description for naming in namings],
        "moments": [naming.mentioned_at for naming in namings],
    }
    await connection.execute(QUERIES["mention"], parameters)


@dataclass(frozen=True, slots=True)
class EntityQuery:
    """Which entities are asked for."""

    search: str = ""
    """Only entities whose name contains this."""
    type: EntityType | None = None
    as_of: datetime | None = None
    """Merged as at that time, only entities that were known then; None means now."""
    order: EntityOrder | str = EntityOrder.AGE


async def fetch(
    database: Database, scope: Scope, ids: Sequence[UUID], wanted: EntityQuery | None = None
) -> dict[UUID, Entity]:
    """Fetch visible entities, including absorbed ones."""
    asked = write_bounds(wanted or EntityQuery())
    found = await fetch_entities(database, scope, asked | {"ids": list(ids), "cursor": BEGINNING, "limit": len(ids)})
    return {entity.id: entity for entity in found}


async def page(database: Database, scope: Scope, wanted: EntityQuery, cursor: UUID | None, limit: int) -> list[Entity]:
    """Fetch entities after a cursor, oldest first."""
    return await fetch_entities(database, scope, write_bounds(wanted) | {"cursor": cursor or BEGINNING, "limit": limit})


def write_bounds(wanted: EntityQuery) -> dict[str, object]:
    """Convert a query to parameters."""
    return {
        "ids": None,
        "type": wanted.type.value if wanted.type else "",
        "search": normalize_name(wanted.search) if wanted.search else "",
        "as_of": wanted.as_of,
    }


async def rank_by_facts(
    database: Database, scope: Scope, wanted: EntityQuery, cursor: UUID | None, limit: int
) -> dict[UUID, int]:
    """Count the facts of entities, sorted by the number of facts, after a cursor."""
    async with database.reading(scope.tenant_id) as connection:
        asked = {**names(scope), **write_bounds(wanted), "cursor": cursor, "limit": limit}
        found = await connection.execute(QUERIES["by_facts"], asked)
    return {row["id"]: row["facts"] for row in await found.fetchall()}


async def list_near(
    database: Database, scope: Scope, space_id: int, vector: NDArray[np.float32], as_of: datetime | None
) -> list[UUID]:
    """List the entities that are nearest to a vector, nearest first."""
    asked = {"space_id": space_id, "vector": to_half(vector), "as_of": as_of}
    return await list_ids(database, scope, "near", asked)


async def list_worded(database: Database, scope: Scope, terms: Sequence[str], as_of: datetime | None) -> list[UUID]:
    """List the entities whose name or description has most of the given terms."""
    return await list_ids(database, scope, "worded", {"terms": list(terms), "as_of": as_of})


async def list_ids(database: Database, scope: Scope, name: str, asked: Mapping[str, object]) -> list[UUID]:
    """Read the IDs that a query ranks."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES[name], {**names(scope), **asked, "limit": MAX_RANKED_ENTITIES})
    return [row["id"] for row in await found.fetchall()]


async def fetch_entities(database: Database, scope: Scope, bounds: Mapping[str, object]) -> list[Entity]:
    """Read whole entities of a scope."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["read"], {**names(scope), **bounds})
    return [to_entity(row) for row in await found.fetchall()]


def to_entity(row: DictRow) -> Entity:
    """Turn a row into an entity; an alias is a name that differs in more than its spelling."""
    distinct = {normalize_name(row["name"]): row["name"]}
    for name in row["names"]:
        distinct.setdefault(normalize_name(name), name)
    aliases = tuple(distinct.values())[1 : MAX_ALIASES + 1]
    return Entity(
        row["id"], row["name"], EntityType(row["type"]), aliases, row["description"] or "", row.get("merged_into")
    )
