"""Values of kept recalls: what was stored of one, why each candidate has its place, and a replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.models.memories import JSON, Memory
from recollect.models.recall import Candidate, ChannelScore, Facets, Features, Status, Tally


class Fate(StrEnum):
    """What became of a candidate."""

    HIT = "hit"
    DUPLICATE = "duplicate"
    """It says nearly the same as a hit and is not listed for it."""
    DROPPED = "dropped"
    """It was among the best, but is left out: the judge dropped it, or it was gone by then."""
    BELOW = "below"
    """As many as were asked for had a better score."""


@dataclass(frozen=True, slots=True)
class KeptHit:
    """A hit as it is kept: by its id, with the reasons."""

    id: UUID
    score: float
    channels: Mapping[str, ChannelScore]
    duplicates: tuple[UUID, ...] = ()
    preferences: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class Placing:
    """Where a candidate stands in a ranking, and why."""

    id: UUID
    fate: Fate
    rank: int
    """The place among the hits, 1 for the best; 0 for what is none."""
    score: float
    channels: Mapping[str, ChannelScore]
    """Each channel's own score, and the share it adds."""
    preferences: Mapping[str, float] = field(default_factory=dict[str, float])
    """What each preference adds to the score, or takes from it."""
    relevance: float | None = None
    """How likely it helps with the cue."""
    features: Features | None = None
    """What the ranking knew of it in addition to its scores."""
    duplicates: tuple[UUID, ...] = ()
    before: int | None = None
    """In a replay, the place that it had among the hits of the recall; None if it was none."""
    memory: Memory | None = None
    """The memory of a hit as it is now; None if it is out of sight."""


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
class Explanation:
    """All that a recall's ranking was made from, and how it came about."""

    recall_id: UUID
    asked_at: datetime
    cue: Mapping[str, JSON]
    """What the cue said beside the usual, without its vector."""
    facets: Facets
    weights: Mapping[str, float]
    limit: int
    status: Status
    message: str
    methods: Mapping[str, str]
    tallies: Mapping[str, Tally]
    milliseconds: float
    proposals: Mapping[str, tuple[Candidate, ...]]
    """What each channel proposed, in its own unit, best first."""
    placings: tuple[Placing, ...]
    """The hits in order, then all other candidates in the order of their scores."""
    same: bool
    """Whether this version of Recollect ranks the candidates just as it was done then."""


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
