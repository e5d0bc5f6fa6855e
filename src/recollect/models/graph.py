"""The nouns of the graph: facts with the entities they join, and what a walk along them finds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.models.knowledge import Entity


class GraphFormat(StrEnum):
    """How a graph is written down for other programs."""

    GRAPHML = "graphml"
    """XML, as graph editors and libraries read it."""
    CYPHER = "cypher"
    """Statements with parameters, as graph databases run them."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One version of a fact together with the two entities that it joins."""

    memory_id: UUID
    """The version's own."""
    fact_id: UUID
    """The fact's, the same for all of its versions."""
    version: int
    subject: Entity
    predicate: str
    object: Entity
    text: str
    valid_at: datetime | None
    invalid_at: datetime | None
    created_at: datetime
    superseded_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An entity that facts lead to."""

    entity: Entity
    depth: int
    """How many facts lie between it and the beginning."""
    led_by: UUID
    """The newest fact that led here from one hop nearer, by the id of its memory."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What lies around an entity, nearest first."""

    entity: Entity
    neighbours: tuple[Neighbour, ...]
    relations: tuple[Relation, ...]
    """Every fact that was followed, once; also those that led nowhere new."""
    whole: bool
    """True if nothing within so many hops was left out for being too much."""


@dataclass(frozen=True, slots=True)
class FactPath:
    """A way from one entity to another along facts that meets no entity twice."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    """One less than entities: of several facts between two entities the newest."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """One page of all versions of the facts about an entity, in the order of the world."""

    relations: tuple[Relation, ...]
    next_cursor: str = ""
    """Where the next page begins; empty on the last one."""
