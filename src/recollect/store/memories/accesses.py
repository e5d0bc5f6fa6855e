"""Record accesses of memories, without making any recall wait for another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import DictRow

from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.service.scopes import tenant_of

QUERIES = load_queries(__file__)
FOLD_AT = 32
"""With so many recalls on the log, the next one takes about a millisecond more: then a job folds them."""
LONGEST_LOG = 256
"""If no worker does, the recall that finds so many folds them itself."""


async def record(
    connection: Connection, scope_id: int, ids: Sequence[UUID], moment: datetime | None
) -> AsyncCursor[DictRow]:
    """Append one recall to the log, without idle and forgotten memories."""
    parameters = {"scope_id": scope_id, "ids": list(ids), "moment": moment}
    recorded = await connection.execute(QUERIES["record"], parameters)
    lock = {"scope_id": scope_id, "lock": f"fold:{scope_id}", "fold_at": FOLD_AT, "longest": LONGEST_LOG}
    await connection.execute(QUERIES["defer_fold"], lock)
    await connection.execute(QUERIES["fold_long"], lock)
    return recorded


async def read_recorded(recorded: Sequence[AsyncCursor[DictRow]]) -> frozenset[UUID]:
    """Read which memories `record` logged."""
    rows = [row for each in recorded for row in await each.fetchall()]
    return frozenset(memory_id for row in rows for memory_id in row["ids"])


async def fold(database: Database, scope_id: int) -> None:
    """Move a scope's log into one row per memory."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["fold"], {"scope_id": scope_id})


async def list_unfolded(database: Database, tenant_id: int) -> list[int]:
    """List the scopes of a tenant whose log is not empty."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["unfolded"])
    return [row["scope_id"] for row in await found.fetchall()]
