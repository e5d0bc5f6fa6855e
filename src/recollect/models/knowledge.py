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
"""All times: whenever facts were true or believed."""


class EntityType(StrEnum):
    """Type of an entity."""

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


class SegmentEnd(StrEnum):
    """Why a segment ended."""

    TOPIC = "topic"
    IDLE = "idle"
    LENGTH = "length"
    ASKED = "asked"
    """Requested by a caller: the conversation ended, or is processed to its end."""


class SegmentState(StrEnum):
    """Processing state of a segment."""

    CLOSED = "closed"
    """It waits for enrichment."""
    ENRICHED = "enriched"
    FAILED = "failed"
    """No model could extract anything; its summary consists of sentences from the segment."""


@dataclass(frozen=True, slots=True)
class ValidTime:
    """When something is true in the world: from `valid_at` until just before `invalid_at`."""

    valid_at: datetime | None = None
    """None if the start is unknown."""
    invalid_at: datetime | None = None
    """None if no end is known."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A person, place or thing that facts are about; unique in its scope by normalized name and type."""

    id: UUID
    name: str
    type: EntityType = EntityType.OTHER
    aliases: tuple[str, ...] = ()
    description: str = ""
    merged_into: UUID | None = None
    """The entity that absorbed it and has its facts; None if it was not merged."""
    facts: int | None = field(default=None, compare=False)
    """Number of present facts about it; only set in lists sorted by this number."""


FactEnd: TypeAlias = UUID | str
"""An end of a fact: an entity's ID, or a name if no entity is assigned yet."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One version of a fact: true in the world for a span, and believed until it is superseded."""

    id: UUID
    """The ID of the fact, equal for all of its versions."""
    subject: FactEnd
    predicate: str
    object: FactEnd
    text: str
    span: ValidTime
    created_at: datetime
    superseded_at: datetime | None = None
    """When this version was no longer believed; None while it is believed."""
    version: int = 1
    memory_id: UUID | None = None
    """The memory of this version, if it was read from the store."""
    subject_name: str = ""
    object_name: str = ""


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact stated by a caller, which may be known already."""

    subject: FactEnd
    """A name, or the ID of an entity."""
    predicate: str
    object: FactEnd
    text: str = ""
    """The fact in one sentence; if empty, subject, predicate and object are joined."""
    subject_type: EntityType | None = None
    """None = any type of that name; a new entity gets the type `other`."""
    object_type: EntityType | None = None
    valid_at: datetime | None = None
    """When it became true; if None, at `occurred_at`, unless it was over by then."""
    invalid_at: datetime | None = None
    occurred_at: datetime | None = None
    """When it was stated; now if None."""
    replaces: tuple[UUID, ...] = ()
    """The facts that it contradicts, by the ID of the fact or of any version."""
    evidence: tuple[UUID, ...] = ()
    importance: float | None = None
    """1 (mundane) to 10 (life-changing). None = rated by rules."""


@dataclass(frozen=True, slots=True)
class FactPage:
    """One page of facts, and the cursor of the next page."""

    facts: tuple[Fact, ...]
    next_cursor: UUID | None = None


class EntityOrder(StrEnum):
    """Order of listed entities."""

    AGE = "age"
    """In the order of their first mention."""
    MEANING = "meaning"
    """The nearest to a text first."""
    WORDS = "words"
    """Entities with most words of the text first; also used if no vector could be compared."""
    FACTS = "facts"
    """Entities with most facts first."""


@dataclass(frozen=True, slots=True)
class EntityPage:
    """One page of entities, and the cursor of the next page."""

    entities: tuple[Entity, ...]
    next_cursor: UUID | None = None
    ordered_by: EntityOrder = EntityOrder.AGE


class MergeReason(StrEnum):
    """Why two entities may be one, the strongest reason first."""

    NAME = "name"
    """They have the same name, or one has the other's name as an alias."""
    SPELLING = "spelling"
    MEANING = "meaning"
    """Names and descriptions are similar in meaning."""


@dataclass(frozen=True, slots=True)
class MergeProposal:
    """Two entities that may be duplicates."""

    kept: Entity
    """The entity that was mentioned first."""
    absorbed: Entity
    reason: MergeReason
    alike: float
    """Similarity, from 0 to 1."""
    confirmed: bool | None = None
    """Whether the chat model is sure that they are one; None if it was not asked."""


