"""Values of saved recalls: stored hits, lists, and replays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from recollect.models.recall import ChannelScore, RankedCandidate, Status


@dataclass(frozen=True, slots=True)
class SavedHit:
    """A hit as stored: its ID, with the reasons for its rank."""

    id: UUID
    score: float
    channels: Mapping[str, ChannelScore]
    duplicates: tuple[UUID, ...] = ()
    preferences: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class SavedRecall:
    """A saved recall in a list."""

    recall_id: UUID
    asked_at: datetime
    text: str
    status: Status
    hits: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class SavedRecallPage:
    """One page of saved recalls, the latest first."""

    recalls: tuple[SavedRecall, ...]
    next_cursor: UUID | None


@dataclass(frozen=True, slots=True)
class Replay:
    """A saved recall, ranked or run again."""

    recall_id: UUID
    asked_at: datetime
    weights: Mapping[str, float]
    as_of: datetime | None
    placings: tuple[RankedCandidate, ...]
    """The hits in order."""
    same: bool
    """Whether hits and scores are equal to those of the saved recall."""
