"""Values of knowledge: entities, facts in two times, their graph, and runs over history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias
from uuid import UUID

from recollect.models.memories import Embedding

AnyTime: TypeAlias = Literal["any"]
"""Whenever it was true, and whatever was believed."""


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
    """A caller asked for it: the conversation ended, or is read to its end."""


class SegmentState(StrEnum):
    """How far a segment has come."""

    CLOSED = "closed"
    """It waits for what can be learned from it."""
    ENRICHED = "enriched"
    FAILED = "failed"
    """No model could extract anything; it has a summary of its own sentences."""


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
    merged_into: UUID | None = None
    """The entity that has absorbed it and has its facts; None for one that stands for itself."""
    facts: int | None = field(default=None, compare=False)
    """How many facts that are believed and not over speak of it; only set where entities are listed by that."""


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
    memory_id: UUID | None = None
    """The memory that this version is, where it was read from the store."""
    subject_name: str = ""
    object_name: str = ""


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact as a caller states it, before it is known whether it is a new one."""

    subject: FactEnd
    """A name, or the id of an entity."""
    predicate: str
    object: FactEnd
    text: str = ""
    """The fact in one sentence; subject, predicate and object one after the other if left out."""
    subject_type: EntityType | None = None
    """None = any type of that name; a new entity gets the type `other`."""
    object_type: EntityType | None = None
    valid_at: datetime | None = None
    """From when it is true; if left out, from `occurred_at` on, unless it was over by then."""
    invalid_at: datetime | None = None
    occurred_at: datetime | None = None
    """When it was said; now if None."""
    replaces: tuple[UUID, ...] = ()
    """The facts that it contradicts, by the id of the fact or of any version of it."""
    evidence: tuple[UUID, ...] = ()
    importance: float | None = None
    """1 (mundane) to 10 (life-changing); what the rules say if None."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One page of facts in the order in which they were written, and where the next one begins."""

    facts: tuple[Fact, ...]
    next_cursor: UUID | None = None


class EntityOrder(StrEnum):
    """In which order entities are listed."""

    AGE = "age"
    """As they were first spoken of."""
    MEANING = "meaning"
    """The nearest to a text first."""
    WORDS = "words"
    """Those first that have most words of the text, because no vector could be compared."""
    FACTS = "facts"
    """Those first that most facts speak of."""


@dataclass(frozen=True, slots=True)
class Entities:
    """One page of entities, and where the next one begins."""

    entities: tuple[Entity, ...]
    next_cursor: UUID | None = None
    ordered_by: EntityOrder = EntityOrder.AGE


class MergeReason(StrEnum):
    """Why two entities may be one, the strongest reason first."""

    NAME = "name"
    """They have the same name, or one is also called as the other."""
    SPELLING = "spelling"
    MEANING = "meaning"
    """Names and descriptions are near in meaning."""


@dataclass(frozen=True, slots=True)
class MergeProposal:
    """Two entities that may be one; whoever accepts it merges them."""

    kept: Entity
    """The one that was spoken of first."""
    absorbed: Entity
    reason: MergeReason
    alike: float
    """How much, from 0 to 1."""
    confirmed: bool | None = None
    """Whether the chat model is sure that they are one; None where it was not asked."""


@dataclass(frozen=True, slots=True)
class MergeProposals:
    """Proposals for one page of entities, the likeliest first, and where the next page begins."""

    proposals: tuple[MergeProposal, ...]
    next_cursor: UUID | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation as segmentation sees it."""

    id: UUID
    occurred_at: datetime
    terms: tuple[str, ...]
    characters: int
    embedding: Embedding | None = None
    opens: bool = True
    """Whether a segment may begin with it: an answer belongs to what it answers."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of turns on one topic that has come to its end."""

    turns: tuple[Turn, ...]
    ending: Ending
    similarity: float | None = None
    """How alike its last turns and the next ones are, where a change of topic ended it."""


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment of a conversation as it is kept: from which message to which, why it ended, and what became of it."""

    id: UUID
    conversation: str
    first_number: int
    last_number: int
    ending: Ending
    similarity: float | None
    """How alike its last turns and the next ones are, where a change of topic ended it."""
    label: str
    state: SegmentState
    reason: str
    """Why it failed, if it did."""
    closed_at: datetime
    enriched_at: datetime | None = None
    summary_id: UUID | None = None
    """The memory that sums it up."""


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity as an extraction names it, before it is known whether the scope has it already."""

    name: str
    type: EntityType = EntityType.OTHER
    aliases: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact as an extraction states it; both ends are names of the extraction's mentions."""

    subject: str
    predicate: str
    object: str
    text: str
    span: Span = Span()
    replaces: tuple[int, ...] = ()
    """Which of the facts that were shown it contradicts, by their numbers, counted from 1."""


@dataclass(frozen=True, slots=True)
class ParsedExtraction:
    """What of a model's extraction of a segment can be used; every value is within the bounds of core.extractions."""

    summary: str = ""
    label: str = ""
    paths: tuple[tuple[str, ...], ...] = ()
    """Where in the topic tree it may belong, each path from the root down."""
    mentions: tuple[Mention, ...] = ()
    statements: tuple[Statement, ...] = ()
    importance: int | None = None
    rated: Mapping[int, int] | None = None
    """How important single messages are, by the numbers of their lines; None where nothing was said of that."""
    keywords: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    """How often something could not be used, by what it was."""


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


@dataclass(frozen=True, slots=True)
class Rerun:
    """Which history is to be read again, and by which model."""

    agent: str = ""
    """Empty for all scopes of the tenant."""
    user: str | None = None
    """None for all scopes of the agent."""
    since: datetime | None = None
    """Only segments in which something was said at this moment or after it."""
    model: str = ""
    """Empty for the configured one; else another one of the same endpoint."""
    ignore_budget: bool = False
    """Whether to go on although the tokens of the day are used up."""
    tenant: str = "default"


@dataclass(frozen=True, slots=True)
class Cost:
    """How often a model is asked, and what that comes to."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    price: float | None = None
    """None where the model has no price."""


@dataclass(frozen=True, slots=True)
class RerunPlan:
    """The estimated cost of reading one scope's history again."""

    agent: str
    user: str
    segments: int
    messages: int
    cost: Cost
    """For what is still to be asked: answers of an unfinished run are not asked for again."""


@dataclass(frozen=True, slots=True)
class Reread:
    """The result of reading one scope's history again."""

    agent: str
    user: str
    segments: int
    """How many use the new reading now."""
    left: int
    """How many keep the old one: nothing could be extracted, or they were changed meanwhile."""
    replaced: int
    """How many believed facts were superseded."""
    cost: Cost
    """As the ledger has it, since this reading was begun or resumed."""
