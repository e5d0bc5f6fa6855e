"""Values of kept recalls: what was stored of one, a list of them, and a replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from recollect.models.recall import ChannelScore, Placing, Status


@dataclass(frozen=True, slots=True)
class KeptHit:
    """A hit as it is kept: by its id, with the reasons."""

    id: UUID
    score: float
    channels: Mapping[str, ChannelScore]
    duplicates: tuple[UUID, ...] = ()
    preferences: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class KeptRecall:
    """A kept recall in a list."""

    recall_id: UUID
    asked_at: datetime
    text: str
    status: Status
    hits: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class KeptRecalls:
    """One page of kept recalls, the latest first."""

    recalls: tuple[KeptRecall, ...]
    next_cursor: UUID | None


@dataclass(frozen=True, slots=True)
class Replay:
    """A kept recall ranked again: from what was found then, or asked again as of a moment."""

    recall_id: UUID
    asked_at: datetime
    weights: Mapping[str, float]
    as_of: datetime | None
    placings: tuple[Placing, ...]
    """The hits in order."""
    same: bool
    """Whether hits and scores are those of the recall."""
