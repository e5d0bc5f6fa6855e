"""Record accesses of memories, without making any recall wait for another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.core.service.numbers import tenant_of
from recollect.store.database.pool import Connection, Database, load_queries, write_out

QUERIES = load_queries(__file__)
COUNTED = sql.SQL(QUERIES["counted"])
RECORD, CORRECT = (write_out(sql.SQL(QUERIES[name]).format(counted=COUNTED)) for name in ("record", "correct"))
FOLD_AT = 32
"""With so many recalls on the log, the next one takes about a millisecond more: then a job folds them."""
LONGEST_LOG = 256
"""If no worker does, the recall that finds so many folds them itself."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recall on the log: its id, and the memories that count as accessed by it."""

    id: UUID | None = None
    ids: frozenset[UUID] = frozenset()


async def record(
    connection: Connection, scope_id: int, ids: Sequence[UUID], moment: datetime | None
) -> AsyncCursor[DictRow]:
    """Append one recall to the log, without idle and forgotten memories.

    A log that has become long is folded by a job, a very long one at once.
    """
    lengths = {"lock": f"fold:{scope_id}", "fold_at": FOLD_AT, "longest": LONGEST_LOG}
    return await connection.execute(RECORD, {"scope_id": scope_id, "ids": list(ids), "moment": moment, **lengths})


async def read_recorded(recorded: AsyncCursor[DictRow]) -> Recorded:
    """Read what `record` wrote down."""
    row = await recorded.fetchone()
    return Recorded(row["id"], frozenset(row["ids"])) if row else Recorded()


async def correct(database: Database, scope_id: int, wrong: Mapping[Recorded, Sequence[UUID]]) -> list[Recorded]:
    """Let recalls on the log count as access of other memories than it was thought; one that is folded stays."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        corrected = [
            await connection.execute(CORRECT, {"scope_id": scope_id, "id": recorded.id, "ids": list(ids)})
            for recorded, ids in wrong.items()
        ]
    return [await read_recorded(each) for each in corrected]


async def fold(database: Database, scope_ids: Sequence[int]) -> None:
    """Move the logs of scopes into one row per memory, those of a tenant together."""
    for tenant_id, group in groupby(scope_ids, tenant_of):
        async with database.transaction(tenant_id) as connection:
            for scope_id in group:
                await connection.execute(QUERIES["fold"], {"scope_id": scope_id})
