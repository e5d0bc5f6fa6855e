"""Values of a block: memories as text for a prompt, line by line, each at its level of detail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.models.memories import JSON, Kind
from recollect.models.recall import Explanation, Status


class DetailLevel(StrEnum):
    """How much of a memory is shown."""

    FULL = "full"
    """The whole text; for a summary also some of its sources."""
    COMPACT = "compact"
    """The beginning, up to a few sentences; for a summary fewer sources."""
    ABSTRACT = "abstract"
    """The beginning, up to one sentence; for a summary no sources."""


@dataclass(frozen=True, slots=True)
class BlockLine:
    """One memory as a line of a block."""

    short_id: str
    """The ID to cite the line; unique in the block, and in the conversation if one is given."""
    memory_id: UUID
    kind: Kind
    level: DetailLevel
    occurred_at: datetime
    text: str
    """The text in the block: a line, and an indented line for each shown source."""
    tokens: int
    score: float
    """The score of the recall; 0 for memories that only an earlier block showed."""
    evidence: tuple[UUID, ...]
    """The memories that it is based on."""
    again: bool = False
    """Whether it was already shown in the conversation."""
    pinned: bool = False
    """Whether it is included because it is pinned, independent of the cue."""


@dataclass(frozen=True, slots=True)
class BudgetPart:
    """Tokens granted to and used by one part of a prompt."""

    granted: int
    used: int


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """The final division of a prompt's token budget."""

    history: BudgetPart
    memories: BudgetPart
    summary: BudgetPart


class OmitReason(StrEnum):
    """Why a recalled memory is omitted."""

    NO_ROOM = "no_room"
    LIMIT = "limit"
    """The maximum number of memories is reached."""
    IN_HISTORY = "in_history"
    """The history or the user's message contains it."""
    REPEATED = "repeated"
    """Another memory or the summary has the same content."""
    IRRELEVANT = "irrelevant"
    """It is unlikely to help."""


@dataclass(frozen=True, slots=True)
class OmittedHit:
    """A recalled memory that the prompt omits."""

    id: UUID
    score: float
    tokens: int
    """The tokens of its line in full."""
    why: OmitReason


@dataclass(frozen=True, slots=True)
class Omitted:
    """The memories and messages that a prompt omits."""

    hits: tuple[OmittedHit, ...]
    """Recalled memories, best first."""
    turns: int
    """Number of older turns that are left out; for a very long thread, a lower bound."""
    tokens: int
    """The tokens of these turns."""


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """Relevant memories as text within a token budget, and its lines."""

    text: str
    """Heading, tags and lines, grouped by kind; empty if there are no memories."""
    lines: tuple[BlockLine, ...]
    """In the order of the text."""
    messages: tuple[Mapping[str, JSON], ...]
    """The text as one system message of an OpenAI-style `messages` array; empty if there are no memories."""
    tokens: int
    """The tokens of that message."""
    budget: int
    tokenizer: str
    left_out: int = 0
    """Number of recalled memories that did not fit."""
    not_repeated: int = 0
    """Number of recalled memories that are left out because the conversation already showed them."""
    methods: Mapping[str, str] = field(default_factory=dict[str, str])
    """How each channel of the recall searched."""
    status: Status = Status.OK
    """Status of the recall."""
    message: str = ""
    recall_id: UUID | None = None
    """The ID to explain and replay the recall, if it was saved."""
    pinned_left_out: tuple[UUID, ...] = ()
    """Pinned memories that did not fit, the newest first."""
    explanation: Explanation | None = None
    """Explanation of the recall, if the cue requests it."""

    def find(self, short_id: str) -> BlockLine | None:
        """Find the line with a short ID, which may have brackets."""
        wanted = short_id.strip().strip("[]").lower()
        return next((line for line in self.lines if line.short_id == wanted), None)
