"""What lies outside the record: mirrors in other engines, and scopes in object storage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """How one filling of a mirror stands over all tenants."""

    name: str
    generation: int
    """The number of the filling."""
    state: str
    """`ready` answers, `building` is filled beside it, `stale` was filled from another record or embedding space."""
    scopes: int
    """How many scopes it holds."""
    behind: int
    """In how many of them it lacks a change."""
    lag_seconds: float
    """The age of the oldest change that it lacks."""
    answers: bool | None = None
    """Whether the engine answers; None where this process has no address of it."""


@dataclass(frozen=True, slots=True)
class MirrorComparison:
    """How a mirror compares with the record, by the checksums of its rows."""

    scopes: int
    missing: int
    """Rows that it lacked."""
    changed: int
    """Rows that it had otherwise."""
    extra: int
    """Rows that it should not have had."""
    mended: bool

    @property
    def differing(self) -> int:
        """Count the rows that were not equal."""
        return self.missing + self.changed + self.extra


class Tier(StrEnum):
    """Where the rows of a scope are."""

    HOT = "hot"
    LEAVING = "leaving"
    """Still in the database; they leave unless somebody asks for the scope."""
    COLD = "cold"


@dataclass(frozen=True, slots=True)
class FoundScope:
    """A scope of a tenant, and where its rows are."""

    scope_id: int
    agent: str
    user: str
    memories: int
    tier: Tier
    since: datetime | None


@dataclass(frozen=True, slots=True)
class ColdStanding:
    """How many scopes of all tenants are cold."""

    cold: int = 0
    leaving: int = 0
    bytes: int = 0
    """The size of the objects of those that are cold."""
    unneeded: int = 0
    """Objects that are still to be removed, or on their way."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of scopes that were to leave or to come back."""

    moved: int = 0
    skipped: int = 0
    """Asked for, written to or busy meanwhile, or not where they would have to be."""
    bytes: int = 0
    """The size of the objects."""
