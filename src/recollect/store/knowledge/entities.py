"""Find, make and read the entities of one scope, and store their names by source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import DictRow

from recollect.core.knowledge.entities import EntityCandidate, Way, least_alike
from recollect.core.text.names import normalise_name
from recollect.models.knowledge import Entity, EntityType
from recollect.models.service import Scope
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.memories.embeddings import to_half
from recollect.store.service.scopes import BEGINNING, names

QUERIES = load_queries(__file__)
MOST_ALIKE = 5
MOST_ALIASES = 32
MOST_RANKED = 400
"""So many are ranked by meaning or by words; of these, those that are in sight and of the type are shown."""


@dataclass(frozen=True, slots=True)
class NewEntity:
    """An entity to be made unless the scope has one of this name and type."""

    id: UUID
    name: str
    type: EntityType

    @property
    def key(self) -> tuple[str, EntityType]:
        """Return what an entity is unique by."""
        return normalise_name(self.name), self.type


@dataclass(frozen=True, slots=True)
class Naming:
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
    """Find for all names at once who may be meant: exactly so called, or, if asked for, much alike.

    What the sources `without` called anybody is left aside.
    """
    if not asked:
        return []
    normalised = [normalise_name(name) for name in asked]
    parameters = {
        "scope_id": scope_id,
        "names": normalised,
        "least": [least_alike(name) for name in normalised],
        "most": MOST_ALIKE if similar else 0,
        "without": list(without),
    }
    found = await connection.execute(QUERIES["candidates"], parameters)
    return [
        EntityCandidate(
            row["number"], Entity(row["id"], row["name"], EntityType(row["type"])), Way(row["way"]), row["alike"]
        )
        for row in await found.fetchall()
    ]


async def ensure(
    connection: Connection, scope_id: int, new: Sequence[NewEntity], moment: datetime
) -> Mapping[tuple[str, EntityType], UUID]:
    """Make the entities that the scope does not have yet at a moment; return all of them by name and type."""
    if not new:
        return {}
    parameters = {
        "scope_id": scope_id,
        "moment": moment,
        "ids": [entity.id for entity in new],
        "names": [entity.name for entity in new],
        "normalised": [normalise_name(entity.name) for entity in new],
        "types": [entity.type.value for entity in new],
    }
    found = await connection.execute(QUERIES["ensure"], parameters)
    return {(row["normalised"], EntityType(row["type"])): row["id"] for row in await found.fetchall()}


async def mention(connection: Connection, scope_id: int, namings: Sequence[Naming]) -> None:
    """Store the names that sources use for entities, each once per source."""
    if not namings:
        return
    parameters = {
        "scope_id": scope_id,
        "sources": [naming.source_id for naming in namings],
        "entities": [naming.entity_id for naming in namings],
        "normalised": [normalise_name(naming.name) for naming in namings],
        "names": [naming.name for naming in namings],
        "descriptions": [naming.description for naming in namings],
        "moments": [naming.mentioned_at for naming in namings],
    }
    await connection.execute(QUERIES["mention"], parameters)


@dataclass(frozen=True, slots=True)
class EntityQuery:
    """Which entities are asked for."""

    search: str = ""
    """Only those with this in one of their names."""
    type: EntityType | None = None
    as_of: datetime | None = None
    """As they were merged then, of those that were known then; now if None."""
    meaning: str = ""
    """The nearest to this first."""


async def fetch(
    database: Database, scope: Scope, ids: Sequence[UUID], wanted: EntityQuery | None = None
) -> dict[UUID, Entity]:
    """Fetch whole entities that are visible, also those that others have absorbed."""
    asked = write_bounds(wanted or EntityQuery())
    found = await read(database, scope, asked | {"ids": list(ids), "cursor": BEGINNING, "limit": len(ids)})
    return {entity.id: entity for entity in found}


async def page(database: Database, scope: Scope, wanted: EntityQuery, cursor: UUID | None, limit: int) -> list[Entity]:
    """Fetch entities after a cursor, oldest first."""
    return await read(database, scope, write_bounds(wanted) | {"cursor": cursor or BEGINNING, "limit": limit})


def write_bounds(wanted: EntityQuery) -> dict[str, object]:
    """Write what is asked for as parameters."""
    return {
        "ids": None,
        "type": wanted.type.value if wanted.type else "",
        "search": normalise_name(wanted.search) if wanted.search else "",
        "as_of": wanted.as_of,
    }


async def rank_by_facts(
    database: Database, scope: Scope, wanted: EntityQuery, cursor: UUID | None, limit: int
) -> dict[UUID, int]:
    """Count the facts of entities, those first that have most, behind a cursor."""
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
    """List the entities that have most of some terms in a name or a description."""
    return await list_ids(database, scope, "worded", {"terms": list(terms), "as_of": as_of})


async def list_ids(database: Database, scope: Scope, name: str, asked: Mapping[str, object]) -> list[UUID]:
    """Read the ids that a query ranks."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES[name], {**names(scope), **asked, "limit": MOST_RANKED})
    return [row["id"] for row in await found.fetchall()]


async def read(database: Database, scope: Scope, bounds: Mapping[str, object]) -> list[Entity]:
    """Read whole entities of a scope."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["read"], {**names(scope), **bounds})
    return [to_entity(row) for row in await found.fetchall()]


def to_entity(row: DictRow) -> Entity:
    """Turn a row into an entity; an alias is a name that differs in more than its spelling."""
    distinct = {normalise_name(row["name"]): row["name"]}
    for name in row["names"]:
        distinct.setdefault(normalise_name(name), name)
    aliases = tuple(distinct.values())[1 : MOST_ALIASES + 1]
    return Entity(
        row["id"], row["name"], EntityType(row["type"]), aliases, row["description"] or "", row.get("merged_into")
    )
