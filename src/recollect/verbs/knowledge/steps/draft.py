"""What every step is given (StepContext) and the result that the steps accumulate (Draft)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

from recollect.models.conversations import Message
from recollect.models.knowledge import Ending, Entity, Fact, Mention, ParsedExtraction, Segment, Statement
from recollect.models.memories import Role
from recollect.models.service import Caller, Scope
from recollect.store.database.pool import Connection
from recollect.store.knowledge.segments import NO_RUN
from recollect.store.service.scopes import Place
from recollect.verbs.knowledge.steps.staged import Staged
from recollect.verbs.parts import Parts

SPEAKING = frozenset({Role.USER, Role.ASSISTANT})
"""Whose messages tell what a talk is about."""
JOURNAL = ""
"""The name of the conversation that holds the events of a scope: no caller can name it."""
RUNNING = UUID(int=0)
"""The id of a stretch that is no segment yet."""

Write: TypeAlias = Callable[[Connection, int], Awaitable[None]]
"""A write for a segment, in the one transaction that applies it; it gets the scope's number."""


class Stage(StrEnum):
    """What a step works on: the running messages of a conversation, or one closed segment."""

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
    labels: Mapping[UUID, str] = field(default_factory=dict[UUID, str])
    """The label of each user's message; only while a conversation is cut into segments."""
    closed: tuple[Segment, ...] = ()
    """The segments that the step found to be closed."""
    summary: str = ""
    label: str = ""
    paths: tuple[tuple[str, ...], ...] = ()
    keywords: tuple[str, ...] = ()
    importance: int | None = None
    """What a model said of all of it; None where none did."""
    ratings: Mapping[UUID, int] = field(default_factory=dict[UUID, int])
    """How important single messages are, where a model said so."""
    mentions: tuple[Mention, ...] = ()
    statements: tuple[Statement, ...] = ()
    shown: tuple[Fact, ...] = ()
    """The facts that the model was shown, in the order of their numbers, which begin with 1."""
    resolved: Mapping[str, Entity | None] = field(default_factory=dict[str, "Entity | None"])
    """By normalised name: the entity that the scope has already, None for a new one."""
    writes: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentExtraction:
    """What a model said of a segment, and the facts that it was shown."""

    parsed: ParsedExtraction
    shown: tuple[Fact, ...] = ()


Extractor: TypeAlias = Callable[[Draft], Awaitable[SegmentExtraction | None]]


async def no_extraction(_: Draft) -> SegmentExtraction | None:
    """Return None: there is no model to ask."""
    return None


@dataclass(frozen=True, slots=True)
class StepContext:
    """The input of a step; made for one conversation or one segment."""

    parts: Parts
    caller: Caller
    scope: Scope
    scope_id: int
    place: Place
    now: datetime
    zone: tzinfo = UTC
    """The zone of dates without an offset."""
    extractor: Extractor = no_extraction
    since: datetime | None = None
    """Since when nothing was appended to the conversation, if it may have become silent."""
    asked: Ending | None = None
    """Why the conversation has come to its end for now, if somebody says so."""
    staged: Staged | None = None
    """What a run over history has stated so far; None outside of runs."""
    budgeted: bool = True
    """Whether the model is asked only while tokens of the day are left."""

    @property
    def run_id(self) -> UUID:
        """Return the run that extractions are stored under."""
        return self.staged.run_id if self.staged else NO_RUN

    async def extract(self, draft: Draft) -> SegmentExtraction | None:
        """Return the extraction of the segment: asked when the first step needs it, once; None without a model."""
        return await self.extractor(draft)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of enrichment: its name, what it works on, and its function."""

    name: str
    stage: Stage
    run: Callable[[StepContext, Draft], Awaitable[Draft]]
