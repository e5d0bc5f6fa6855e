"""Memories: what is remembered, how it is given back, and when it fades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias
from uuid import UUID

from pydantic import JsonValue

from recollect.models.topics import USUAL_REACH, Reach

JSON: TypeAlias = JsonValue
Embedding: TypeAlias = Sequence[float]
IfNew: TypeAlias = Literal["", "same", "near"]
"""Whether to store only what is new: by the same text after folding, or also by nearly the same terms; no if empty."""


class Kind(StrEnum):
    """What sort of thing a memory is."""

    MESSAGE = "message"
    EVENT = "event"
    CHAT = "chat"
    THOUGHT = "thought"
    FACT = "fact"
    SUMMARY = "summary"


class Role(StrEnum):
    """Who says a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class MemoryProgress(StrEnum):
    """How far a memory has come: searchable by text at once, by vector when embedded; failed if embedding gave up.

    A message is enriched when what can be learned from its segment is known.
    """

    STORED = "stored"
    EMBEDDED = "embedded"
    ENRICHED = "enriched"
    FAILED = "failed"


class RecallState(StrEnum):
    """Whether a memory takes part in recall now, and if not, why."""

    CURRENT = "current"
    """It takes part."""
    IN_ARCHIVED = "in_archived"
    """It is of an archived conversation."""
    FADED = "faded"
    PAST = "past"
    """It is a version that is no longer believed, or a fact that is over."""
    WITHHELD = "withheld"
    """It waits to be derived anew."""


class ImportanceFrom(StrEnum):
    """Who said how important a memory is: the caller, a model, or the rules that stand in for both."""

    CALLER = "caller"
    MODEL = "model"
    RULE = "rule"


@dataclass(frozen=True, slots=True)
class Triple:
    """What an event, chat or thought says in three parts."""

    subject: str = ""
    predicate: str = ""
    object: str = ""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """One thing to remember, before the service has given it id, time, origin and trust."""

    content: str
    kind: Kind = Kind.EVENT
    speaker: str = ""
    importance: float | None = None
    """1 (mundane) to 10 (life-changing); what the rules say if None, and what enrichment says once it has."""
    triple: Triple = Triple()
    idle: bool | None = None
    """Whether it says that something does nothing, so that it is never in the stream; None = as its triple says."""
    keywords: tuple[str, ...] = ()
    """What it is filed under; taken from the triple where none are given."""
    occurred_at: datetime | None = None
    evidence: tuple[UUID | int, ...] = ()
    """What it was made from: ids, or positions of memories before it in the same call."""
    embedding: Embedding | None = None
    embedding_text: str = ""
    """What is embedded instead of speaker and content."""
    metadata: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    expires_at: datetime | None = None
    """From when on it is not recalled; never if None."""
    topic: str = ""
    """The path of the topic it is filed under, as `a->b->c`; none if empty."""
    related_topics: tuple[str, ...] = ()
    """Paths of topics that it leads to from there."""
    reach: Reach = USUAL_REACH
    """How readily it is recalled by its topic."""
    pinned: bool = False
    """Whether every context shows it, independent of the cue."""
    importance_from: ImportanceFrom = ImportanceFrom.CALLER
    """Who said how important it is, where an importance is given."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One remembered thing."""

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
    """Where it was said, if it is a message of a conversation."""
    role: Role | None = None
    expires_at: datetime | None = None
    """From when on it is not recalled, if it was given."""
    valid_at: datetime | None = None
    """Since when a fact is true in the world; None where it is not known, and for other kinds."""
    invalid_at: datetime | None = None
    """When a fact stopped being true, or will."""
    superseded_at: datetime | None = None
    """When another version took its place; None while it is the current one."""
    contested: bool = False
    """Whether it is a revision that did not take effect, because its writer is trusted less."""
    pinned: bool = False
    """Whether every context shows it, independent of the cue."""
    importance_from: ImportanceFrom = ImportanceFrom.CALLER
    """Who said how important it is."""
    state: RecallState = RecallState.CURRENT
    """Whether it takes part in recall now, and if not, why: as a filter names it."""
    progress: MemoryProgress | None = field(default=None, compare=False)
    """How far it has come; only set when it is read by its id."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a write acknowledges for one memory."""

    id: UUID
    progress: MemoryProgress
    known: bool = False
    """Whether it was known already: nothing was stored, and the id is that of the memory that says the same."""
    position: str = ""
    """How far the server's log came by the write, where the server has replicas: one that has come so far has it."""


