"""Values of recall: from a cue to hits with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from uuid import UUID

from recollect.loading import own_zone
from recollect.models.memories import JSON, Embedding, Kind, Memory, RecallState, Role


class Mode(StrEnum):
    """How the stream channel computes recency."""

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
    NOTHING_RELEVANT = "nothing_relevant"
    """Something was found, and nothing of it is likely to help."""
    ERROR = "error"


class Script(StrEnum):
    """The script that dominates a text, as far as ranking needs it."""

    WORDS = "words"
    CJK = "cjk"


@dataclass(frozen=True, slots=True)
class Weighing:
    """How the stream channel weighs its three factors; what is None is taken from the agent's profile."""

    mode: Mode | None = None
    recency: float | None = None
    similarity: float | None = None
    importance: float | None = None
    gains: tuple[float, float, float] | None = None
    """The factors by which the three weights are multiplied: for recency, similarity, importance."""
    decay: float | None = None
    """The decay of recency: per rank, or per hour in mode `paper`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a caller restricts a read by: every channel and every list obeys it before it limits its answer."""

    kinds: tuple[Kind, ...] = ()
    """Only memories of these kinds; of all kinds if empty."""
    conversations: tuple[str, ...] = ()
    """Only messages of these conversations."""
    roles: tuple[Role, ...] = ()
    """Only messages of these roles."""
    speakers: tuple[str, ...] = ()
    """Only what these have said; names are compared as those of entities are."""
    origins: tuple[str, ...] = ()
    """Only what came in by these ways, as `origin` of a memory names them."""
    topics: tuple[str, ...] = ()
    """Paths of topics, as `a->b->c`: only what is filed there. A recall puts that first, and restricts with
    `topics_only`."""
    below: bool = False
    """Whether what lies below these topics counts as theirs."""
    topics_only: bool = False
    """Whether a recall finds only what is filed under these topics, as every list does."""
    since: datetime | None = None
    """Only what happened then or later."""
    until: datetime | None = None
    """Only what happened before."""
    min_trust: int = 0
    """Only memories that are trusted at least so much."""
    min_importance: float = 0.0
    """Only memories that are at least so important, from 1 to 10."""
    as_of: datetime | None = None
    """What was stored by then, in the versions that were believed; now if None."""
    at: datetime | None = None
    """What was true in the world then, or had happened; if None, what is not over at the other time."""
    pinned: bool | None = None
    """Only what is pinned, or only what is not; both if None."""
    state: RecallState | None = None
    """Only what is in this state now; if None, a recall finds what is current; lists have archived and faded, too."""
    where: tuple[str, ...] = ()
    """Conditions on metadata, as `project == alpha`, that all must hold. The operators are ==, !=, <, <=, >, >=, in,
    contains and exists; behind them stands JSON, or a text as it is."""

    @property
    def past(self) -> bool:
        """Tell whether either time is named, so that versions outside the indexes must be read, too."""
        return self.as_of is not None or self.at is not None

    @property
    def outside(self) -> bool:
        """Tell whether the state is one that the indexes do not hold."""
        return self.state is not None and self.state is not RecallState.CURRENT

    @property
    def left(self) -> bool:
        """Tell whether memories may be asked for that have left the indexes."""
        return self.past or self.outside

    @property
    def named(self) -> tuple[str, ...]:
        """List the fields that are set; defaults restrict nothing."""
        given = READ_FIELDS(self)
        if given == UNRESTRICTED:
            return ()
        return tuple(name for name, one, usual in zip(FIELDS, given, UNRESTRICTED, strict=True) if one != usual)


FIELDS = tuple(each.name for each in fields(Filter) if each.name not in {"below", "topics_only"})
"""The fields that restrict; the others say how one of them does."""
UNRESTRICTED = tuple(getattr(Filter(), name) for name in FIELDS)
"""The defaults of a filter's fields: to ask the class for them takes longer than to compare them."""
READ_FIELDS = attrgetter(*FIELDS)
EVERYTHING = Filter()
MOST_CONDITIONS = 16
"""How many `where` may hold."""


