"""Store the segments of conversations: read what is running, close segments, and note their outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.core.agents.reflection import Unreflected
from recollect.core.service.numbers import tenant_of
from recollect.core.text.tokens import ESTIMATE
from recollect.models.conversations import Message
from recollect.models.knowledge import Ending, SegmentState, StoredSegment
from recollect.models.service import Scope
from recollect.store.conversations.conversations import to_read
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.memories.columns import Row
from recollect.store.service.jobs import defer_enrichment
from recollect.store.service.scopes import names

QUERIES = load_queries(__file__)
MOST_READ = 500
"""How many messages are read together: a stretch without any change of topic ends there."""
IN_SIGHT = (None, "archived")
NO_RUN = UUID(int=0)
"""The run id of extractions outside of runs."""


@dataclass(frozen=True, slots=True)
class Unsegmented:
    """A conversation with messages that are in no segment yet."""

    id: str
    segmented_number: int
    last_number: int
    idle_since: datetime
    now: datetime


@dataclass(frozen=True, slots=True)
class Spoken:
    """Consecutive messages: the visible ones, the last number read, and whether there are none after it."""

    messages: tuple[Message, ...]
    last_number: int
    whole: bool


@dataclass(frozen=True, slots=True)
class ClosingSegment:
    """One segment that is about to be closed: up to which message, why, and its label."""

    last_number: int
    ending: Ending
    similarity: float | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """A segment that waits for enrichment."""

    id: UUID
    conversation: str
    first_number: int
    last_number: int
    label: str
    attempts: int
    """How often asking a model failed."""


@dataclass(frozen=True, slots=True)
class SegmentOutcome:
    """The outcome of a segment."""

    state: SegmentState
    label: str = ""
    reason: str = ""
    summary_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class NewExtraction:
    """What a model with a version of the prompt said of messages, and for which run."""

    segment_id: UUID
    content: Mapping[str, Any]
    model: str
    prompt_version: str
    sources: Sequence[UUID]
    run_id: UUID = NO_RUN


async def list_running(database: Database, scope_id: int) -> list[Unsegmented]:
    """List the conversations of a scope with messages in no segment, once every running write has ended."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["await_writers"], {"scope_id": scope_id})
        found = await connection.execute(QUERIES["running"], {"scope_id": scope_id})
        return [Unsegmented(**row) for row in await found.fetchall()]


