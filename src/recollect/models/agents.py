"""The nouns of an agent as a whole: its settings, and what it concludes, learns and holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from recollect.models.memories import JSON, Kind, NewMemory, Receipt
from recollect.models.recall import Factors, Weighing
from recollect.models.service import EmbeddingSpace, JobState


@dataclass(frozen=True, slots=True)
class Profile:
    """What an agent's minds go by where a call says nothing else."""

    weighing: Weighing = field(default_factory=Weighing)
    kinds: tuple[Kind, ...] = ()
    """What the stream channel looks at; events and thoughts if empty."""
    limit: int | None = None
    reflection_threshold: float | None = None
    """How much importance must gather before the agent reflects; 150 if None, never if 0."""
    archive_after_days: float | None = None
    """After how many days without use a conversation is archived; as the service has it if None, never if 0."""
    delete_after_days: float | None = None
    """After how many days without use a conversation is deleted; as the service has it if None, never if 0."""
    purge_after_days: float | None = None
    """How many days after its deletion a conversation is purged; as the service has it if None, never if 0."""
    fading_days: float | None = None
    """Over how many days a memory fades that nobody recalls; as the service has it if None, never if 0."""
    fading_threshold: float | None = None
    """What scores above it fades; 0.7 if None."""
    fading_fact_days: float | None = None
    """How old a fact may grow; any age if None or 0."""
    topic_threshold: float | None = None
    """How near what the user says must come to a segment, as a cosine, to belong to it; 0.7 if None."""
    idle_minutes: float | None = None
    """After how many minutes without a word a segment ends; 60 if None, never if 0."""
    names: tuple[str, ...] = ()
    """What those are called whose memory it is; as all of it is about them, cues are read without their names."""


@dataclass(frozen=True, slots=True)
class Reflection:
    """What an agent asked itself and concluded."""

    questions: tuple[str, ...]
    """What it asked itself; of a reflection by a job, only what led to a thought."""
    thoughts: tuple[Receipt, ...]


@dataclass(frozen=True, slots=True)
class ReflectionProgress:
    """How far a reflection by a job is."""

    job: int
    state: JobState
    attempts: int
    """How often it was tried and did not succeed."""
    reason: str
    """Why it failed the last time, if it did."""
    reflection: Reflection | None = None
    """What came of it, once it has succeeded."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One hit judged useful or not, with the factors it was ranked by."""

    memory_id: UUID
    useful: bool
    factors: Factors


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a caller said of the hits of one recall."""

    marks: tuple[Mark, ...]
    candidates: int
    """How many memories were ranked: with this, a rank says what recency would be at any decay."""
    recall_id: UUID | None = None
    """A name for the recall: sent again, it changes its marks and counts once."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a weighing puts useful hits before useless ones."""

    accuracy: float
    """The share of pairs of a useful and a useless hit that are in the right order."""
    reciprocal_rank: float
    """One divided by the place of the first useful hit, on average."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """What feedback would make of an agent's weighing, before and after on either part of the feedback."""

    before: Weighing
    after: Weighing
    training: tuple[Fit, Fit]
    held_out: tuple[Fit, Fit]
    recalls: tuple[int, int]
    """How many recalls were learned from, and how many were held out."""
    margin: float
    """What chance alone could do to the accuracy on what was held out: two standard errors of its change."""
    recommended: bool
    applied: bool = False


@dataclass(frozen=True, slots=True)
class Strength:
    """How often memories of one kind were filed under a keyword."""

    keyword: str
    kind: Kind
    strength: int


@dataclass(frozen=True, slots=True)
class Overview:
    """What one scope holds, in numbers."""

    memories: int
    events: int
    thoughts: int
    chats: int
    unreflected_importance: float
    """The importance of the events since the last reflection."""
    unreflected_events: int
    strengths: tuple[Strength, ...]
    """The strongest keywords."""
    profile: Profile
    to_rederive: int = 0
    """How many memories lost some of their evidence and wait to be derived again; no other number counts them."""


@dataclass(frozen=True, slots=True)
class SavedMind:
    """A whole mind on its way into an empty scope."""

    memories: Sequence[NewMemory]
    space: EmbeddingSpace | None
    """Where the memories' own vectors belong; the active space if None."""
    profile: Profile
    metadata: Mapping[str, JSON]
    """What else is kept of the agent."""
    unreflected_importance: float
    unreflected_events: int
