"""Record accesses of memories without blocking other recalls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.core.service.numbers import tenant_of
from recollect.store.database.pool import Connection, Database, load_queries, to_sql

QUERIES = load_queries(__file__)
COUNTED = sql.SQL(QUERIES["counted"])
RECORD, CORRECT = (to_sql(sql.SQL(QUERIES[name]).format(counted=COUNTED)) for name in ("record", "correct"))
FOLD_AT = 32
"""Number of recalls on the log at which a job folds them: longer logs slow the next recall by about a millisecond."""
MAX_ACCESS_LOG_ROWS = 256
"""Number of recalls on the log at which a recall itself folds them, if no worker does."""


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """A recall on the log: its ID, and the memories that count as accessed by it."""

    id: UUID | None = None
    ids: frozenset[UUID] = frozenset()


async def record(
    connection: Connection, scope_id: int, ids: Sequence[UUID], moment: datetime | None
) -> AsyncCursor[DictRow]:
    """Append one recall to the log, without idle and forgotten memories.

    A long log is folded by a job, a very long one at once.
    """
    lengths = {"lock": f"fold:{scope_id}", "fold_at": FOLD_AT, "longest": MAX_ACCESS_LOG_ROWS}
    return await connection.execute(RECORD, {"scope_id": scope_id, "ids": list(ids), "moment": moment, **lengths})


async def read_recorded(recorded: AsyncCursor[DictRow]) -> AccessRecord:
    """Read the result of `record`."""
    row = await recorded.fetchone()
    return AccessRecord(row["id"], frozenset(row["ids"])) if row else AccessRecord()


async def correct(
    database: Database, scope_id: int, wrong: Mapping[AccessRecord, Sequence[UUID]]
) -> list[AccessRecord]:
    """Replace the accessed memories of recalls on the log; a folded recall stays unchanged."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        corrected = [
            await connection.execute(CORRECT, {"scope_id": scope_id, "id": recorded.id, "ids": list(ids)})
            for recorded, ids in wrong.items()
        ]
    return [await read_recorded(each) for each in corrected]


async def fold(database: Database, scope_ids: Sequence[int]) -> None:
    """Move the logs of scopes into one row per memory, all scopes of a tenant together."""
    for tenant_id, group in groupby(scope_ids, tenant_of):
        async with database.transaction(tenant_id) as connection:
            for scope_id in group:
                await connection.execute(QUERIES["fold"], {"scope_id": scope_id})
