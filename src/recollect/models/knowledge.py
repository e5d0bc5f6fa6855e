"""The nouns of what is learned from talk: entities, facts in two times, segments, and what a digest says of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

from recollect.models.memories import Embedding


class EntityType(StrEnum):
    """What sort of thing an entity is."""

    PERSON = "person"
    PLACE = "place"
    ORGANIZATION = "organization"
    PRODUCT = "product"
    SKILL = "skill"
    ACTIVITY = "activity"
    EVENT = "event"
    EMOTION = "emotion"
    THING = "thing"
    OTHER = "other"


class Ending(StrEnum):
    """Why a segment came to its end."""

    TOPIC = "topic"
    IDLE = "idle"
    LENGTH = "length"
    ASKED = "asked"
    """Somebody wanted it closed: the conversation ended, or is read to its end."""


@dataclass(frozen=True, slots=True)
class Span:
    """When something is true in the world: from `valid_at` until just before `invalid_at`."""

    valid_at: datetime | None = None
    """None where nobody said when it began."""
    invalid_at: datetime | None = None
    """None while it lasts, as far as anybody said."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A person, place or thing that facts speak of; unique in its scope by normalised name and type."""

    id: UUID
    name: str
    type: EntityType = EntityType.OTHER
    aliases: tuple[str, ...] = ()
    description: str = ""


FactEnd: TypeAlias = UUID | str
"""What a fact joins: an entity's id, or a name while no entity is found for it."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One version of a fact: true in the world for a span, believed from its making until it is superseded."""

    id: UUID
    """The fact's, the same for all of its versions."""
    subject: FactEnd
    predicate: str
    object: FactEnd
    text: str
    span: Span
    created_at: datetime
    superseded_at: datetime | None = None
    """When we stopped believing this version; None while we believe it."""
    version: int = 1


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation as segmentation sees it."""

    id: UUID
    occurred_at: datetime
    terms: tuple[str, ...]
    characters: int
    embedding: Embedding | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of turns on one topic that has come to its end."""

    turns: tuple[Turn, ...]
    ending: Ending
    similarity: float | None = None
    """How near the turn came that ended it, where another topic did."""


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity as a digest names it, before it is known whether the scope has it already."""

    name: str
    type: EntityType = EntityType.OTHER
    aliases: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact as a digest states it; both ends are names of the digest's mentions."""

    subject: str
    predicate: str
    object: str
    text: str
    span: Span = Span()
    replaces: tuple[int, ...] = ()
    """Which of the facts that were shown it contradicts, by their numbers, counted from 1."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What of a model's digest of a segment can be used; every value is within the bounds of core.digests."""

    summary: str = ""
    label: str = ""
    paths: tuple[tuple[str, ...], ...] = ()
    """Where in the topic tree it may belong, each path from the root down."""
    mentions: tuple[Mention, ...] = ()
    statements: tuple[Statement, ...] = ()
    importance: int | None = None
    keywords: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    """How often something could not be used, by what it was."""
