"""Memories: their values in writes and reads, and how they fade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias
from uuid import UUID

from pydantic import JsonValue

from recollect.models.topics import DEFAULT_LINK_STRENGTH, LinkStrength

JSON: TypeAlias = JsonValue
Embedding: TypeAlias = Sequence[float]
IfNew: TypeAlias = Literal["", "same", "near"]
"""Whether to store only new memories: by equal normalized text, or also by nearly equal terms; no check if empty."""


class Kind(StrEnum):
    """Kind of memory."""

    MESSAGE = "message"
    EVENT = "event"
    CHAT = "chat"
    THOUGHT = "thought"
    FACT = "fact"
    SUMMARY = "summary"


class Role(StrEnum):
    """Role of a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class MemoryProgress(StrEnum):
    """Processing state: stored (searchable by words), embedded (also by meaning), enriched, or failed."""

    STORED = "stored"
    EMBEDDED = "embedded"
    ENRICHED = "enriched"
    FAILED = "failed"


class RecallState(StrEnum):
    """Whether a memory takes part in recall; if not, the reason."""

    CURRENT = "current"
    """It takes part."""
    IN_ARCHIVED = "in_archived"
    """It belongs to an archived conversation."""
    FADED = "faded"
    PAST = "past"
    """It is a version that is no longer believed, or a fact that is over."""
    WITHHELD = "withheld"
    """It waits to be derived again."""


class ImportanceFrom(StrEnum):
    """Who set the importance: the caller, a model, or rules."""

    CALLER = "caller"
    MODEL = "model"
    RULE = "rule"


@dataclass(frozen=True, slots=True)
class Triple:
    """Subject, predicate and object."""

    subject: str = ""
    predicate: str = ""
    object: str = ""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """One memory to store, without ID, time, origin and trust."""

    content: str
    kind: Kind = Kind.EVENT
    speaker: str = ""
    importance: float | None = None
    """1 (mundane) to 10 (life-changing). None = rated by rules, later by enrichment."""
    triple: Triple = Triple()
    idle: bool | None = None
    """Whether the memory means that something is idle, so that it is never in the stream; None = by its triple."""
    keywords: tuple[str, ...] = ()
    """Keywords of the memory; taken from the triple if empty."""
    occurred_at: datetime | None = None
    evidence: tuple[UUID | int, ...] = ()
    """Its sources: IDs, or positions of earlier memories in the same call."""
    embedding: Embedding | None = None
    embedding_text: str = ""
    """The text to embed instead of speaker and content."""
    metadata: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    expires_at: datetime | None = None
    """When it is no longer recalled; never if None."""
    topic: str = ""
    """The path of its topic, such as `a->b->c`; none if empty."""
    related_topics: tuple[str, ...] = ()
    """Paths of related topics."""
    reach: LinkStrength = DEFAULT_LINK_STRENGTH
    """How easily its topic recalls it."""
    pinned: bool = False
    """Whether every context includes it, independent of the cue."""
    importance_from: ImportanceFrom = ImportanceFrom.CALLER
    """Who set the importance, if there is one."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One stored memory."""

    id: UUID
    kind: Kind
    content: str
    speaker: str
    importance: float
    triple: Triple
    idle: bool
    depth: int
    keywords: tuple[str, ...]
    origin: str
    trust: int
    occurred_at: datetime
    created_at: datetime
    last_accessed_at: datetime
    evidence: tuple[UUID, ...]
    embedding_text: str
    metadata: Mapping[str, JSON]
    conversation: str = ""
    """The conversation of a message."""
    role: Role | None = None
    expires_at: datetime | None = None
    """When it is no longer recalled, if set."""
    valid_at: datetime | None = None
    """When a fact became true in the world; None if unknown, and for other kinds."""
    invalid_at: datetime | None = None
    """When a fact stopped being true, or will stop."""
    superseded_at: datetime | None = None
    """When another version replaced it; None for the current version."""
    contested: bool = False
    """Whether it is a revision that did not take effect, because its writer has less trust."""
    pinned: bool = False
    """Whether every context includes it, independent of the cue."""
    importance_from: ImportanceFrom = ImportanceFrom.CALLER
    """Who set the importance."""
    state: RecallState = RecallState.CURRENT
    """Whether it takes part in recall now, or the reason why not; filters use the same names."""
    progress: MemoryProgress | None = field(default=None, compare=False)
    """Its processing state; only set if it is read by its ID."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Receipt of one stored memory."""

    id: UUID
    progress: MemoryProgress
    known: bool = False
    """Whether it was known already: nothing was stored, and the ID is that of the equal memory."""


