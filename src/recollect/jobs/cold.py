"""Jobs of cold scopes: mark what nobody touched, send out what stayed marked, bring back what is asked for or due."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from recollect.core.conversations.retention import RetentionRules
from recollect.errors import ColdStorageError
from recollect.store.cold import tiers
from recollect.store.cold.storage import ColdStorage
from recollect.store.cold.tiers import ColdObject
from recollect.store.database.pool import Database
from recollect.store.service import scopes

MARKED_SECONDS = 20 * 3600.0
"""How long a scope is marked before it leaves: until the next day, and longer than any call takes."""
BROKEN_OFF_SECONDS = 2 * 3600.0
"""After how long an object that is not held is taken for one of an attempt that was broken off."""
LOG = logging.getLogger("recollect.cold")
UNKNOWN = "This worker does not know where cold scopes are; another worker may."


@dataclass(frozen=True, slots=True)
class ColdDuties:
    """What a worker needs to move scopes: the storage, the rule, and the verbs, which it cannot import."""

    storage: ColdStorage
    after_days: float
    send_out: Callable[[int], Awaitable[ColdObject | None]]
    bring_back: Callable[[int], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class ColdTasks:
    """What a worker does for cold scopes."""

    database: Database
    duties: ColdDuties | None
    rules: RetentionRules

    async def freeze(self, scope_id: int) -> None:
        """Send a marked scope out; one that somebody asked for, or that is busy, stays."""
        written = await self._require().send_out(scope_id)
        LOG.info(json.dumps({"event": "scope_is_out" if written else "scope_stays", "scope": scope_id}))

    async def wake(self, scope_id: int) -> None:
        """Bring a scope back."""
        duties = self._require()
        await scopes.touch(self.database, scope_id)
        await duties.bring_back(scope_id)

    async def freeze_daily(self, _context: object, timestamp: int = 0) -> None:  # noqa: ARG002 - the engine's call
        """Once a day: queue what stayed marked since yesterday and what is due in cold scopes, mark anew, tidy up."""
        if self.duties is not None:
            await look_over(self.database, self.duties, self.rules)

    def _require(self) -> ColdDuties:
        if self.duties is None:
            raise ColdStorageError(UNKNOWN)
        return self.duties


async def look_over(
    database: Database, duties: ColdDuties, rules: RetentionRules, *, marked_seconds: float = MARKED_SECONDS
) -> None:
    """Queue moves, mark scopes, and remove objects of no use."""
    if duties.after_days:
        await tiers.defer_moves(database, "freeze", marked_seconds, rules)
        await tiers.mark_due(database, duties.after_days)
    await tiers.defer_moves(database, tiers.WAKE, 0, rules)
    await tidy(database, duties.storage)


async def tidy(database: Database, storage: ColdStorage, seconds: float = BROKEN_OFF_SECONDS) -> int:
    """Remove objects of no use, with those of attempts that were broken off; return how many."""
    count = 0
    while found := await tiers.list_to_remove(database, seconds):
        for each in found:
            await tiers.remove(database, storage, each)
        count += len(found)
    return count
