"""Let an agent reflect when enough has gathered: once for each job, whatever becomes of its worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from recollect.errors import ChatModelError
from recollect.models import Caller, Reflection, Right, Scope
from recollect.store import reflections
from recollect.store.db import Database

ORIGIN = "reflect"
FULL_TRUST = 100
"""Cut down by the evidence: a thought is trusted as the least of what it was made from."""
Reflecting: TypeAlias = Callable[[Caller, Scope, int, str], Awaitable[Reflection]]
"""Reflect as a caller in a scope, beginning with so many memories, under an idempotency key."""


async def reflect_scope(
    database: Database, reflecting: Reflecting | None, scope_id: int, count: int, job_id: int
) -> None:
    """Reflect in a scope for one job; a job that is run again writes nothing twice."""
    if reflecting is None:
        raise ChatModelError("This worker has no chat model; another worker may have one.")
    scope = await reflections.find_scope(database, scope_id)
    if scope is not None:
        caller = Caller(scope.tenant_id, frozenset({Right.READ, Right.WRITE}), ORIGIN, FULL_TRUST)
        await reflecting(caller, scope, count, f"reflect-job-{job_id}")
