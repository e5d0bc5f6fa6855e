"""Let an agent reflect when enough has gathered: once for each job, whatever becomes of its worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from recollect.errors import ChatModelError
from recollect.models.agents import Reflection
from recollect.models.service import Caller, Right, Scope
from recollect.store.agents import reflections
from recollect.store.database.pool import Database

ORIGIN = "reflect"
FULL_TRUST = 100
"""Cut down by the evidence: a thought is trusted as the least of what it was made from."""
Reflecting: TypeAlias = Callable[[Caller, Scope, int, str, datetime | None], Awaitable[Reflection]]
"""Reflect as a caller in a scope, beginning with so many memories, under an idempotency key, at a moment."""


@dataclass(frozen=True, slots=True)
class ReflectionJob:
    """What a job says of the reflection that it is about."""

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
        await reflecting(caller, scope, job.count, reflections.key_of(job.id), job.now)
