"""Cold scopes: where the rows of a scope are, and how many lie in object storage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


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
