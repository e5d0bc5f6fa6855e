"""Jobs that derive memories: embed the sources first, then enrich, rederive and reflect."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from recollect.errors import ChatModelError, EmbedderError
from recollect.jobs.embed import embed_pending
from recollect.models.service import Caller, Right
from recollect.store.agents import reflections
from recollect.store.database.pool import Database
from recollect.store.service import maintenance
from recollect.store.service.jobs import write_id
from recollect.verbs.agents.reflect import ReflectOptions, reflect
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.memories.rederive import rederive

ORIGIN = "reflect"
NO_CHAT = "This worker has no chat model; another worker may have one."
REST_MINUTES = 60.0
"""Minutes without enrichment in a scope after it was given up, unless something is appended."""
FULL_TRUST = 100
"""The maximum; evidence lowers it: a thought has the lowest trust of its sources."""


async def embed_first(parts: Dependencies, scope_id: int) -> None:
    """Embed a scope's waiting messages; without an embedder, topics are separated by terms."""
    if parts.embedder is not None:
        with suppress(EmbedderError):
            await embed_pending(parts.database, parts.embedder, parts.options.embed_batch, scope_id)


async def close_silent(database: Database, idle_minutes: float) -> None:
    """Queue a job for every scope with a silent conversation or a waiting segment."""
    await maintenance.defer_due(database, "enrich", usual=idle_minutes, rest_minutes=REST_MINUTES)


async def rederive_scope(parts: Dependencies, scope_id: int) -> None:
    """Derive again the memories of a scope that lost evidence; without a model, leave it to another worker."""
    if parts.chat is None:
        raise ChatModelError(NO_CHAT)
    await rederive(parts, scope_id)


@dataclass(frozen=True, slots=True)
class ReflectionJob:
    """The data of a reflection's job."""

    id: int
    scope_id: int
    count: int
    now: datetime | None


async def reflect_scope(parts: Dependencies, job: ReflectionJob) -> None:
    """Reflect in a scope for one job; a repeated job writes nothing twice."""
    if parts.chat is None:
        raise ChatModelError(NO_CHAT)
    scope = await reflections.find_scope(parts.database, job.scope_id)
    if scope is not None:
        caller = Caller(scope.tenant_id, frozenset({Right.READ, Right.WRITE}), ORIGIN, FULL_TRUST)
        key = reflections.key_of(write_id(parts.database, job.id))
        await reflect(parts, caller, scope, ReflectOptions(count=job.count, now=job.now, key=key))
