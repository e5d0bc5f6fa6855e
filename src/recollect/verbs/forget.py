"""Forget: delete memories with everything that was made from them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from recollect.core.memories.checks import MOST_MEMORIES
from recollect.errors import InvalidInputError
from recollect.models.service import Scope
from recollect.store.memories import memories
from recollect.verbs.parts import Parts


async def forget(parts: Parts, scope: Scope, ids: Sequence[UUID]) -> list[UUID]:
    """Delete memories and what was derived from them; return all ids that went, none if there were none."""
    if not 1 <= len(ids) <= MOST_MEMORIES:
        raise InvalidInputError(f"ids must hold 1 to {MOST_MEMORIES} items")
    return await memories.forget(parts.database, scope, ids)