@dataclass(frozen=True, slots=True)
class MergeProposalPage:
    """Proposals for one page of entities, the most likely first, and the cursor of the next page."""

    proposals: tuple[MergeProposal, ...]
    next_cursor: UUID | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation for segmentation."""

    id: UUID
    occurred_at: datetime
    terms: tuple[str, ...]
    characters: int
    embedding: Embedding | None = None
    opens: bool = True
    """Whether a segment may begin with it: an answer belongs to its question."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A closed run of turns on one topic."""

    turns: tuple[Turn, ...]
    ending: SegmentEnd
    similarity: float | None = None
    """Similarity of its last turns and the next ones, if a change of topic ended it."""


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """A segment of a conversation: its messages, why it ended, and its status."""

    id: UUID
    conversation: str
    first_number: int
    last_number: int
    ending: SegmentEnd
    similarity: float | None
    """Similarity of its last turns and the next ones, if a change of topic ended it."""
    label: str
    state: SegmentState
    reason: str
    """The reason of a failure, if any."""
    closed_at: datetime
    enriched_at: datetime | None = None
    summary_id: UUID | None = None
    """The memory with its summary."""


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity of an extraction, before it is matched with the scope's entities."""

    name: str
    type: EntityType = EntityType.OTHER
    aliases: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact of an extraction; both ends are names of the extraction's mentions."""

    subject: str
    predicate: str
    object: str
    text: str
    span: ValidTime = ValidTime()
    replaces: tuple[int, ...] = ()
    """The numbers, from 1 on, of the shown facts that it contradicts."""


@dataclass(frozen=True, slots=True)
class ParsedExtraction:
    """The usable parts of a model's extraction of a segment; all values are within the limits of core.extractions."""

    summary: str = ""
    label: str = ""
    paths: tuple[tuple[str, ...], ...] = ()
    """Possible places in the topic tree, each path from the root down."""
    mentions: tuple[Mention, ...] = ()
    statements: tuple[Statement, ...] = ()
    importance: int | None = None
    rated: Mapping[int, int] | None = None
    """Importance of single messages by line number; None if the model returned none."""
    keywords: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of unusable things, by sort."""


class GraphFormat(StrEnum):
    """Format of an exported graph."""

    GRAPHML = "graphml"
    """XML for graph editors and libraries."""
    CYPHER = "cypher"
    """Statements with parameters for graph databases."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One version of a fact with its two entities."""

    memory_id: UUID
    """The ID of the version."""
    fact_id: UUID
    """The ID of the fact, equal for all of its versions."""
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
class Neighbor:
    """An entity that is reachable through facts."""

    entity: Entity
    depth: int
    """Number of facts between it and the start."""
    led_by: UUID
    """The memory of the newest fact that leads to it from one hop nearer."""


@dataclass(frozen=True, slots=True)
class Neighbors:
    """Entities around an entity, nearest first."""

    entity: Entity
    neighbors: tuple[Neighbor, ...]
    relations: tuple[Relation, ...]
    """Every fact that was followed, without duplicates, even if it led to no new entity."""
    whole: bool
    """True if nothing within the hops was left out because of the limits."""


@dataclass(frozen=True, slots=True)
class FactPath:
    """A path of facts between two entities."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    """One for each step; between two entities the newest fact."""


@dataclass(frozen=True, slots=True)
class EnrichRequest:
    """The history to read again, and the model to use."""

    agent: str = ""
    """Empty means all scopes of the tenant."""
    user: str | None = None
    """None means all scopes of the agent."""
    since: datetime | None = None
    """Only segments with a message at or after this time."""
    model: str = ""
    """Empty means the configured model; else another model of the same endpoint."""
    ignore_budget: bool = False
    """Whether to continue when the day's tokens are used up."""
    tenant: str = "default"


@dataclass(frozen=True, slots=True)
class Cost:
    """Number of model calls, and their cost."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    price: float | None = None
    """None if the model has no price."""


@dataclass(frozen=True, slots=True)
class EnrichPlan:
    """The estimated cost of reading one scope's history again."""

    agent: str
    user: str
    segments: int
    messages: int
    cost: Cost
    """The cost of the remaining calls: answers of an unfinished run are not requested again."""


@dataclass(frozen=True, slots=True)
class EnrichResult:
    """The result of reading one scope's history again."""

    agent: str
    user: str
    segments: int
    """Number of segments that use the new result now."""
    left: int
    """Number of segments that keep the old result: the extraction failed, or they changed during the run."""
    replaced: int
    """Number of believed facts that were superseded."""
    cost: Cost
    """The cost in the ledger since this run was started or resumed."""
