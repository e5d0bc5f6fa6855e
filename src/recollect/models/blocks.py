"""Values of a block: memories as text for a prompt, line by line, each at its level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.models.memories import JSON, Kind, Memory
from recollect.models.recall import Explanation, Status


class Level(StrEnum):
    """How much of a memory a line shows."""

    FULL = "full"
    """All it says; of a summary also some of what it was made from."""
    COMPACT = "compact"
    """How it begins, up to a few sentences; of a summary less of what it was made from."""
    ABSTRACT = "abstract"
    """How it begins, up to a sentence; of a summary nothing of what it was made from."""


@dataclass(frozen=True, slots=True)
class Line:
    """One memory as a block shows it."""

    short_id: str
    """The line is cited by it; it stands for one memory in the block, and in the conversation if one is named."""
    memory_id: UUID
    kind: Kind
    level: Level
    occurred_at: datetime
    text: str
    """As it stands in the block: a line, and an indented one for each source that it shows."""
    tokens: int
    score: float
    """The score of the recall; 0 for what only an earlier block showed."""
    evidence: tuple[UUID, ...]
    """The memories that it was made from."""
    again: bool = False
    """Whether the conversation was shown it before."""
    pinned: bool = False
    """Whether it is there because it is pinned, independent of the cue."""


@dataclass(frozen=True, slots=True)
class ShareUse:
    """What one part of a prompt could have cost, with what the others left, and what it costs, in tokens."""

    granted: int
    used: int


@dataclass(frozen=True, slots=True)
class PromptShares:
    """How the budget of a prompt was divided in the end."""

    history: ShareUse
    memories: ShareUse
    summary: ShareUse


class LeftOutReason(StrEnum):
    """Why a prompt does not show a memory that was recalled for it."""

    NO_ROOM = "no_room"
    LIMIT = "limit"
    """As many are shown as may be."""
    IN_HISTORY = "in_history"
    """The history says it, or the user just now."""
    REPEATED = "repeated"
    """Another memory or the summary says the same."""
    IRRELEVANT = "irrelevant"
    """It is hardly likely to help."""


@dataclass(frozen=True, slots=True)
class LeftOutHit:
    """A memory that was recalled for a prompt and is not shown."""

    id: UUID
    score: float
    tokens: int
    """What its line would cost in full."""
    why: LeftOutReason


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a prompt leaves out."""

    hits: tuple[LeftOutHit, ...]
    """Recalled memories, best first."""
    turns: int
    """How many older turns of the thread are left out; of a very long thread, at least so many."""
    tokens: int
    """What they would cost."""


@dataclass(frozen=True, slots=True)
class Block:
    """What is remembered, as a text within a budget, and the lines that it is made of."""

    text: str
    """Heading, tags and lines, grouped by kind; empty where nothing is remembered."""
    lines: tuple[Line, ...]
    """In the order of the text."""
    messages: tuple[Mapping[str, JSON], ...]
    """The same as one system message of an OpenAI-style `messages` array; none where nothing is remembered."""
    tokens: int
    """What that message costs."""
    budget: int
    tokenizer: str
    left_out: int = 0
    """How many memories were recalled that found no room."""
    not_repeated: int = 0
    """How many of the recalled memories are left out because the conversation was shown them before."""
    methods: Mapping[str, str] = field(default_factory=dict[str, str])
    """How each channel of the recall found its candidates."""
    status: Status = Status.OK
    """How the recall went."""
    message: str = ""
    recall_id: UUID | None = None
    """The id by which the recall is explained and replayed, if it was kept."""
    pinned_left_out: tuple[UUID, ...] = ()
    """The pinned memories that found no room, the newest first."""
    explanation: Explanation | None = None
    """How the recall came about, if the cue asks for that."""

    def find(self, short_id: str) -> Line | None:
        """Find the line that a short id stands for, written with or without its brackets."""
        wanted = short_id.strip().strip("[]").lower()
        return next((line for line in self.lines if line.short_id == wanted), None)


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a short id stands for: a memory, and the memories that it was made from as far as they are in sight."""

    memory: Memory
    evidence: tuple[Memory, ...]
