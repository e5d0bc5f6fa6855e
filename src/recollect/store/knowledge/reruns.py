"""Store runs over history: what there is to read again, what it has cost, and how a run takes over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.core.knowledge.rerun import Past
from recollect.core.service.numbers import tenant_of
from recollect.models.knowledge import Cost, Span
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.knowledge import segments
from recollect.store.knowledge.segments import Closed, ClosingSegment, Spoken, Unsegmented

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class NamedScope:
    """A scope by its number and its names."""

    id: int
    agent: str
    user: str


@dataclass(frozen=True, slots=True)
class Terms:
    """What identifies a run: another model, prompt or beginning is another run."""

    model: str
    prompt_version: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Listed:
    """A segment that can be read again, and whether the run has its extraction already."""

    closed: Closed
    kept: bool


@dataclass(frozen=True, slots=True)
class Replaced:
    """A believed version that rests on what is read again, and its span without it; None if it is not true then."""

    id: UUID
    lineage: UUID
    span: Span | None


async def list_scopes(database: Database, tenant_id: int, agent: str, user: str | None) -> list[NamedScope]:
    """List the scopes of a tenant, of one agent or with one user where these are named."""
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(QUERIES["scopes"], {"agent": agent, "user": user})
    return [NamedScope(**row) for row in await found.fetchall()]


async def list_segments(database: Database, scope_id: int, since: datetime | None, run_id: UUID | None) -> list[Listed]:
    """List what can be read again of what was said since a moment, in the order in which it was said."""
    parameters = {"scope_id": scope_id, "since": since, "run_id": run_id}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["segments"], parameters)
    rows = await found.fetchall()
    return [Listed(kept=row.pop("kept"), closed=Closed(conversation=row.pop("conversation_id"), **row)) for row in rows]


async def list_unsegmented(database: Database, scope_id: int, since: datetime | None) -> list[Unsegmented]:
    """List the conversations that begin with messages from before there were segments."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["unsegmented"], {"scope_id": scope_id, "since": since})
    return [Unsegmented(**row) for row in await found.fetchall()]


async def cut(
    database: Database, scope_id: int, conversation: Unsegmented, spoken: Spoken, closings: Sequence[ClosingSegment]
) -> bool:
    """Cut old messages, after a number, into segments that only runs know; False if they have changed meanwhile."""
    place = {"scope_id": scope_id, "conversation": conversation.id, "segmented_number": conversation.segmented_number}
    stretch = segments.describe(scope_id, conversation.id, conversation.segmented_number + 1, spoken.last_number)
    async with database.transaction(tenant_of(scope_id)) as connection:
        await segments.hold_scope(connection, scope_id)
        held = await (await connection.execute(QUERIES["hold_conversation"], place)).fetchone()
        if held is None or not await segments.is_same(connection, stretch, spoken.messages):
            return False
        await segments.write_segments(connection, QUERIES["cut"], place, closings)
    return True


async def find(database: Database, scope_id: int, terms: Terms) -> UUID | None:
    """Find the unfinished run with this identity."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["find"], describe(scope_id, terms))
    row = await found.fetchone()
    return row["id"] if row else None


async def begin(database: Database, scope_id: int, terms: Terms) -> UUID:
    """Begin a run."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        row = await (await connection.execute(QUERIES["begin"], describe(scope_id, terms))).fetchone()
    assert row is not None  # noqa: S101 - an insert always returns its row
    begun: UUID = row["id"]
    return begun


def describe(scope_id: int, terms: Terms) -> dict[str, object]:
    """Return the identity of a run as parameters."""
    return {
        "scope_id": scope_id,
        "model": terms.model,
        "prompt_version": terms.prompt_version,
        "since": terms.since,
    }


