"""Store what every call of a model and every step cost, and sum it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from recollect.core.service.numbers import tenant_of
from recollect.models.service import LedgerSum
from recollect.store.database.pool import Database, load_queries

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger; it never quotes what was asked or said."""

    scope_id: int
    step: str
    milliseconds: float
    outcome: str
    """`answered`, `partial` where only some of it could be used, or `failed: ` and the sort of error."""
    model: str = ""
    prompt_version: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    price: float | None = None
    source_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Today:
    """What a tenant has used since the UTC day began, and when it ends."""

    used: int
    ends_at: datetime
    own_limit: int | None
    """What the operator allows this tenant; None means the default."""


async def enter(database: Database, entries: Sequence[Entry]) -> None:
    """Write lines of one scope, in a transaction of their own: what was spent stays recorded in any case."""
    async with database.transaction(tenant_of(entries[0].scope_id)) as connection:
        for entry in entries:
            await connection.execute(QUERIES["enter"], asdict(entry))


async def read_today(database: Database, tenant_id: int) -> Today:
    """Read what a tenant has used of its day."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["today"])
    row = await found.fetchone()
    assert row is not None  # noqa: S101 - an aggregate always answers
    return Today(row["used"], row["ends_at"], row["own_limit"])


async def read_sums(
    database: Database, tenant_id: int, days: int, agent: str | None = None, user: str = ""
) -> list[LedgerSum]:
    """Sum up the last days by day, step and model: of one scope, or of the whole tenant if no agent is named."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["sums"], {"days": days, "agent": agent, "user": user})
    return [LedgerSum(**row) for row in await found.fetchall()]


async def fold(database: Database, tenant_id: int) -> None:
    """Sum up what is older than two days: one line for each scope, day, step, model, prompt and outcome."""
    async with database.transaction(tenant_id) as connection:
        await connection.execute(QUERIES["fold"])
