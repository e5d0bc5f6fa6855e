"""Browse: read memories one by one or page by page, without ranking."""

from __future__ import annotations

from uuid import UUID

from recollect.core.checks import check_limit
from recollect.errors import NotFoundError
from recollect.models import Memory, Page, Scope
from recollect.store import memories
from recollect.verbs.parts import Parts


async def get(parts: Parts, scope: Scope, memory_id: UUID) -> Memory:
    """Fetch one memory; a foreign id is as unknown as a made-up one."""
    found = await memories.fetch_one(parts.database, scope, memory_id)
    if found is None:
        raise NotFoundError("There is no such memory in this scope.")
    return found


async def browse(parts: Parts, scope: Scope, cursor: UUID | None, limit: int) -> Page:
    """Fetch one page, oldest first."""
    check_limit(limit)
    rows = await memories.page(parts.database, scope, cursor or memories.BEGINNING, limit + 1)
    return Page(tuple(rows[:limit]), rows[limit - 1].id if len(rows) > limit else None)
