"""Values of recall: from a cue to hits with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.loading import local_timezone
from recollect.models.filters import NO_FILTER, Filter
from recollect.models.memories import JSON, Embedding, Kind, Memory


class Mode(StrEnum):
    """How the stream channel computes recency."""

    NEWEST = "newest"
    """By rank, the most recently accessed first: the default."""
    ORIGINAL = "original"
    """By rank, the least recently accessed first, like the code of Generative Agents."""
    PAPER = "paper"
    """By hours since the last access, with equal weights, like the paper on Generative Agents."""


class Status(StrEnum):
    """Status of a recall."""

    OK = "ok"
    NO_CANDIDATES = "no_candidates"
    NOTHING_RELEVANT = "nothing_relevant"
    """Memories were found, but none is likely to help."""
    ERROR = "error"


class Script(StrEnum):
    """The dominant script of a text, for ranking."""

    WORDS = "words"
    CJK = "cjk"


@dataclass(frozen=True, slots=True)
class StreamWeights:
    """Weights of the stream channel. null = from the agent's profile."""

    mode: Mode | None = None
    recency: float | None = None
    similarity: float | None = None
    importance: float | None = None
    gains: tuple[float, float, float] | None = None
    """Factors of the three weights: recency, similarity, importance."""
    decay: float | None = None
    """The decay of recency: per rank, or per hour in mode `paper`."""


@dataclass(frozen=True, slots=True)
class Cue(Filter):
    """The query of a recall, and its restrictions."""

    text: str = ""
    embedding: Embedding | None = None
    limit: int | None = None
    channels: tuple[str, ...] = ()
    """Channels to use; the default channels if empty."""
    weighing: StreamWeights = StreamWeights()
    touch: bool = True
    """Whether the hits count as accessed."""
    now: datetime | None = None
    """The time of the recall, for simulations with their own clock."""
    zone: str = field(default_factory=local_timezone)
    """IANA time zone for words such as "yesterday"; by default the zone of this machine."""
    consult: bool | None = None
    """Whether the chat model also analyzes the cue, for topics and days that rules do not find. None = setting of the
    profile, else false."""
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """Weights of channels and preferences in this recall, by name; default weights for all other names."""
    judge: bool | None = None
    """Whether the chat model judges the hits and drops useless ones. None = setting of the profile, else false."""
    min_relevance: float | None = None
    """Minimum relevance of hits, 0 to 1. None = a recall returns all hits; prompts and blocks omit those that are
    unlikely to help."""
    keep: bool | None = None
    """Whether to save the recall, to explain and replay it. None = setting of the service."""
    explain: bool = False
    """Whether the result includes its explanation, without being saved."""
    also: tuple[str, ...] = ()
    """Up to four extra scopes to read, each as `agent` or `agent/user`. Empty = setting of the profile."""

    @property
    def blank(self) -> bool:
        """Return whether it has neither text nor vector: then it lists all memories that its filter admits."""
        return self.embedding is None and not self.text.strip()

    @property
    def filter(self) -> Filter:
        """Return the filter of the cue, without topics that only affect the order."""
        named = self.named if self.topics_only else tuple(name for name in self.named if name != "topics")
        return Filter(**{name: getattr(self, name) for name in named}, below=self.below) if named else NO_FILTER


class QuestionType(StrEnum):
    """The type of answer that the query expects."""

    TIME = "time"
    """When something happened."""
    PERSON = "person"
    """Who somebody is, or who did something."""
    NUMBER = "number"
    """How many or how much."""
    OVERVIEW = "overview"
    """An overview: all items, or the course of events."""
    LATEST = "latest"
    """The latest state: age counts only for these cues."""


@dataclass(frozen=True, slots=True)
class Period:
    """A period that a cue mentions, and its words."""

    start: datetime
    end: datetime
    phrase: str = ""


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """The result of analyzing the query."""

    script: Script = Script.WORDS
    keywords: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Normalized names of the candidates' speakers that the cue mentions."""
    topics: tuple[str, ...] = ()
    periods: tuple[Period, ...] = ()
    asks: frozenset[QuestionType] = frozenset()
    topics_first: bool = False
    """Whether the caller named the topics, so that memories under them come first."""
    actor: str = ""
    """The first of several named people, who acted; empty if they are named together."""


@dataclass(frozen=True, slots=True)
class Factors:
    """The parts of the stream channel's score: three factors scaled to 0..1 over all candidates."""

    recency: float
    similarity: float
    importance: float
    rank: int
    """The rank by recency, 1 for the best; 0 if recency is negligible."""


@dataclass(frozen=True, slots=True)
class ChannelStats:
    """Number of candidates of a channel, and its lowest and highest score."""

    candidates: int
    lowest: float | None
    highest: float | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposal of one channel: a memory and its score, in the channel's own unit."""

    id: UUID
    score: float
    factors: Factors | None = None


