"""Values of an agent: its settings, and what it concludes, learns and holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from uuid import UUID

from recollect.models.memories import JSON, Kind, Memory, NewMemory, Receipt, Triple
from recollect.models.recall import Factors, Filter, Script, Weighing
from recollect.models.service import EmbeddingSpace, JobState


class Enrich(StrEnum):
    """What an agent learns from: conversations alone, or events, too."""

    TALK = "talk"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Profile(Filter):
    """An agent's default settings, used where a call does not set them; what a recall is restricted to among them."""

    weighing: Weighing = field(default_factory=Weighing)
    limit: int | None = None
    channels: tuple[str, ...] = ()
    """Which ways of recalling to use; the usual ones if empty."""
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """What channels and preferences weigh, by name; the usual weights for all that is not named."""
    min_relevance: float | None = None
    """Only hits that help with the cue at least so likely, 0 to 1."""
    consult: bool | None = None
    """Whether the chat model also reads the cues; not, if None."""
    judge: bool | None = None
    """Whether the chat model drops useless hits; not, if None."""
    also: tuple[str, ...] = ()
    """Up to four more scopes that every recall reads beside its own, each as `agent` or `agent/user`."""
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
    """Memories with a higher score fade; 0.7 if None."""
    fading_fact_days: float | None = None
    """How old a fact may become; any age if None or 0."""
    segment_depth: float | None = None
    """How far the likeness of what is said before and after must dip where a topic ends; 0.5 if None, 2 ends none."""
    idle_minutes: float | None = None
    """After how many minutes of silence a segment ends; 60 if None, never if 0."""
    enrich: Enrich = Enrich.TALK
    """What entities, facts, topics and summaries are learned from: what is said, or remembered events as well."""
    names: tuple[str, ...] = ()
    """Names of those whose memory it is; cues are read without them, as they would match everything."""
    language: str = ""
    """The language of the words around memories in a prompt, `en` or `zh`; that of the cue if empty."""


NOTHING_THERE = "There is nothing to reflect on yet."
NOTHING_NEW = "All that followed was thought before."


@dataclass(frozen=True, slots=True)
class Reflection:
    """What an agent asked itself and concluded."""

    questions: tuple[str, ...]
    """What it asked itself; of a reflection by a job, only what led to a thought."""
    thoughts: tuple[Receipt, ...]
    reason: str = ""
    """Why no thought was written, if none was."""


@dataclass(frozen=True, slots=True)
class ReflectionProgress:
    """How far a reflection by a job is."""

    job: str
    state: JobState
    attempts: int
    """How often it was tried and did not succeed; 0 once it has succeeded."""
    reason: str
    """Why it failed the last time, if it did."""
    reflection: Reflection | None = None
    """What came of it, once it has succeeded."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One hit judged useful or not, with what it was ranked by."""

    memory_id: UUID
    useful: bool
    factors: Factors | None = None
    """Of the channel `stream`, if that ranked it."""
    shares: Mapping[str, float] = field(default_factory=dict[str, float])
    """What each channel and preference added to its score, where several did."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a caller said of the hits of one recall."""

    marks: tuple[Mark, ...]
    candidates: int | None = None
    """How many memories the stream ranked, if it did; with it, a rank gives the recency for any decay."""
    recall_id: UUID | None = None
    """A name for the recall: feedback with the same name replaces its marks and counts once."""
    script: Script = Script.WORDS
    """How the cue was written: the usual weights depend on it."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a weighing puts useful hits before useless ones."""

    accuracy: float
    """The share of pairs of a useful and a useless hit that are in the right order."""
    reciprocal_rank: float
    """One divided by the place of the first useful hit, on average."""


class Tuned(StrEnum):
    """Which weights are learned: the three of the channel `stream` with its decay, or those of the usual recall."""

    STREAM = "stream"
    USUAL = "usual"


@dataclass(frozen=True, slots=True)
class Tuning:
    """What feedback changes in an agent's weights, with the fit before and after on both parts of the feedback."""

    of: Tuned
    before: Mapping[str, float]
    after: Mapping[str, float]
    training: tuple[Fit, Fit]
    held_out: tuple[Fit, Fit]
    recalls: tuple[int, int]
    """How many recalls were learned from, and how many were held out."""
    margin: float
    """How much chance alone could change the accuracy on held-out feedback: two standard errors."""
    recommended: bool
    applied: bool = False


@dataclass(frozen=True, slots=True)
class Association:
    """What is associated with one perceived triple, best first."""

    triple: Triple
    events: tuple[Memory, ...]
    thoughts: tuple[Memory, ...]


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
    """The importance of the events and messages since the last reflection."""
    unreflected_memories: int
    strengths: tuple[Strength, ...]
    """The strongest keywords."""
    profile: Profile
    to_rederive: int = 0
    """How many memories lost some of their evidence and wait to be derived again; no other number counts them."""
    messages: int = 0
    """So many take part in recall, as of facts and summaries."""
    facts: int = 0
    summaries: int = 0
    conversations: int = 0
    """So many are active or archived."""
    entities: int = 0
    topics: int = 0
    """Under so many topics something is filed."""
    items: int = 0
    kinds: Mapping[Kind, int] = field(default_factory=dict[Kind, int])
    """How many of each kind take part in recall."""
    faded: int = 0
    """So many have faded."""
    archived: int = 0
    """So many are of archived conversations."""


@dataclass(frozen=True, slots=True)
class ActiveDay:
    """How many memories of one kind were stored on one day."""

    day: date
    kind: Kind
    memories: int


@dataclass(frozen=True, slots=True)
class SavedMind:
    """A whole mind to be loaded into an empty scope."""

    memories: Sequence[NewMemory]
    space: EmbeddingSpace | None
    """The space of the memories' own vectors; the active one if None."""
    profile: Profile
    metadata: Mapping[str, JSON]
    """Other metadata of the agent."""
    unreflected_importance: float
    unreflected_memories: int
