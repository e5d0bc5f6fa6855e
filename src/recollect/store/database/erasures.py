"""Log an erasure outside the database before it commits, and find a time at which none is in between."""

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
    """Log the content that a transaction erased, as its last step; an error here rolls it back."""
    # No backup reads the position of the log before the commit: it has both the entry and its effect, or neither.
    # Nothing waits after this lock, so that it cannot be part of a deadlock.
    await (await connection.execute(QUERIES["hold"])).fetchone()
    await log.append(LoggedErasure(scope_id, datetime.now(UTC), receipt, conversation, tuple(ids)))


@asynccontextmanager
async def between_erasures(connection: AsyncConnection[DictRow]) -> AsyncIterator[None]:
    """Block erasures, so that the effect of each entry of the log is committed."""
    async with connection.transaction():
        await (await connection.execute(QUERIES["hold_alone"])).fetchone()
        yield
