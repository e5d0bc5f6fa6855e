"""The nouns of Recollect: frozen values, one per glossary word, without behaviour of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

from pydantic import JsonValue

JSON: TypeAlias = JsonValue
Embedding: TypeAlias = Sequence[float]


class Kind(StrEnum):
    """What sort of thing a memory is."""

    MESSAGE = "message"
    EVENT = "event"
    CHAT = "chat"
    THOUGHT = "thought"
    FACT = "fact"
    SUMMARY = "summary"


class Right(StrEnum):
    """What an API key may do."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class MemoryState(StrEnum):
    """How far a memory has come: searchable by text at once, by vector when embedded."""

    STORED = "stored"
    EMBEDDED = "embedded"


class Script(StrEnum):
    """The writing that dominates a text, as far as ranking cares."""

    WORDS = "words"
    CJK = "cjk"


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory it is: the unit of isolation, order and placement."""

    tenant_id: int
    agent: str
    user: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as the service established it from the key and the door."""

    tenant_id: int
    rights: frozenset[Right]
    origin: str
    trust: int


@dataclass(frozen=True, slots=True)
class NewMemory:
    """One thing to remember, before the service has given it id, time, origin and trust."""

    content: str
    kind: Kind = Kind.EVENT
    speaker: str = ""
    importance: float = 5.0
    keywords: tuple[str, ...] = ()
    occurred_at: datetime | None = None
    evidence: tuple[UUID, ...] = ()
    embedding: Embedding | None = None
    metadata: Mapping[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True)
class Memory:
    """One remembered thing."""

    id: UUID
    kind: Kind
    content: str
    speaker: str
    importance: float
    keywords: tuple[str, ...]
    origin: str
    trust: int
    occurred_at: datetime
    created_at: datetime
    evidence: tuple[UUID, ...]
    metadata: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a write acknowledges for one memory."""

    id: UUID
    state: MemoryState


@dataclass(frozen=True, slots=True)
class Cue:
    """What triggers a recall."""

    text: str = ""
    embedding: Embedding | None = None
    limit: int = 10
    kinds: tuple[Kind, ...] = ()
    min_trust: int = 0
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one channel proposes: a memory and how strongly, in the channel's own unit."""

    id: UUID
    score: float


@dataclass(frozen=True, slots=True)
class ChannelScore:
    """One channel's part in a hit: its own score, and the share it adds to the total."""

    score: float
    share: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate after fusion, before its memory is fetched."""

    id: UUID
    score: float
    channels: Mapping[str, ChannelScore]


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that survived fusion, with the reasons."""

    memory: Memory
    score: float
    channels: Mapping[str, ChannelScore]


@dataclass(frozen=True, slots=True)
class Recollection:
    """The answer to a recall: hits in order, and how each channel found its candidates."""

    hits: tuple[Hit, ...]
    methods: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of memories, oldest first, and where the next one begins."""

    memories: tuple[Memory, ...]
    next_cursor: UUID | None


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """One embedding model's vectors: where they lie and whether recall reads them."""

    id: int
    model: str
    dimensions: int
    state: str


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it can be shown after its creation: never the secret."""

    id: UUID
    name: str
    rights: frozenset[Right]
    trust: int
    created_at: datetime
    revoked_at: datetime | None
