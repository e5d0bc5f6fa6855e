"""Store the segments of conversations: read open messages, close segments, and store their outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.core.agents.reflection import ReflectionBacklog
from recollect.core.service.numbers import tenant_of
from recollect.core.text.tokens import ESTIMATE
from recollect.models.conversations import Message
from recollect.models.knowledge import SegmentEnd, SegmentRecord, SegmentState
from recollect.models.service import Scope
from recollect.store.conversations.conversations import to_read
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.memories.columns import Row
from recollect.store.service.jobs import defer_enrichment
from recollect.store.service.scopes import names

QUERIES = load_queries(__file__)
MAX_MESSAGES_READ = 500
"""Maximum number of messages to read together: a stretch without a change of topic ends there."""
VISIBLE = (None, "archived")
NO_RUN = UUID(int=0)
"""The run ID of extractions outside of runs."""


@dataclass(frozen=True, slots=True)
class UnsegmentedConversation:
    """A conversation with messages that are not in a segment yet."""

    id: str
    segmented_number: int
    last_number: int
    idle_since: datetime
    now: datetime


@dataclass(frozen=True, slots=True)
class MessageRun:
    """Consecutive messages: the visible ones, the last number read, and whether it is the end."""

    messages: tuple[Message, ...]
    last_number: int
    whole: bool


@dataclass(frozen=True, slots=True)
class ClosingSegment:
    """A segment to close: its last message, the reason, and its label."""

    last_number: int
    ending: SegmentEnd
    similarity: float | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class ClosedSegment:
    """A segment that waits for enrichment."""

    id: UUID
    conversation: str
    first_number: int
    last_number: int
    label: str
    attempts: int
    """How often a request to a model failed."""


@dataclass(frozen=True, slots=True)
class SegmentOutcome:
    """The outcome of a segment."""

    state: SegmentState
    label: str = ""
    reason: str = ""
    summary_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class NewExtraction:
    """What a model returned for messages, with its prompt version and its run."""

    segment_id: UUID
    content: Mapping[str, Any]
    model: str
    prompt_version: str
    sources: Sequence[UUID]
    run_id: UUID = NO_RUN


async def list_running(database: Database, scope_id: int) -> list[UnsegmentedConversation]:
    """List a scope's conversations with messages in no segment, when all running writes have ended."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["await_writers"], {"scope_id": scope_id})
        found = await connection.execute(QUERIES["running"], {"scope_id": scope_id})
        return [UnsegmentedConversation(**row) for row in await found.fetchall()]


async def find_running(database: Database, scope_id: int, conversation: str) -> UnsegmentedConversation | None:
    """Find a conversation, if it has messages in no segment."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["running_of"], {"scope_id": scope_id, "conversation": conversation})
    row = await found.fetchone()
    return UnsegmentedConversation(**row) if row else None


async def read_messages(
    database: Database, scope_id: int, conversation: str, first_number: int, last_number: int
) -> MessageRun:
    """Read consecutive messages of a conversation, at most `MAX_MESSAGES_READ`."""
    parameters = build_range_parameters(scope_id, conversation, first_number, last_number)
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["messages"], parameters)
    rows = await found.fetchall()
    said = [to_read(row, ESTIMATE).message for row in rows if row["withheld"] in VISIBLE]
    whole = len(rows) < MAX_MESSAGES_READ
    return MessageRun(tuple(said), last_number if whole else rows[-1]["number"], whole)


def build_range_parameters(scope_id: int, conversation: str, first_number: int, last_number: int) -> dict[str, object]:
    """Return a stretch of a conversation as parameters."""
    numbers = {"first_number": first_number, "last_number": last_number, "limit": MAX_MESSAGES_READ}
    return {"scope_id": scope_id, "conversation": conversation, **numbers}


async def is_same(connection: Connection, stretch: Mapping[str, object], read: Sequence[Message]) -> bool:
    """Return whether a stretch is still as it was read; call it while the scope is locked."""
    found = await (await connection.execute(QUERIES["in_sight"], stretch)).fetchall()
    return [row["id"] for row in found] == [message.id for message in read]


async def find_known(database: Database, scope_id: int, called: Sequence[str], limit: int) -> list[UUID]:
    """Find the entities that have one of these normalized names."""
    async with database.reading(tenant_of(scope_id)) as connection:
        parameters = {"scope_id": scope_id, "names": list(called), "limit": limit}
        found = await connection.execute(QUERIES["known"], parameters)
    return [row["entity_id"] for row in await found.fetchall()]


async def close_segments(
    database: Database,
    scope_id: int,
    conversation: UnsegmentedConversation,
    spoken: MessageRun,
    closings: Sequence[ClosingSegment],
) -> bool:
    """Close segments in order and move the conversation's position; False if the conversation has changed.

    A last segment that was closed at the end must still be at the end, or new messages would be cut off. All messages
    that were read must still exist, or a label could contain forgotten text.
    """
    stretch = build_range_parameters(scope_id, conversation.id, conversation.segmented_number + 1, spoken.last_number)
    place = {"scope_id": scope_id, "conversation": conversation.id, "segmented_number": conversation.segmented_number}
    async with database.transaction(tenant_of(scope_id)) as connection:
        await lock_scope(connection, scope_id)
        held = await (await connection.execute(QUERIES["hold_running"], place)).fetchone()
        if held is None or (closings[-1].last_number == conversation.last_number != held["last_number"]):
            return False
        if not await is_same(connection, stretch, spoken.messages):
            return False
        await write_segments(connection, place, closings)
        await connection.execute(QUERIES["advance"], place | {"number": closings[-1].last_number})
    return True


async def write_segments(
    connection: Connection, place: Mapping[str, object], closings: Sequence[ClosingSegment]
) -> None:
    """Write segments in order, starting after the place's `segmented_number`."""
    after = place["segmented_number"]
    for closing in closings:
        given = {
            "after": after,
            "last_number": closing.last_number,
            "ending": closing.ending.value,
            "similarity": closing.similarity,
            "label": closing.label,
        }
        await connection.execute(QUERIES["close"], {**place, **given})
        after = closing.last_number


