"""The input of every step (StepContext), and the result that the steps accumulate (Draft)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

from recollect.models.conversations import Message
from recollect.models.knowledge import Entity, Fact, Mention, ParsedExtraction, Segment, SegmentEnd, Statement
from recollect.models.memories import Role
from recollect.models.service import Caller, Scope
from recollect.store.database.pool import Connection
from recollect.store.knowledge.segments import NO_RUN
from recollect.store.service.scopes import ScopeHandle
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.knowledge.steps.staged import StagedStatements

SPEAKING = frozenset({Role.USER, Role.ASSISTANT})
"""Roles whose messages show the topic of a conversation."""
JOURNAL = ""
"""The name of the conversation with the events of a scope: no caller can name it."""
RUNNING = UUID(int=0)
"""The ID of a stretch that is not a segment yet."""

Write: TypeAlias = Callable[[Connection, int], Awaitable[None]]
"""A write for a segment, in the one transaction that applies it; it gets the scope's number."""


class Stage(StrEnum):
    """The input of a step: the open messages of a conversation, or one closed segment."""

    CONVERSATION = "conversation"
    SEGMENT = "segment"


@dataclass(frozen=True, slots=True)
class MessageRange:
    """The range of a draft's messages in a conversation."""

    id: UUID
    """The segment's ID; RUNNING before there is one."""
    conversation: str
    first_number: int
    last_number: int


@dataclass(frozen=True, slots=True)
class Draft:
    """The results for a run of messages so far; each step fills in its part and keeps the rest."""

    segment: MessageRange
    messages: tuple[Message, ...]
    """In the order of the conversation."""
    labels: Mapping[UUID, str] = field(default_factory=dict[UUID, str])
    """The label of each user's message; only while a conversation is cut into segments."""
    closed: tuple[Segment, ...] = ()
    """The segments that the step found closed."""
    summary: str = ""
    label: str = ""
    paths: tuple[tuple[str, ...], ...] = ()
    keywords: tuple[str, ...] = ()
    importance: int | None = None
    """A model's rating of all of it; None without a model."""
    ratings: Mapping[UUID, int] = field(default_factory=dict[UUID, int])
    """The importance of single messages, if a model rated them."""
    mentions: tuple[Mention, ...] = ()
    statements: tuple[Statement, ...] = ()
    shown: tuple[Fact, ...] = ()
    """The facts that the model was shown, in the order of their numbers, which start at 1."""
    resolved: Mapping[str, Entity | None] = field(default_factory=dict[str, "Entity | None"])
    """The known entity for each normalized name, None for a new one."""
    writes: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentExtraction:
    """A model's answer about a segment, and the facts that it was shown."""

    parsed: ParsedExtraction
    shown: tuple[Fact, ...] = ()


Extractor: TypeAlias = Callable[[Draft], Awaitable[SegmentExtraction | None]]


async def no_extraction(_: Draft) -> SegmentExtraction | None:
    """Return None: there is no model to ask."""
    return None


@dataclass(frozen=True, slots=True)
class StepContext:
    """The input of a step, created for one conversation or one segment."""

    parts: Dependencies
    caller: Caller
    scope: Scope
    scope_id: int
    place: ScopeHandle
    now: datetime
    zone: tzinfo = UTC
    """The zone of dates without an offset."""
    extractor: Extractor = no_extraction
    since: datetime | None = None
    """The time since which nothing was appended to the conversation, if it may be silent."""
    asked: SegmentEnd | None = None
    """The reason to end the conversation now, if a caller requests it."""
    staged: StagedStatements | None = None
    """The statements of a run over history so far; None outside of runs."""
    budgeted: bool = True
    """Whether the model is asked only while the daily token budget is not used up."""

    @property
    def run_id(self) -> UUID:
        """Return the run whose ID extractions are stored with."""
        return self.staged.run_id if self.staged else NO_RUN

    async def extract(self, draft: Draft) -> SegmentExtraction | None:
        """Return the extraction of the segment, requested once for all steps; None without a model."""
        return await self.extractor(draft)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of enrichment: its name, its stage, and its function."""

    name: str
    stage: Stage
    run: Callable[[StepContext, Draft], Awaitable[Draft]]
