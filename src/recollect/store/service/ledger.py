"""Store the cost of every model call and step, and sum it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from recollect.core.service.numbers import tenant_of
from recollect.models.service import CostRow
from recollect.store.database.pool import Database, load_queries

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A row of the ledger; it never quotes requests or answers."""

    scope_id: int
    step: str
    milliseconds: float
    outcome: str
    """`answered`, `partial` if only some of the answer was usable, or `failed: ` and the type of error."""
    model: str = ""
    prompt_version: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    price: float | None = None
    source_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class DailyUsage:
    """A tenant's usage since the UTC day began, and when the day ends."""

    used: int
    ends_at: datetime
    own_limit: int | None
    """The operator's limit for this tenant; None means the default."""


async def enter(database: Database, entries: Sequence[LedgerEntry]) -> None:
    """Write rows of one scope in a separate transaction, so that costs stay recorded in any case."""
    async with database.transaction(tenant_of(entries[0].scope_id)) as connection:
        for entry in entries:
            await connection.execute(QUERIES["enter"], asdict(entry))


async def read_today(database: Database, tenant_id: int) -> DailyUsage:
    """Read a tenant's usage of today."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["today"])
    row = await found.fetchone()
    assert row is not None  # noqa: S101 - an aggregate always returns a row
    return DailyUsage(row["used"], row["ends_at"], row["own_limit"])


async def read_sums(
    database: Database, tenant_id: int, days: int, agent: str | None = None, user: str = ""
) -> list[CostRow]:
    """Sum up the last days by day, step and model: of one scope, or of the whole tenant if no agent is named."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["sums"], {"days": days, "agent": agent, "user": user})
    return [CostRow(**row) for row in await found.fetchall()]


async def fold(database: Database, tenant_id: int) -> None:
    """Sum up rows older than two days: one row for each scope, day, step, model, prompt and outcome."""
    async with database.transaction(tenant_id) as connection:
        await connection.execute(QUERIES["fold"])