async def skip_missing(database: Database, scope_id: int, conversation: UnsegmentedConversation, number: int) -> None:
    """Move past messages that no longer exist, unless they were restored."""
    stretch = build_range_parameters(scope_id, conversation.id, conversation.segmented_number + 1, number)
    parameters = {
        "scope_id": scope_id,
        "conversation": conversation.id,
        "segmented_number": conversation.segmented_number,
    }
    async with database.transaction(tenant_of(scope_id)) as connection:
        await lock_scope(connection, scope_id)
        held = await (await connection.execute(QUERIES["hold_running"], parameters)).fetchone()
        if held and await is_same(connection, stretch, ()):
            await connection.execute(QUERIES["advance"], parameters | {"number": number})


async def find_next(database: Database, scope_id: int) -> ClosedSegment | None:
    """Find the segment of a scope that closed first and still waits for enrichment."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["next"], {"scope_id": scope_id})
    row = await found.fetchone()
    return ClosedSegment(conversation=row.pop("conversation_id"), **row) if row else None


async def count_closed(database: Database, scope_id: int) -> int:
    """Count the segments of a scope that wait for enrichment."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["count_closed"], {"scope_id": scope_id})
    return sum([row["waiting"] for row in await found.fetchall()])


async def count_attempt(database: Database, scope_id: int, segment_id: UUID, change: int = 1) -> None:
    """Count an attempt to ask a model about a segment, or subtract one."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        parameters = {"scope_id": scope_id, "segment_id": segment_id, "change": change}
        await connection.execute(QUERIES["count_attempt"], parameters)


async def find_extraction(
    database: Database, scope_id: int, segment_id: UUID, run_id: UUID = NO_RUN
) -> Mapping[str, Any]:
    """Find the extraction of a segment; empty if there is none yet."""
    parameters = {"scope_id": scope_id, "segment_id": segment_id, "run_id": run_id}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["extraction"], parameters)
    row = await found.fetchone()
    return row["content"] if row else {}


async def keep_extraction(database: Database, scope_id: int, extraction: NewExtraction) -> None:
    """Store an extraction, unless some of its messages were forgotten."""
    parameters = {
        "scope_id": scope_id,
        "segment_id": extraction.segment_id,
        "run_id": extraction.run_id,
        "model": extraction.model,
        "prompt_version": extraction.prompt_version,
        "content": Jsonb(dict(extraction.content)),
        "ids": list(extraction.sources),
    }
    async with database.transaction(tenant_of(scope_id)) as connection:
        # Forgetting locks the scope: existing messages exist until this is written, and delete it with them later.
        await lock_scope(connection, scope_id)
        await connection.execute(QUERIES["keep_extraction"], parameters)


async def keep_matches(
    database: Database, scope_id: int, segment_id: UUID, run_id: UUID, matches: Mapping[str, Sequence[str]]
) -> None:
    """Store with an extraction the entities that a model matched to its names."""
    parameters = {"scope_id": scope_id, "segment_id": segment_id, "run_id": run_id}
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["keep_matches"], parameters | {"matches": Jsonb(dict(matches))})


async def lock_scope(connection: Connection, scope_id: int) -> None:
    """Lock a scope until the transaction ends."""
    await connection.execute(QUERIES["await_writers"], {"scope_id": scope_id})


async def lock_closed_segment(
    connection: Connection, scope_id: int, segment: ClosedSegment, read: Sequence[Message]
) -> bool:
    """Return whether a closed segment still waits, and has the messages that were read; lock it."""
    parameters = {"scope_id": scope_id, "segment_id": segment.id}
    if await (await connection.execute(QUERIES["lock_closed_segment"], parameters)).fetchone() is None:
        return False
    stretch = build_range_parameters(scope_id, segment.conversation, segment.first_number, segment.last_number)
    return await is_same(connection, stretch, read)


async def supersede_summary(connection: Connection, scope_id: int, segment_id: UUID, summary_id: UUID) -> None:
    """Make a summary the current one of a segment, and supersede the previous one."""
    parameters = {"scope_id": scope_id, "segment_id": segment_id, "summary_id": summary_id}
    await connection.execute(QUERIES["close_belief"], parameters)
    await connection.execute(QUERIES["add_belief"], parameters)


async def record_outcome(
    connection: Connection, scope_id: int, segment: ClosedSegment, outcome: SegmentOutcome
) -> None:
    """Store the outcome of a segment, and the summary of its conversation."""
    parameters = {
        "scope_id": scope_id,
        "segment_id": segment.id,
        "conversation": segment.conversation,
        "state": outcome.state.value,
        "label": outcome.label,
        "reason": outcome.reason,
        "summary_id": outcome.summary_id,
    }
    await connection.execute(QUERIES["record_outcome"], parameters)
    await connection.execute(QUERIES["apply_extraction"], parameters)
    if outcome.summary_id is not None:
        await follow_summary(connection, scope_id, segment.conversation)


async def rate(connection: Connection, scope_id: int, ratings: Mapping[UUID, int]) -> None:
    """Store a model's importance ratings of messages, except those that their caller rated."""
    if ratings:
        given = {"scope_id": scope_id, "ids": list(ratings), "importances": list(ratings.values())}
        await connection.execute(QUERIES["rate"], given)


