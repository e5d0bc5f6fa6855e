"""Jobs of cold scopes: mark unused scopes, move marked ones out, restore requested or due ones."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from recollect.core.conversations.retention import RetentionRules
from recollect.errors import ColdStorageError
from recollect.store.cold import tiers
from recollect.store.cold.storage import ColdStorage
from recollect.store.database.pool import Database
from recollect.store.service import scopes
from recollect.verbs.cold.moves import restore_scope, send_out
from recollect.verbs.dependencies import Dependencies

MARKED_SECONDS = 20 * 3600.0
"""How long a scope is marked before it leaves: until the next day, and longer than any call takes."""
BROKEN_OFF_SECONDS = 2 * 3600.0
"""Seconds after which an object without a scope counts as a failed attempt."""
LOG = logging.getLogger("recollect.cold")
UNKNOWN = "This worker has no RECOLLECT_COLD__URL. Another worker may have it."


@dataclass(frozen=True, slots=True)
class ColdTasks:
    """The worker's tasks for cold scopes."""

    parts: Dependencies
    after_days: float
    rules: RetentionRules

    async def freeze(self, scope_id: int) -> None:
        """Move a marked scope to object storage; a used or busy one stays."""
        self._check()
        written = await send_out(self.parts, scope_id)
        LOG.info(json.dumps({"event": "cold_scope_archived" if written else "cold_scope_kept", "scope": scope_id}))

    async def wake(self, scope_id: int) -> None:
        """Restore a scope from object storage."""
        self._check()
        await scopes.touch(self.parts.database, scope_id)
        await restore_scope(self.parts, scope_id)

    async def freeze_daily(self, _context: object, timestamp: int = 0) -> None:  # noqa: ARG002 - the engine's call
        """Run daily: queue marked scopes and due work in cold scopes, mark unused scopes, remove unneeded objects."""
        if self.parts.cold is not None:
            await run_cold_pass(self.parts.database, self.parts.cold, self.after_days, self.rules)

    def _check(self) -> None:
        if self.parts.cold is None:
            raise ColdStorageError(UNKNOWN)


async def run_cold_pass(
    database: Database,
    storage: ColdStorage,
    after_days: float,
    rules: RetentionRules,
    *,
    marked_seconds: float = MARKED_SECONDS,
) -> None:
    """Queue moves, mark scopes, and remove unneeded objects."""
    if after_days:
        await tiers.defer_moves(database, "freeze", marked_seconds, rules)
        await tiers.mark_due(database, after_days)
    await tiers.defer_moves(database, tiers.WAKE, 0, rules)
    await tidy(database, storage)


async def tidy(database: Database, storage: ColdStorage, seconds: float = BROKEN_OFF_SECONDS) -> int:
    """Remove unneeded objects, including failed attempts; return how many."""
    count = 0
    while found := await tiers.list_to_remove(database, seconds):
        for each in found:
            await tiers.remove(database, storage, each)
        count += len(found)
    return count