@dataclass(frozen=True, slots=True)
class ChannelScore:
    """One channel's part in a hit: its own score, and its share of the total score."""

    score: float
    share: float
    factors: Factors | None = None


@dataclass(frozen=True, slots=True)
class Features:
    """Properties of a candidate used for ranking."""

    occurred_at: datetime
    kind: Kind
    speaker: str = ""
    """Normalized name of the speaker."""
    session: str = ""
    """Its session: its conversation, or its day."""
    place: float = 0.0
    """Its position in the session; the maximum distance of neighbors is 2."""
    cosine: float | None = None
    """Its cosine with the cue's vector, if both have one."""
    terms: tuple[int, ...] = ()
    """The terms of the cue that it contains, by their positions in the cue."""
    length: int = 0
    """Its number of terms."""
    importance: float = 5.0
    accessed_at: datetime | None = None
    """When it was last accessed, if that counts."""
    assistant: bool = False
    """Whether its speaker is an assistant."""
    asks: bool = False
    """Whether it ends with a question."""
    tells_time: bool = False
    tells_number: bool = False
    is_instruction: bool = False
    """Whether it is an instruction for the future."""
    named: bool = False
    """Whether the cue names its speaker, or its subject if it has no speaker."""


@dataclass(frozen=True, slots=True)
class FusedCandidate:
    """A candidate after fusion, before its memory is fetched."""

    id: UUID
    score: float
    channels: Mapping[str, ChannelScore]
    preferences: Mapping[str, float] = field(default_factory=dict[str, float])
    """The amount that each preference adds to the score; may be negative."""
    relevance: float | None = None
    """The probability that it helps with the cue; None if one channel ranks alone."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result with the reasons for its rank."""

    memory: Memory
    score: float
    channels: Mapping[str, ChannelScore]
    duplicates: tuple[UUID, ...] = ()
    """Near duplicates, which are not listed separately."""
    preferences: Mapping[str, float] = field(default_factory=dict[str, float])
    """The amount that each preference adds to the score; may be negative."""
    relevance: float | None = None
    """The probability that it helps with the cue, 0 to 1, comparable across scopes and days; None if one channel ranks
    alone."""
    scope: str = ""
    """Its scope, as named in `also`; empty for the own scope."""


class CandidateOutcome(StrEnum):
    """Outcome of a candidate."""

    HIT = "hit"
    DUPLICATE = "duplicate"
    """A near duplicate of a hit, not listed separately."""
    DROPPED = "dropped"
    """It was among the best, but was left out: the judge dropped it, or it no longer existed."""
    BELOW = "below"
    """It ranked below the limit."""


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate's rank and the reasons."""

    id: UUID
    fate: CandidateOutcome
    rank: int
    """The place among the hits, 1 for the best; 0 if it is not a hit."""
    score: float
    channels: Mapping[str, ChannelScore]
    """Each channel's own score, and its share of the total score."""
    preferences: Mapping[str, float] = field(default_factory=dict[str, float])
    """The amount that each preference adds to the score; may be negative."""
    relevance: float | None = None
    """The probability that it helps with the cue."""
    features: Features | None = None
    """Its properties in the ranking, in addition to its scores."""
    duplicates: tuple[UUID, ...] = ()
    before: int | None = None
    """In a replay, its place among the original hits; None if it was not a hit."""
    memory: Memory | None = None
    """The present memory of a hit; None if it is not visible."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The input of a ranking and its result."""

    recall_id: UUID | None
    """None if the recall was not saved."""
    asked_at: datetime
    cue: Mapping[str, JSON]
    """The fields of the cue that are not defaults, without its vector."""
    facets: QueryAnalysis
    weights: Mapping[str, float]
    limit: int
    status: Status
    message: str
    methods: Mapping[str, str]
    tallies: Mapping[str, ChannelStats]
    milliseconds: float
    proposals: Mapping[str, tuple[Candidate, ...]]
    """The proposals of each channel, in its own unit, best first."""
    placings: tuple[RankedCandidate, ...]
    """The hits in order, then all other candidates by score."""
    same: bool
    """Whether this version of Recollect ranks the candidates in the same way as before."""


@dataclass(frozen=True, slots=True)
class RecallResult:
    """Result of a recall: ranked hits and how each channel searched."""

    hits: tuple[Hit, ...]
    methods: Mapping[str, str]
    status: Status = Status.OK
    message: str = ""
    accessed: tuple[UUID, ...] = ()
    """The hits whose access was recorded."""
    tallies: Mapping[str, ChannelStats] = field(default_factory=dict[str, ChannelStats])
    milliseconds: float = 0.0
    facets: QueryAnalysis = field(default_factory=QueryAnalysis)
    """The analysis of the cue."""
    recall_id: UUID | None = None
    """The ID to explain and replay the recall, if it was saved."""
    explanation: Explanation | None = None
    """Its explanation, if the cue requests it."""


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
