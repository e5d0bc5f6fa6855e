"""Bring the memories of conversations where their states want them: chunk by chunk, from wherever it was left."""

from __future__ import annotations

from collections.abc import Callable

from recollect.jobs.embed import NO_REPORT
from recollect.store.conversations import lifecycle
from recollect.store.database.pool import Database


async def settle_scope(
    database: Database, scope_id: int, *, rederive: bool = False, report: Callable[[int], None] = NO_REPORT
) -> None:
    """Settle every conversation of a scope, reporting how many messages each step moved; at rest, do nothing."""
    while step := await lifecycle.settle_chunk(database, scope_id, rederive=rederive):
        report(step.messages)
