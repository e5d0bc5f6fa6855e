"""Turn a scope's talk into knowledge: first the vectors that topics are told apart by, then segment after segment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from recollect.errors import EmbedderError
from recollect.jobs.embed import embed_pending
from recollect.llm.embedder import Embedder
from recollect.store.database.pool import Database
from recollect.store.knowledge import segments
from recollect.store.service import scopes
from recollect.store.service.jobs import Lease

Enriching: TypeAlias = Callable[[int, Lease, Callable[[int], None]], Awaitable[int]]
"""Enrich what has closed in a scope for one run of a job, reporting how many segments are done."""


async def embed_first(database: Database, embedder: Embedder | None, batch: int, scope_id: int) -> None:
    """Give a scope's messages the vectors they wait for; where the embedder cannot, terms tell topics apart."""
    if embedder is not None:
        with suppress(EmbedderError):
            await embed_pending(database, embedder, batch, scope_id)


async def close_silent(database: Database, idle_minutes: float) -> None:
    """See that a job looks at every scope where a conversation has fallen silent, or where a segment waits."""
    for tenant_id in await scopes.list_tenants(database):
        await segments.revive(database, tenant_id, idle_minutes)
