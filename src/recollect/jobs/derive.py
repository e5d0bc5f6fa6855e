"""Jobs that derive: embed what is needed first, then enrich, rederive and reflect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from recollect.errors import ChatModelError, EmbedderError
from recollect.jobs.embed import embed_pending
from recollect.llm.embedder import Embedder
from recollect.models.agents import Reflection
from recollect.models.service import Caller, Right, Scope
from recollect.store.agents import reflections
from recollect.store.database.pool import Database
from recollect.store.service import upkeep
from recollect.store.service.jobs import Lease, write_id

Enriching: TypeAlias = Callable[[int, Lease, Callable[[int], None]], Awaitable[int]]
"""Enrich what has closed in a scope for one run of a job, reporting how many segments are done."""
Rederiving: TypeAlias = Callable[[int], Awaitable[int]]
"""Derive again the memories of a scope that lost evidence; return how many."""
ORIGIN = "reflect"
REST_MINUTES = 60.0
"""How long a scope is left alone in which enrichment was given up, unless something is appended."""
FULL_TRUST = 100
"""Lowered by the evidence: a thought has the least trust of its sources."""
Reflecting: TypeAlias = Callable[[Caller, Scope, int, str, datetime | None], Awaitable[Reflection]]
"""Reflect as a caller in a scope, beginning with so many memories, under an idempotency key, at a moment."""


async def embed_first(database: Database, embedder: Embedder | None, batch: int, scope_id: int) -> None:
    """Embed a scope's messages that wait for vectors; if the embedder cannot, topics are told apart by terms."""
    if embedder is not None:
        with suppress(EmbedderError):
            await embed_pending(database, embedder, batch, scope_id)


async def close_silent(database: Database, idle_minutes: float) -> None:
    """See that a job looks at every scope where a conversation has become silent, or where a segment waits."""
    await upkeep.defer_due(database, "enrich", usual=idle_minutes, rest_minutes=REST_MINUTES)


async def rederive_scope(rederiving: Rederiving | None, scope_id: int) -> None:
    """Derive again the memories of a scope that lost evidence, or leave it to a worker that can."""
    if rederiving is None:
        raise ChatModelError("This worker has no chat model; another worker may have one.")
    await rederiving(scope_id)


@dataclass(frozen=True, slots=True)
class ReflectionJob:
    """What a job knows of its reflection."""

    id: int
    scope_id: int
    count: int
    now: datetime | None


async def reflect_scope(database: Database, reflecting: Reflecting | None, job: ReflectionJob) -> None:
    """Reflect in a scope for one job; a job that is run again writes nothing twice."""
    if reflecting is None:
        raise ChatModelError("This worker has no chat model; another worker may have one.")
    scope = await reflections.find_scope(database, job.scope_id)
    if scope is not None:
        caller = Caller(scope.tenant_id, frozenset({Right.READ, Right.WRITE}), ORIGIN, FULL_TRUST)
        await reflecting(caller, scope, job.count, reflections.key_of(write_id(database, job.id)), job.now)