@dataclass(frozen=True, slots=True)
class Revision:
    """What a revision changes of a memory; what is None stays as it is."""

    content: str | None = None
    importance: float | None = None
    speaker: str | None = None
    keywords: tuple[str, ...] | None = None
    """What it is filed under from now on."""
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    embedding: Embedding | None = None
    embedding_text: str | None = None
    metadata: Mapping[str, JSON] | None = None
    topic: str | None = None
    """The path of the topic it is filed under from now on, in place of all others."""
    related_topics: tuple[str, ...] | None = None
    """Paths of topics that it leads to from the topic that is named."""
    pinned: bool | None = None


@dataclass(frozen=True, slots=True)
class Revised:
    """What a revision did."""

    id: UUID
    """The new version; the current one if nothing changed."""
    progress: MemoryProgress
    version: int
    """Its number among the versions of its memory, counted from 1."""
    changed: bool = True
    """Whether a version was written."""
    contested: bool = False
    """Whether it is only kept beside the current version, because its writer is trusted less."""
    outdated: tuple[UUID, ...] = ()
    """What was derived from earlier versions and has left recall; a worker derives it again."""


class MemoryOrder(StrEnum):
    """In which order memories are listed: that of their storing, or its reverse."""

    OLDEST = "oldest"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of memories, and where the next one begins."""

    memories: tuple[Memory, ...]
    next_cursor: UUID | None


@dataclass(frozen=True, slots=True)
class EvidenceStep:
    """A memory that a walk along the evidence came to."""

    memory: Memory
    of: UUID
    """The memory that led to it: it was made from this one, or this one was made from it."""
    depth: int
    """How many steps it is away, 1 for the nearest."""


@dataclass(frozen=True, slots=True)
class EvidenceWalk:
    """What a memory was made from, and what was made from it, each once, the nearest first."""

    sources: tuple[EvidenceStep, ...]
    derived: tuple[EvidenceStep, ...]
    whole: bool
    """Whether that is all; false where the depth or the limit ended the walk."""


class Grounds(StrEnum):
    """Which rule decided whether a memory fades."""

    EXPIRED = "expired"
    HELD = "held"
    PROTECTED = "protected"
    DECAYED = "decayed"
    AGED = "aged"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class FadingRules:
    """How memories fade; what is None is taken from the agent's profile, or from the service."""

    days: float | None = None
    """Over how many days a memory fades that is not recalled; with 0 only what expires fades."""
    threshold: float | None = None
    """Memories with a higher score fade; 0.7 by default."""
    fact_days: float | None = None
    """How old a fact may become; any age if 0, which is the default."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The decision about one memory, and its reason, in words that quote nothing remembered."""

    id: UUID
    kind: Kind
    fades: bool
    score: float
    grounds: Grounds
    reason: str


@dataclass(frozen=True, slots=True)
class Fading:
    """What a pass over a scope looked at and decided."""

    dry_run: bool
    rules: FadingRules
    """The rules that it used, completed by the defaults."""
    looked_at: int
    faded: int
    """How many faded, or would."""
    grounds: Mapping[Grounds, int]
    """How many were decided by which rule."""
    judgements: tuple[Judgement, ...]
    """The first that faded, or would."""
    next_cursor: UUID | None
    """Where to continue if the time was over; None at the end of the scope."""


@dataclass(frozen=True, slots=True)
class Faded:
    """One memory that has faded: when, and why."""

    id: UUID
    kind: Kind
    faded_at: datetime
    score: float
    grounds: Grounds
    reason: str


@dataclass(frozen=True, slots=True)
class FadedPage:
    """One page of faded memories, oldest first, and where the next one begins."""

    faded: tuple[Faded, ...]
    next_cursor: UUID | None
