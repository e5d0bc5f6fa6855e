"""Store runs over history: segments to read again, their cost, and how a run replaces the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.core.knowledge.rerun import RunCosts
from recollect.core.service.numbers import tenant_of
from recollect.models.knowledge import Cost, ValidTime
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.knowledge.segments import ClosedSegment

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class NamedScope:
    """A scope by its number and its names."""

    id: int
    agent: str
    user: str


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """The identity of a run: another model, prompt or start time is another run."""

    model: str
    prompt_version: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class RerunSegment:
    """A segment to read again, and whether the run has its extraction already."""

    closed: ClosedSegment
    kept: bool


@dataclass(frozen=True, slots=True)
class ReplacedVersion:
    """A believed version derived from segments to read again; `span` is its valid time without them."""

    id: UUID
    lineage: UUID
    span: ValidTime | None


async def list_scopes(database: Database, tenant_id: int, agent: str, user: str | None) -> list[NamedScope]:
    """List the scopes of a tenant, of one agent or one user if named."""
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(QUERIES["scopes"], {"agent": agent, "user": user})
    return [NamedScope(**row) for row in await found.fetchall()]


async def list_segments(
    database: Database, scope_id: int, since: datetime | None, run_id: UUID | None
) -> list[RerunSegment]:
    """List segments that can be read again since a time, in the order of the conversation."""
    parameters = {"scope_id": scope_id, "since": since, "run_id": run_id}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["segments"], parameters)
    rows = await found.fetchall()
    return [
        RerunSegment(kept=row.pop("kept"), closed=ClosedSegment(conversation=row.pop("conversation_id"), **row))
        for row in rows
    ]


async def find_unfinished_run(database: Database, scope_id: int, terms: RunIdentity) -> UUID | None:
    """Find the unfinished run with this identity."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["find"], build_run_parameters(scope_id, terms))
    row = await found.fetchone()
    return row["id"] if row else None


async def begin(database: Database, scope_id: int, terms: RunIdentity) -> UUID:
    """Start a run."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        row = await (await connection.execute(QUERIES["begin"], build_run_parameters(scope_id, terms))).fetchone()
    assert row is not None  # noqa: S101 - an insert always returns its row
    begun: UUID = row["id"]
    return begun


def build_run_parameters(scope_id: int, terms: RunIdentity) -> dict[str, object]:
    """Return the identity of a run as parameters."""
    return {
        "scope_id": scope_id,
        "model": terms.model,
        "prompt_version": terms.prompt_version,
        "since": terms.since,
    }


async def read_past(database: Database, tenant_id: int) -> RunCosts:
    """Read the past cost of questions about segments."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["past"])
    row = await found.fetchone()
    return RunCosts(**row) if row else RunCosts()


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
    """Sum up a model's cost for segments since a time."""
    parameters = {"scope_id": scope_id, "model": model, "since": since, "ids": list(segment_ids)}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["spent"], parameters)
    row = await found.fetchone()
    return Cost(**row) if row else Cost()


async def find_replaced(connection: Connection, scope_id: int, segment_ids: Sequence[UUID]) -> list[ReplacedVersion]:
    """Find the believed versions that a new extraction of segments replaces."""
    found = await connection.execute(QUERIES["replaced"], {"scope_id": scope_id, "ids": list(segment_ids)})
    return [
        ReplacedVersion(
            row["id"], row["lineage"], ValidTime(row["valid_at"], row["invalid_at"]) if row["stands"] else None
        )
        for row in await found.fetchall()
    ]


async def lock_run(connection: Connection, scope_id: int, run_id: UUID) -> bool:
    """Return whether a run has not replaced the results yet, and lock it until the transaction ends."""
    found = await connection.execute(QUERIES["hold"], {"scope_id": scope_id, "run_id": run_id})
    return await found.fetchone() is not None


async def lock_ready_segments(
    connection: Connection, scope_id: int, run_id: UUID, segment_ids: Sequence[UUID]
) -> frozenset[UUID]:
    """Return the segments for which a run still has an extraction, and lock them."""
    parameters = {"scope_id": scope_id, "run_id": run_id, "ids": list(segment_ids)}
    found = await connection.execute(QUERIES["ready"], parameters)
    return frozenset([row["id"] for row in await found.fetchall()])


async def mark_old_mentions(connection: Connection, scope_id: int, segment_ids: Sequence[UUID]) -> None:
    """Mark the existing mentions of segments, to distinguish them from the new ones."""
    await connection.execute(QUERIES["mark_old_mentions"], {"scope_id": scope_id, "ids": list(segment_ids)})


async def drop_mentions(connection: Connection, scope_id: int, segment_ids: Sequence[UUID]) -> None:
    """Delete the mentions that segments no longer have."""
    parameters = {"scope_id": scope_id, "ids": list(segment_ids)}
    await connection.execute(QUERIES["drop_mentions"], parameters)
    await connection.execute(QUERIES["restore_mentions"], parameters)


async def supersede_summaries(
    connection: Connection, scope_id: int, summaries: Mapping[UUID, UUID], moment: datetime
) -> None:
    """Replace the summaries of segments from a time on, and supersede the previous ones."""
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
    """Mark a run as finished; other unfinished runs are abandoned."""
    await connection.execute(QUERIES["finish"], {"scope_id": scope_id, "run_id": run_id, "moment": moment})