async def find_running(database: Database, scope_id: int, conversation: str) -> Unsegmented | None:
    """Find a conversation, if it has messages in no segment."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["running_of"], {"scope_id": scope_id, "conversation": conversation})
    row = await found.fetchone()
    return Unsegmented(**row) if row else None


async def read_messages(
    database: Database, scope_id: int, conversation: str, first_number: int, last_number: int
) -> Spoken:
    """Read a stretch of a conversation in order, at most so many messages."""
    parameters = describe(scope_id, conversation, first_number, last_number)
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["messages"], parameters)
    rows = await found.fetchall()
    said = [to_read(row, ESTIMATE).message for row in rows if row["withheld"] in IN_SIGHT]
    whole = len(rows) < MOST_READ
    return Spoken(tuple(said), last_number if whole else rows[-1]["number"], whole)


def describe(scope_id: int, conversation: str, first_number: int, last_number: int) -> dict[str, object]:
    """Return a stretch of a conversation as parameters."""
    numbers = {"first_number": first_number, "last_number": last_number, "limit": MOST_READ}
    return {"scope_id": scope_id, "conversation": conversation, **numbers}


async def is_same(connection: Connection, stretch: Mapping[str, object], read: Sequence[Message]) -> bool:
    """Tell whether a stretch is still as it was read; call it while the scope is locked."""
    found = await (await connection.execute(QUERIES["in_sight"], stretch)).fetchall()
    return [row["id"] for row in found] == [message.id for message in read]


async def find_known(database: Database, scope_id: int, called: Sequence[str], limit: int) -> list[UUID]:
    """Find the entities that have one of these normalised names."""
    async with database.reading(tenant_of(scope_id)) as connection:
        parameters = {"scope_id": scope_id, "names": list(called), "limit": limit}
        found = await connection.execute(QUERIES["known"], parameters)
    return [row["entity_id"] for row in await found.fetchall()]


async def close(
    database: Database, scope_id: int, conversation: Unsegmented, spoken: Spoken, closings: Sequence[ClosingSegment]
) -> bool:
    """Close segments one after the other and move on behind them; False if the conversation has changed meanwhile.

    What is closed up to the end must be the end still: else whatever was said meanwhile would be cut off. And what
    was read must all be there: else a label could say what was forgotten meanwhile.
    """
    stretch = describe(scope_id, conversation.id, conversation.segmented_number + 1, spoken.last_number)
    place = {"scope_id": scope_id, "conversation": conversation.id, "segmented_number": conversation.segmented_number}
    async with database.transaction(tenant_of(scope_id)) as connection:
        await hold_scope(connection, scope_id)
        held = await (await connection.execute(QUERIES["hold_running"], place)).fetchone()
        if held is None or (closings[-1].last_number == conversation.last_number != held["last_number"]):
            return False
        if not await is_same(connection, stretch, spoken.messages):
            return False
        await write_segments(connection, QUERIES["close"], place, closings)
        await connection.execute(QUERIES["advance"], place | {"number": closings[-1].last_number})
    return True


async def write_segments(
    connection: Connection, query: LiteralString, place: Mapping[str, object], closings: Sequence[ClosingSegment]
) -> None:
    """Write segments one after the other, after the place's `segmented_number`."""
    after = place["segmented_number"]
    for closing in closings:
        given = {
            "after": after,
            "last_number": closing.last_number,
            "ending": closing.ending.value,
            "similarity": closing.similarity,
            "label": closing.label,
        }
        await connection.execute(query, {**place, **given})
        after = closing.last_number


async def pass_by(database: Database, scope_id: int, conversation: Unsegmented, number: int) -> None:
    """Move past messages that no longer exist, unless they came back meanwhile."""
    stretch = describe(scope_id, conversation.id, conversation.segmented_number + 1, number)
    parameters = {
        "scope_id": scope_id,
        "conversation": conversation.id,
        "segmented_number": conversation.segmented_number,
    }
    async with database.transaction(tenant_of(scope_id)) as connection:
        await hold_scope(connection, scope_id)
        held = await (await connection.execute(QUERIES["hold_running"], parameters)).fetchone()
        if held and await is_same(connection, stretch, ()):
            await connection.execute(QUERIES["advance"], parameters | {"number": number})


async def find_next(database: Database, scope_id: int) -> Closed | None:
    """Find the segment of a scope that closed first and still waits."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["next"], {"scope_id": scope_id})
    row = await found.fetchone()
    return Closed(conversation=row.pop("conversation_id"), **row) if row else None


async def count_closed(database: Database, scope_id: int) -> int:
    """Count the segments of a scope that wait."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["count_closed"], {"scope_id": scope_id})
    return sum([row["waiting"] for row in await found.fetchall()])


async def count_attempt(database: Database, scope_id: int, segment_id: UUID, change: int = 1) -> None:
    """Count that a model is about to be asked about a segment, or take it back."""
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
    """Store an extraction, unless some of its messages were forgotten meanwhile."""
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
        # Forgetting locks the scope: what is there now is there until this is written, and is deleted with it.
        await hold_scope(connection, scope_id)
        await connection.execute(QUERIES["keep_extraction"], parameters)


async def keep_matches(
    database: Database, scope_id: int, segment_id: UUID, run_id: UUID, matches: Mapping[str, Sequence[str]]
) -> None:
    """Store with an extraction which entities a model matched its names to."""
    parameters = {"scope_id": scope_id, "segment_id": segment_id, "run_id": run_id}
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["keep_matches"], parameters | {"matches": Jsonb(dict(matches))})