async def read_past(database: Database, tenant_id: int) -> Past:
    """Read what questions about segments cost so far."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["past"])
    row = await found.fetchone()
    return Past(**row) if row else Past()


async def read_clock(database: Database) -> datetime:
    """Read the clock of the ledger."""
    async with database.reading(None) as connection:
        found = await connection.execute(QUERIES["clock"])
    row = await found.fetchone()
    assert row is not None  # noqa: S101 - a clock always answers
    now: datetime = row["now"]
    return now


async def read_spent(
    database: Database, scope_id: int, model: str, since: datetime, segment_ids: Sequence[UUID]
) -> Cost:
    """Sum up what a model cost for segments since a moment."""
    parameters = {"scope_id": scope_id, "model": model, "since": since, "ids": list(segment_ids)}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["spent"], parameters)
    row = await found.fetchone()
    return Cost(**row) if row else Cost()


async def find_replaced(connection: Connection, scope_id: int, segment_ids: Sequence[UUID]) -> list[Replaced]:
    """Find the believed versions that a new reading of segments replaces."""
    found = await connection.execute(QUERIES["replaced"], {"scope_id": scope_id, "ids": list(segment_ids)})
    return [
        Replaced(row["id"], row["lineage"], Span(row["valid_at"], row["invalid_at"]) if row["stands"] else None)
        for row in await found.fetchall()
    ]


async def hold(connection: Connection, scope_id: int, run_id: UUID) -> bool:
    """Tell whether a run has not taken over yet, and lock it until the transaction ends."""
    found = await connection.execute(QUERIES["hold"], {"scope_id": scope_id, "run_id": run_id})
    return await found.fetchone() is not None


async def hold_ready(
    connection: Connection, scope_id: int, run_id: UUID, segment_ids: Sequence[UUID]
) -> frozenset[UUID]:
    """Tell which segments a run still has an extraction of, and lock them."""
    parameters = {"scope_id": scope_id, "run_id": run_id, "ids": list(segment_ids)}
    found = await connection.execute(QUERIES["ready"], parameters)
    return frozenset([row["id"] for row in await found.fetchall()])


async def dim_mentions(connection: Connection, scope_id: int, segment_ids: Sequence[UUID]) -> None:
    """Mark the mentions of segments so far, to distinguish them from the new ones."""
    await connection.execute(QUERIES["dim_mentions"], {"scope_id": scope_id, "ids": list(segment_ids)})


async def drop_mentions(connection: Connection, scope_id: int, segment_ids: Sequence[UUID]) -> None:
    """Delete the mentions that segments do not have any more."""
    parameters = {"scope_id": scope_id, "ids": list(segment_ids)}
    await connection.execute(QUERIES["drop_mentions"], parameters)
    await connection.execute(QUERIES["restore_mentions"], parameters)


async def supersede_summaries(
    connection: Connection, scope_id: int, summaries: Mapping[UUID, UUID], moment: datetime
) -> None:
    """Make summaries what is believed of their segments from a moment on, and supersede those before."""
    parameters = {"scope_id": scope_id, "moment": moment, "ids": list(summaries), "summaries": list(summaries.values())}
    await connection.execute(QUERIES["close_beliefs"], parameters)
    await connection.execute(QUERIES["add_beliefs"], parameters)


async def apply_extractions(
    connection: Connection, scope_id: int, run_id: UUID, labels: Mapping[UUID, str], summaries: Mapping[UUID, UUID]
) -> None:
    """Make a run's extractions those of their segments, with their labels and their summaries."""
    parameters = {
        "scope_id": scope_id,
        "run_id": run_id,
        "ids": list(labels),
        "labels": list(labels.values()),
        "summaries": [summaries.get(each) for each in labels],
    }
    await connection.execute(QUERIES["note_outcomes"], parameters)
    await connection.execute(QUERIES["apply_extractions"], parameters)


async def finish(connection: Connection, scope_id: int, run_id: UUID, moment: datetime) -> None:
    """Note that a run has taken over; other unfinished runs are abandoned."""
    await connection.execute(QUERIES["finish"], {"scope_id": scope_id, "run_id": run_id, "moment": moment})
