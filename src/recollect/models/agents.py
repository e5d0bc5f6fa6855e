"""Values of an agent: its settings, conclusions, learned weights and statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from uuid import UUID

from recollect.models.filters import Filter
from recollect.models.memories import JSON, Kind, Memory, NewMemory, Receipt, Triple
from recollect.models.recall import Factors, Script, StreamWeights
from recollect.models.service import EmbeddingSpace, JobState


class EnrichSource(StrEnum):
    """The sources that an agent learns from."""

    TALK = "talk"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Profile(Filter):
    """An agent's default settings, used when a call does not set them."""

    weighing: StreamWeights = field(default_factory=StreamWeights)
    limit: int | None = None
    channels: tuple[str, ...] = ()
    """Channels to use; the default channels if empty."""
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """Weights of channels and preferences, by name; default weights for all other names."""
    min_relevance: float | None = None
    """Minimum relevance, 0 to 1."""
    consult: bool | None = None
    """Whether the chat model also analyzes cues; false if None."""
    judge: bool | None = None
    """Whether the chat model drops useless hits; false if None."""
    also: tuple[str, ...] = ()
    """Up to four extra scopes for every recall, each as `agent` or `agent/user`."""
    reflection_threshold: float | None = None
    """Total importance at which the agent reflects. None = 150, 0 = never."""
    archive_after_days: float | None = None
    """Days without use after which a conversation is archived. None = setting of the service, 0 = never."""
    delete_after_days: float | None = None
    """Days without use after which a conversation is deleted. None = setting of the service, 0 = never."""
    purge_after_days: float | None = None
    """Days after its deletion when a conversation is purged. None = setting of the service, 0 = never."""
    fading_days: float | None = None
    """Days in which a memory fades that is not recalled. None = setting of the service, 0 = never."""
    fading_threshold: float | None = None
    """Memories with a higher score fade. None = 0.7."""
    fading_fact_days: float | None = None
    """Maximum age of facts in days. None or 0 = any age."""
    segment_depth: float | None = None
    """Drop in similarity that ends a topic. None = 0.5; with 2, topics never end segments."""
    idle_minutes: float | None = None
    """Minutes of silence that end a segment. None = 60, 0 = never."""
    enrich: EnrichSource = EnrichSource.TALK
    """The sources of entities, facts, topics and summaries: conversations only, or also remembered events."""
    names: tuple[str, ...] = ()
    """Names of the owners of the memory. They are removed from cues, because they would match everything."""
    language: str = ""
    """The language of fixed texts in prompts, `en` or `zh`; the language of the cue if empty."""
    metadata: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    """What an import stored with the agent. Read-only: it is not replaced with the settings."""


NOTHING_THERE = "Nothing to reflect on yet."
NOTHING_NEW = "No new insights."


@dataclass(frozen=True, slots=True)
class Reflection:
    """Questions and conclusions of a reflection."""

    questions: tuple[str, ...]
    """The questions of the reflection; for a job, only those that led to a thought."""
    thoughts: tuple[Receipt, ...]
    reason: str = ""
    """Why no thoughts were written; empty if some were."""


@dataclass(frozen=True, slots=True)
class ReflectionProgress:
    """The progress of a reflection by a job."""

    job: str
    state: JobState
    attempts: int
    """The number of failed attempts; 0 after success."""
    reason: str
    """The reason of the last failure, if any."""
    reflection: Reflection | None = None
    """The result after success."""


@dataclass(frozen=True, slots=True)
class HitFeedback:
    """One hit judged useful or not, with its ranking values."""

    memory_id: UUID
    useful: bool
    factors: Factors | None = None
    """Factors of the channel `stream`, if it ranked the hit."""
    shares: Mapping[str, float] = field(default_factory=dict[str, float])
    """The shares of channels and preferences in the score, if there were several."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """A caller's judgment of the hits of one recall."""

    marks: tuple[HitFeedback, ...]
    candidates: int | None = None
    """Number of memories that the stream ranked, if it did; with it, a rank gives the recency for any decay."""
    recall_id: UUID | None = None
    """A name for the recall: feedback with the same name replaces its marks and counts once."""
    script: Script = Script.WORDS
    """The script of the cue: default weights depend on it."""


@dataclass(frozen=True, slots=True)
class FitQuality:
    """How well weights rank useful hits above useless ones."""

    accuracy: float
    """The share of pairs (a useful and a useless hit) that are in the right order."""
    reciprocal_rank: float
    """The mean of 1 / rank of the first useful hit."""


class TuningTarget(StrEnum):
    """The weights to learn: those of the stream channel, or those of the default recall."""

    STREAM = "stream"
    USUAL = "usual"


@dataclass(frozen=True, slots=True)
class Tuning:
    """Learned weights and their quality before and after, on training and held-out feedback."""

    of: TuningTarget
    before: Mapping[str, float]
    after: Mapping[str, float]
    training: tuple[FitQuality, FitQuality]
    held_out: tuple[FitQuality, FitQuality]
    recalls: tuple[int, int]
    """Number of recalls for training, and number of held-out ones."""
    margin: float
    """Change of accuracy on held-out feedback that chance alone can cause: two standard errors."""
    recommended: bool
    applied: bool = False


@dataclass(frozen=True, slots=True)
class Association:
    """The memories associated with one perceived triple, best first."""

    triple: Triple
    events: tuple[Memory, ...]
    thoughts: tuple[Memory, ...]


@dataclass(frozen=True, slots=True)
class KeywordCount:
    """How many memories of one kind have a keyword."""

    keyword: str
    kind: Kind
    strength: int


@dataclass(frozen=True, slots=True)
class DailyCount:
    """How many memories of one kind were stored on one day."""

    day: date
    kind: Kind
    memories: int


@dataclass(frozen=True, slots=True)
class Overview:
    """Statistics of one scope."""

    memories: int
    events: int
    thoughts: int
    chats: int
    unreflected_importance: float
    """Importance of the events and messages since the last reflection."""
    unreflected_memories: int
    strengths: tuple[KeywordCount, ...]
    """The strongest keywords."""
    profile: Profile
    to_rederive: int = 0
    """Memories that lost some of their evidence and wait to be derived again; no other number includes them."""
    messages: int = 0
    """Number of messages in recall; facts and summaries are counted in the same way."""
    facts: int = 0
    summaries: int = 0
    conversations: int = 0
    """Number of active and archived conversations."""
    entities: int = 0
    topics: int = 0
    """Number of topics that have memories."""
    items: int = 0
    kinds: Mapping[Kind, int] = field(default_factory=dict[Kind, int])
    """Number of memories of each kind in recall."""
    faded: int = 0
    """Number of faded memories."""
    archived: int = 0
    """Number of memories of archived conversations."""
    activity: tuple[DailyCount, ...] = ()
    """Memories stored on each of the last days, if days were requested; the oldest day first."""


@dataclass(frozen=True, slots=True)
class MindSnapshot:
    """A whole mind, to load into an empty scope."""

    memories: Sequence[NewMemory]
    space: EmbeddingSpace | None
    """The embedding space of the memories' own vectors; the active one if None."""
    profile: Profile
    unreflected_importance: float
    unreflected_memories: int