async def hold_scope(connection: Connection, scope_id: int) -> None:
    """Lock a scope until the transaction ends."""
    await connection.execute(QUERIES["await_writers"], {"scope_id": scope_id})


async def hold_closed(connection: Connection, scope_id: int, segment: Closed, read: Sequence[Message]) -> bool:
    """Tell whether a segment of a locked scope still waits, and holds just what was read of it."""
    parameters = {"scope_id": scope_id, "segment_id": segment.id}
    if await (await connection.execute(QUERIES["hold_closed"], parameters)).fetchone() is None:
        return False
    stretch = describe(scope_id, segment.conversation, segment.first_number, segment.last_number)
    return await is_same(connection, stretch, read)


async def supersede_summary(connection: Connection, scope_id: int, segment_id: UUID, summary_id: UUID) -> None:
    """Make a summary what is believed of a segment from now on, and supersede the one before."""
    parameters = {"scope_id": scope_id, "segment_id": segment_id, "summary_id": summary_id}
    await connection.execute(QUERIES["close_belief"], parameters)
    await connection.execute(QUERIES["add_belief"], parameters)


async def note_outcome(connection: Connection, scope_id: int, segment: Closed, outcome: SegmentOutcome) -> None:
    """Note the outcome of a segment, and the summary of its conversation."""
    parameters = {
        "scope_id": scope_id,
        "segment_id": segment.id,
        "conversation": segment.conversation,
        "state": outcome.state.value,
        "label": outcome.label,
        "reason": outcome.reason,
        "summary_id": outcome.summary_id,
    }
    await connection.execute(QUERIES["note_outcome"], parameters)
    await connection.execute(QUERIES["apply_extraction"], parameters)
    if outcome.summary_id is not None:
        await follow_summary(connection, scope_id, segment.conversation)


async def rate(connection: Connection, scope_id: int, ratings: Mapping[UUID, int]) -> None:
    """Note how important messages are by what a model said, except where their caller did."""
    if ratings:
        given = {"scope_id": scope_id, "ids": list(ratings), "importances": list(ratings.values())}
        await connection.execute(QUERIES["rate"], given)


async def gather(connection: Connection, scope_id: int, segment_id: UUID, ids: Sequence[UUID]) -> Unreflected | None:
    """Add messages to what waits for a reflection, when their segment is enriched for the first time."""
    parameters = {"scope_id": scope_id, "segment_id": segment_id, "ids": list(ids)}
    row = await (await connection.execute(QUERIES["gather"], parameters)).fetchone()
    return Unreflected(**row) if row else None


async def enter(connection: Connection, scope_id: int, events: Sequence[Row], moment: datetime) -> None:
    """Enter events in the journal of their scope, in the transaction that stores them; a job will read it."""
    parameters = {
        "scope_id": scope_id,
        "moment": moment,
        "ids": [event.id for event in events],
        "moments": [event.occurred_at for event in events],
    }
    await connection.execute(QUERIES["enter"], parameters)
    await defer_enrichment(connection, scope_id)


async def follow_summary(connection: Connection, scope_id: int, conversation: str) -> None:
    """Let a conversation use the summary of its newest segment that has one."""
    await connection.execute(QUERIES["newest_summary"], {"scope_id": scope_id, "conversation": conversation})


async def page(database: Database, scope: Scope, conversation: str, after: int, limit: int) -> list[StoredSegment]:
    """Read the segments of a conversation that begin after a message, in order."""
    bounds = {"conversation": conversation, "after": after, "limit": limit}
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["page"], {**names(scope), **bounds})
    return [to_segment(row) for row in await found.fetchall()]


def to_segment(row: DictRow) -> StoredSegment:
    """Turn a row into a segment."""
    return StoredSegment(**{**row, "ending": Ending(row["ending"]), "state": SegmentState(row["state"])})


async def enqueue(database: Database, scope_id: int) -> None:
    """See that a job looks at a scope."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        await defer_enrichment(connection, scope_id)
