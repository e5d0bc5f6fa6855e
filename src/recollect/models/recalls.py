"""The nouns of being reminded: from a cue to hits with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.models.memories import Embedding, Kind, Memory, Triple


class Mode(StrEnum):
    """How the stream channel reckons recency."""

    NEWEST = "newest"
    """By rank, the most recently accessed first: the default."""
    ORIGINAL = "original"
    """By rank, the least recently accessed first, as the code of Generative Agents does."""
    PAPER = "paper"
    """By hours since the last access, with equal weights, as the paper on Generative Agents says."""


class Status(StrEnum):
    """How a recall went."""

    OK = "ok"
    NO_CANDIDATES = "no_candidates"
    ERROR = "error"


class Script(StrEnum):
    """The writing that dominates a text, as far as ranking cares."""

    WORDS = "words"
    CJK = "cjk"


@dataclass(frozen=True, slots=True)
class Weighing:
    """How the stream channel weighs its three factors; what is None is as the agent's profile has it."""

    mode: Mode | None = None
    recency: float | None = None
    relevance: float | None = None
    importance: float | None = None
    gains: tuple[float, float, float] | None = None
    """What the three weights are multiplied with: for recency, relevance, importance."""
    decay: float | None = None
    """What recency loses: per rank, or per hour in mode `paper`."""


@dataclass(frozen=True, slots=True)
class Times:
    """The two times of a read: what was believed as of a moment, and what was true in the world at one."""

    as_of: datetime | None = None
    """What was stored by then, in the versions that were believed; now if None."""
    at: datetime | None = None
    """What was true then, or had happened; if None, what was not over as of the other time."""

    @property
    def past(self) -> bool:
        """Tell whether either time is named, so that versions which left the indexes are to be read, too."""
        return self.as_of is not None or self.at is not None


@dataclass(frozen=True, slots=True)
class Cue:
    """What triggers a recall."""

    text: str = ""
    embedding: Embedding | None = None
    limit: int | None = None
    kinds: tuple[Kind, ...] = ()
    min_trust: int = 0
    as_of: datetime | None = None
    """Answer by what was stored by then, in the versions that were believed; now if None."""
    channels: tuple[str, ...] = ()
    """Which ways of recalling to use; the usual ones if empty."""
    weighing: Weighing = Weighing()
    touch: bool = True
    """Whether the hits count as accessed."""
    now: datetime | None = None
    """The moment of the recall, for simulations with a clock of their own."""
    at: datetime | None = None
    """Answer by what was true in the world then, or had happened; by what is not over if None."""

    @property
    def times(self) -> Times:
        """Say which times are to be read."""
        return Times(self.as_of, self.at)


@dataclass(frozen=True, slots=True)
class Factors:
    """What the stream channel's score is made of: three factors scaled to 0..1 over all candidates."""

    recency: float
    relevance: float
    importance: float
    rank: int
    """The place by last access, 1 for what recency favours most; 0 for too far down to matter."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What a channel looked at: how many candidates, and the scores of the weakest and the strongest."""

    candidates: int
    lowest: float | None
    highest: float | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one channel proposes: a memory and how strongly, in the channel's own unit."""

    id: UUID
    score: float
    factors: Factors | None = None


@dataclass(frozen=True, slots=True)
class ChannelScore:
    """One channel's part in a hit: its own score, and the share it adds to the total."""

    score: float
    share: float
    factors: Factors | None = None


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
    status: Status = Status.OK
    message: str = ""
    accessed: tuple[UUID, ...] = ()
    """The hits whose access is on record."""
    tallies: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Association:
    """What one perceived triple reminds of, best first."""

    triple: Triple
    events: tuple[Memory, ...]
    thoughts: tuple[Memory, ...]
