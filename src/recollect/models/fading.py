"""The nouns of fading: how memories fade, what a pass decided, and what has faded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.models.memories import Kind


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
    """How memories fade; what is None is as the agent's profile has it, or the service."""

    days: float | None = None
    """Over how many days a memory fades that nobody recalls; 0 means that nothing fades but what expires."""
    threshold: float | None = None
    """What scores above it fades; 0.7 if nobody says."""
    fact_days: float | None = None
    """How old a fact may grow; any age if 0, and if nobody says."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was decided about one memory, and why, in words that quote nothing remembered."""

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
    """What it went by, nothing left open."""
    looked_at: int
    faded: int
    """How many faded, or would."""
    grounds: Mapping[Grounds, int]
    """How many were decided on which grounds."""
    judgements: tuple[Judgement, ...]
    """The first that faded, or would."""
    next_cursor: UUID | None
    """Where to go on if the time was over; None at the end of the scope."""


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