@dataclass(frozen=True, slots=True)
class Cue(Filter):
    """What triggers a recall, and what it is restricted to."""

    text: str = ""
    embedding: Embedding | None = None
    limit: int | None = None
    channels: tuple[str, ...] = ()
    """Which ways of recalling to use; the usual ones if empty."""
    weighing: Weighing = Weighing()
    touch: bool = True
    """Whether the hits count as accessed."""
    now: datetime | None = None
    """The moment of the recall, for simulations with a clock of their own."""
    zone: str = field(default_factory=own_zone)
    """The IANA name of the asker's time zone: what "yesterday" means depends on it; that of this machine by default."""
    consult: bool | None = None
    """Whether the chat model also reads the cue, for topics and days that rules do not find; as the profile says if
    None, and else not."""
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """What channels and preferences weigh in this recall, by name; the usual weights for all that is not named."""
    judge: bool | None = None
    """Whether the chat model judges the hits and drops those that are of no use; as the profile says if None, and else
    not."""
    min_relevance: float | None = None
    """Only hits that help with the cue at least so likely, 0 to 1. If None, a recall finds all, and a prompt or a block
    leaves out what is hardly likely to."""
    keep: bool | None = None
    """Whether the recall is kept, to be explained and replayed; as the service is configured if None."""
    explain: bool = False
    """Whether the answer says how it came about, without being kept."""
    also: tuple[str, ...] = ()
    """Up to four more scopes of the tenant to read beside the own one, each as `agent` or `agent/user`; as the profile
    says if empty."""

    @property
    def blank(self) -> bool:
        """Tell whether it has nothing to be reminded by: it lists what its filter admits."""
        return self.embedding is None and not self.text.strip()

    @property
    def filter(self) -> Filter:
        """Return the filter of the cue alone: without topics that only say what comes first."""
        named = self.named if self.topics_only else tuple(name for name in self.named if name != "topics")
        return Filter(**{name: getattr(self, name) for name in named}, below=self.below) if named else EVERYTHING


class Asks(StrEnum):
    """What a cue asks for, apart from its words."""

    TIME = "time"
    """When something happened."""
    PERSON = "person"
    """Who somebody is, or did it."""
    NUMBER = "number"
    """How many or how much."""
    OVERVIEW = "overview"
    """The overall picture: all there is, or how it went."""
    LATEST = "latest"
    """What is newest: the only cues for which age counts."""


@dataclass(frozen=True, slots=True)
class Period:
    """A time that a cue names, from its start up to its end, and the words that name it."""

    start: datetime
    end: datetime
    phrase: str = ""


@dataclass(frozen=True, slots=True)
class Facets:
    """What was read from a cue, before anything was looked for."""

    script: Script = Script.WORDS
    keywords: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Which of the speakers of the candidates are named, in normalised form."""
    topics: tuple[str, ...] = ()
    periods: tuple[Period, ...] = ()
    asks: frozenset[Asks] = frozenset()
    topics_first: bool = False
    """Whether the caller named the topics, so that what is filed there comes first."""
    actor: str = ""
    """Of several who are named, the one who is named first: they did it. Empty where they are named together."""


@dataclass(frozen=True, slots=True)
class Factors:
    """What the stream channel's score is made of: three factors scaled to 0..1 over all candidates."""

    recency: float
    similarity: float
    importance: float
    rank: int
    """The rank by last access, 1 for what recency favours most; 0 for too far down to matter."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What a channel looked at: how many candidates, and the lowest and highest score."""

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
class Features:
    """What ranking knows of a candidate in addition to its scores: who said it and when, its form, its position."""

    occurred_at: datetime
    kind: Kind
    speaker: str = ""
    """Who said it, in normalised form."""
    session: str = ""
    """Its session: its conversation, or the day it happened on."""
    place: float = 0.0
    """Its position in the session; memories up to two apart are neighbours."""
    cosine: float | None = None
    """Its cosine with the cue's vector, where both have one."""
    terms: tuple[int, ...] = ()
    """Which terms of the cue it has, by their places in the cue."""
    length: int = 0
    """How many terms it has."""
    importance: float = 5.0
    accessed_at: datetime | None = None
    """When it was last accessed, where that counts."""
    assistant: bool = False
    """Whether an assistant said it."""
    asks: bool = False
    """Whether it ends as a question."""
    tells_time: bool = False
    tells_number: bool = False
    is_instruction: bool = False
    """Whether it is an instruction: what is always, or never, to be done."""
    named: bool = False
    """Whether the cue names its speaker; or whom it is about, where it has none."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate after fusion, before its memory is fetched."""

    id: UUID
    score: float
    channels: Mapping[str, ChannelScore]
    preferences: Mapping[str, float] = field(default_factory=dict[str, float])
    """What each preference adds to the score, or takes from it."""
    relevance: float | None = None
    """How likely it helps with the cue; None where one channel ranks by itself."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that survived fusion, with the reasons."""

    memory: Memory
    score: float
    channels: Mapping[str, ChannelScore]
    duplicates: tuple[UUID, ...] = ()
    """Memories that say nearly the same and are not listed for it."""
    preferences: Mapping[str, float] = field(default_factory=dict[str, float])
    """What each preference adds to the score, or takes from it."""
    relevance: float | None = None
    """How likely it helps with the cue, 0 to 1, whatever the scope or the day; None where one channel ranks alone."""
    scope: str = ""
    """Where it was read, as `also` names it; empty for the own scope."""


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
class Explanation:
    """All that a recall's ranking was made from, and how it came about."""

    recall_id: UUID | None
    """None if the recall was not kept."""
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
    facets: Facets = field(default_factory=Facets)
    """What was read from the cue."""
    recall_id: UUID | None = None
    """The id by which the recall is explained and replayed, if it was kept."""
    explanation: Explanation | None = None
    """How it came about, if the cue asks for that."""
