"""The nouns of whose memory it is, who may ask, and where vectors lie."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class Right(StrEnum):
    """What an API key may do."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory it is: the unit of isolation, order and placement."""

    tenant_id: int
    agent: str
    user: str = ""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which scopes a key may name: those of one agent, or of one agent and one user; None means any."""

    agent: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as the service established it from the key and the door."""

    tenant_id: int
    rights: frozenset[Right]
    origin: str
    trust: int
    bounds: Bounds = Bounds()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it can be shown after its creation: never the secret."""

    id: UUID
    name: str
    rights: frozenset[Right]
    trust: int
    created_at: datetime
    revoked_at: datetime | None
    agent: str | None = None
    """The only agent that it may name; any if None."""
    user: str | None = None
    """The only user of that agent that it may name; any if None, the agent alone if empty."""


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """One embedding model's vectors: where they lie and whether recall reads them."""

    id: int
    model: str
    dimensions: int
    state: str
    precision: str = "half"
    """How exactly it holds numbers: `half` (2 bytes) or `single` (4 bytes)."""
