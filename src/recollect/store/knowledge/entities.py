"""Find, make and read the entities of one scope, and store their names by source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow

from recollect.core.knowledge.entities import EntityCandidate, Way, least_alike
from recollect.core.text.names import normalise_name
from recollect.models.knowledge import Entity, EntityType
from recollect.models.service import Scope
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.service.scopes import BEGINNING, names

QUERIES = load_queries(__file__)
MOST_ALIKE = 5
MOST_ALIASES = 32


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
    connection: Connection, scope_id: int, new: Sequence[NewEntity]
) -> Mapping[tuple[str, EntityType], UUID]:
    """Make the entities that the scope does not have yet; return all of them by name and type."""
    if not new:
        return {}
    parameters = {
        "scope_id": scope_id,
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


async def fetch_known(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> dict[UUID, Entity]:
    """Fetch names and types of entities; ids of other scopes are absent."""
    if not ids:
        return {}
    found = await connection.execute(QUERIES["known"], {"scope_id": scope_id, "ids": list(ids)})
    return {row["id"]: Entity(row["id"], row["name"], EntityType(row["type"])) for row in await found.fetchall()}


async def fetch(database: Database, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, Entity]:
    """Fetch whole entities that are visible."""
    bounds = {"ids": list(ids), "cursor": BEGINNING, "type": "", "search": "", "limit": len(ids)}
    return {entity.id: entity for entity in await read(database, scope, bounds)}


async def page(
    database: Database, scope: Scope, search: str, kind: EntityType | None, cursor: UUID | None, limit: int
) -> list[Entity]:
    """Fetch entities after a cursor, oldest first; those whose names contain something, and of one type, if asked."""
    bounds = {
        "ids": None,
        "cursor": cursor or BEGINNING,
        "type": kind.value if kind else "",
        "search": normalise_name(search) if search else "",
        "limit": limit,
    }
    return await read(database, scope, bounds)


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
    return Entity(row["id"], row["name"], EntityType(row["type"]), aliases, row["description"] or "")
