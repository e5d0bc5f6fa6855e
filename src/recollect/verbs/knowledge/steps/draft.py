"""What every step is given (StepContext) and the result that the steps accumulate (Draft)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

from recollect.models.conversations import Message
from recollect.models.knowledge import Entity, Fact, Mention, ParsedExtraction, Segment, Statement
from recollect.models.memories import Embedding
from recollect.models.service import Caller, Scope
from recollect.store.database.pool import Connection
from recollect.store.knowledge.segments import NO_RUN
from recollect.store.service.scopes import Place
from recollect.verbs.knowledge.steps.staged import Staged
from recollect.verbs.parts import Parts

RUNNING = UUID(int=0)
"""Stands for the id of a stretch that is no segment yet."""
USUAL_IMPORTANCE = 5

Write: TypeAlias = Callable[[Connection, int], Awaitable[None]]
"""What is written for a segment, in the one transaction that applies it; it is given the scope's number."""


class Stage(StrEnum):
    """What a step works on: the running messages of a conversation, or one segment that has closed."""

    CONVERSATION = "conversation"
    SEGMENT = "segment"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Which messages of a conversation a draft is about."""

    id: UUID
    """The segment's; RUNNING before there is one."""
    conversation: str
    first_number: int
    last_number: int


@dataclass(frozen=True, slots=True)
class Draft:
    """What is known of a run of messages so far; each step fills in its part and leaves the rest as it is."""

    segment: Stretch
    messages: tuple[Message, ...]
    """In the order in which they were said."""
    vectors: Mapping[UUID, Embedding] = field(default_factory=dict[UUID, Embedding])
    """Of the messages that have one; only while a conversation is cut into segments."""
    labels: Mapping[UUID, str] = field(default_factory=dict[UUID, str])
    """What each user's message is about; only while a conversation is cut into segments."""
    closed: tuple[Segment, ...] = ()
    """What the step that cuts found to have come to its end."""
    summary: str = ""
    label: str = ""
    paths: tuple[tuple[str, ...], ...] = ()
    keywords: tuple[str, ...] = ()
    importance: int = USUAL_IMPORTANCE
    mentions: tuple[Mention, ...] = ()
    statements: tuple[Statement, ...] = ()
    shown: tuple[Fact, ...] = ()
    """The facts that the model was shown, in the order of their numbers, which begin with 1."""
    resolved: Mapping[str, Entity | None] = field(default_factory=dict[str, "Entity | None"])
    """By normalised name: the entity that the scope has already, None for a new one."""
    writes: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentExtraction:
    """What a model made of a segment, and the facts that it was shown for it."""

    parsed: ParsedExtraction
    shown: tuple[Fact, ...] = ()


Extractor: TypeAlias = Callable[[Draft], Awaitable[SegmentExtraction | None]]


async def no_extraction(_: Draft) -> SegmentExtraction | None:
    """Say that there is no model to ask."""
    return None


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step works with; made for one conversation or one segment."""

    parts: Parts
    caller: Caller
    scope: Scope
    scope_id: int
    place: Place
    now: datetime
    zone: tzinfo = UTC
    """Where dates without an offset are meant."""
    extractor: Extractor = no_extraction
    since: datetime | None = None
    """Since when nothing was appended to the conversation, where it may have fallen silent."""
    staged: Staged | None = None
    """What a run over history has made so far; None where what is learned is believed at once."""
    budgeted: bool = True
    """Whether the model is asked only while tokens of the day are left."""

    @property
    def run_id(self) -> UUID:
        """Give what extractions are kept under."""
        return self.staged.run_id if self.staged else NO_RUN

    async def extract(self, draft: Draft) -> SegmentExtraction | None:
        """Give what the model makes of the segment: asked when the first step wants it, once; None without a model."""
        return await self.extractor(draft)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of enrichment: its name, what it works on, and the function that takes it."""

    name: str
    stage: Stage
    run: Callable[[StepContext, Draft], Awaitable[Draft]]
