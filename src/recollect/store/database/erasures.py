"""Log an erasure outside the database before its transaction commits, and find a moment when none is in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import DictRow

from recollect.core.service.erasures import ErasureLog, LoggedErasure
from recollect.store.database.pool import Connection, load_queries

QUERIES = load_queries(__file__)


async def log_erasure(
    connection: Connection,
    log: ErasureLog,
    scope_id: int,
    *,
    receipt: UUID | None = None,
    conversation: str = "",
    ids: Sequence[UUID] = (),
) -> None:
    """Log what a transaction has erased, as its last step; where it cannot be logged, nothing is erased."""
    # Until the commit no backup reads how far the log has come: it has both the entry and its effect, or neither.
    # Nothing is waited for after this lock, so that it cannot be part of a deadlock.
    await (await connection.execute(QUERIES["hold"])).fetchone()
    await log.append(LoggedErasure(scope_id, datetime.now(UTC), receipt, conversation, tuple(ids)))


@asynccontextmanager
async def between_erasures(connection: AsyncConnection[DictRow]) -> AsyncIterator[None]:
    """Hold a moment at which the effect of every entry of the log is committed."""
    async with connection.transaction():
        await (await connection.execute(QUERIES["hold_alone"])).fetchone()
        yield