@dataclass(frozen=True, slots=True)
class MemoryUpdate:
    """The fields to change of a memory; None leaves a field unchanged."""

    content: str | None = None
    importance: float | None = None
    speaker: str | None = None
    keywords: tuple[str, ...] | None = None
    """The new keywords."""
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    embedding: Embedding | None = None
    embedding_text: str | None = None
    metadata: Mapping[str, JSON] | None = None
    topic: str | None = None
    """The path of the new topic, which replaces all others."""
    related_topics: tuple[str, ...] | None = None
    """Paths of topics that are related to the new topic."""
    pinned: bool | None = None


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Result of an update."""

    id: UUID
    """The ID of the new version; of the current one if nothing changed."""
    progress: MemoryProgress
    version: int
    """The number of the version, counted from 1."""
    changed: bool = True
    """Whether anything changed."""
    contested: bool = False
    """Whether it is only stored next to the current version, because its writer has less trust."""
    outdated: tuple[UUID, ...] = ()
    """Memories that were derived from earlier versions and have left recall; a worker derives them again."""


class MemoryOrder(StrEnum):
    """Order of storage, or the reverse."""

    OLDEST = "oldest"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """One page of memories, and the cursor of the next page."""

    memories: tuple[Memory, ...]
    next_cursor: UUID | None


@dataclass(frozen=True, slots=True)
class EvidenceStep:
    """A memory that a walk along the evidence reached."""

    memory: Memory
    of: UUID
    """The previous memory of the walk: the source or the derived memory of this one."""
    depth: int
    """Number of steps from the start, 1 for the nearest."""


@dataclass(frozen=True, slots=True)
class EvidenceWalk:
    """Sources of a memory and memories derived from it, nearest first, and its versions."""

    sources: tuple[EvidenceStep, ...]
    derived: tuple[EvidenceStep, ...]
    whole: bool
    """Whether the walk is complete; false if the depth or the limit ended it."""
    versions: tuple[Memory, ...] = ()
    """All versions, oldest first."""


class FadeReason(StrEnum):
    """The rule that decided whether a memory fades."""

    EXPIRED = "expired"
    HELD = "held"
    PROTECTED = "protected"
    DECAYED = "decayed"
    AGED = "aged"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class FadingRules:
    """How memories fade. null = from the profile or the service."""

    days: float | None = None
    """Days in which a memory fades that is not recalled; with 0 only expired memories fade."""
    threshold: float | None = None
    """Memories with a higher score fade. Default: 0.7."""
    fact_days: float | None = None
    """Maximum age of facts in days. Default: 0 = any age."""


@dataclass(frozen=True, slots=True)
class FadeDecision:
    """Decision about one memory, and the reason."""

    id: UUID
    kind: Kind
    fades: bool
    score: float
    grounds: FadeReason
    reason: str
    faded_at: datetime | None = None
    """When it faded, if it has already; score and reason are those of that time."""


@dataclass(frozen=True, slots=True)
class FadeReport:
    """Result of a fade run."""

    dry_run: bool
    rules: FadingRules
    """The rules that were used, completed with the defaults."""
    looked_at: int
    faded: int
    """Number of memories that faded, or would fade."""
    grounds: Mapping[FadeReason, int]
    """Number of decisions by each rule."""
    judgements: tuple[FadeDecision, ...]
    """The first memories that faded, or would fade; every named memory if the call named some."""
    next_cursor: UUID | None
    """The cursor to continue if the time ran out; None at the end of the scope."""