async def gather(
    connection: Connection, scope_id: int, segment_id: UUID, ids: Sequence[UUID]
) -> ReflectionBacklog | None:
    """Add messages to the backlog of a reflection, when their segment is enriched for the first time."""
    parameters = {"scope_id": scope_id, "segment_id": segment_id, "ids": list(ids)}
    row = await (await connection.execute(QUERIES["gather"], parameters)).fetchone()
    return ReflectionBacklog(**row) if row else None


async def enter(connection: Connection, scope_id: int, events: Sequence[Row], moment: datetime) -> None:
    """Enter events in the journal of their scope, in the transaction that stores them; a job reads it later."""
    parameters = {
        "scope_id": scope_id,
        "moment": moment,
        "ids": [event.id for event in events],
        "moments": [event.occurred_at for event in events],
    }
    await connection.execute(QUERIES["enter"], parameters)
    await defer_enrichment(connection, scope_id)


async def follow_summary(connection: Connection, scope_id: int, conversation: str) -> None:
    """Set the summary of a conversation to that of its newest segment with a summary."""
    await connection.execute(QUERIES["newest_summary"], {"scope_id": scope_id, "conversation": conversation})


async def page(database: Database, scope: Scope, conversation: str, after: int, limit: int) -> list[SegmentRecord]:
    """Read the segments of a conversation that begin after a message, in order."""
    bounds = {"conversation": conversation, "after": after, "limit": limit}
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["page"], {**names(scope), **bounds})
    return [to_segment(row) for row in await found.fetchall()]


def to_segment(row: DictRow) -> SegmentRecord:
    """Turn a row into a segment."""
    return SegmentRecord(**{**row, "ending": SegmentEnd(row["ending"]), "state": SegmentState(row["state"])})


async def enqueue(database: Database, scope_id: int) -> None:
    """Queue a job for a scope."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        await defer_enrichment(connection, scope_id)
