"""Restore a scope for a call: one attempt per process at a time; the call waits as long as its deadline allows."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from recollect.errors import RecollectError, ScopeRestoringError
from recollect.models.outside import StorageTier
from recollect.store.cold import tiers
from recollect.store.cold.storage import require_storage
from recollect.store.service import scopes
from recollect.verbs.cold.moves import restore_scope
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recovery import Recovery

MAX_RESTORES = 5
"""Maximum number of restores in one call: it may read several scopes, and they may leave again."""
AT_ONCE = 4
"""Maximum number of scopes that a process restores at a time: each takes a connection."""
WAIT_SECONDS = 0.8
"""The share of a call's time to wait for its scope: the rest is for the call."""
LOG = logging.getLogger("recollect.cold")


@dataclass(slots=True)
class ColdRestorer:
    """Restores scopes, and reports how long that took."""

    parts: Dependencies
    deadline_seconds: float
    observe: Callable[[float], None] | None = None
    _under_way: dict[int, asyncio.Task[None]] = field(default_factory=dict[int, asyncio.Task[None]])
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    @property
    def recovery(self) -> Recovery:
        """Return how a call continues that met a scope in object storage."""
        return Recovery(ScopeRestoringError, self._refresh, (0.0,) * MAX_RESTORES)

    async def _refresh(self, _tenant_id: int, met: ScopeRestoringError) -> None:
        if not met.scope_id:
            raise met
        await self.wake(met.scope_id)

    async def wake(self, scope_id: int) -> None:
        """Wait until a scope is hot; if that takes too long, queue a job, and raise WakingError.

        Without a storage, raise ColdSetupError: retries do not help until it is configured.
        """
        parts = await self.parts.at_number(scope_id)
        if await scopes.touch(parts.database, scope_id) is not StorageTier.COLD:
            return
        if parts.cold is None:
            await defer_restore(parts, scope_id)
            require_storage(None)
        task = self._under_way.get(scope_id)
        if task is None:
            task = self._under_way[scope_id] = asyncio.create_task(self._restore_scope(parts, scope_id))
            task.add_done_callback(lambda done: self._end(scope_id, done))
        done, _ = await asyncio.wait([task], timeout=self.deadline_seconds * WAIT_SECONDS)
        if not done:
            await defer_restore(parts, scope_id)
            raise ScopeRestoringError(scope_id=scope_id)
        task.result()

    async def _restore_scope(self, parts: Dependencies, scope_id: int) -> None:
        async with self._places:
            begun = time.monotonic()
            if not await restore_scope(parts, scope_id):
                return
        seconds = time.monotonic() - begun
        LOG.info(json.dumps({"event": "cold_scope_restored", "scope": scope_id, "seconds": round(seconds, 3)}))
        if self.observe is not None:
            self.observe(seconds)

    def _end(self, scope_id: int, done: asyncio.Task[None]) -> None:
        del self._under_way[scope_id]
        if not done.cancelled() and (problem := done.exception()) is not None:
            LOG.warning(
                json.dumps({"event": "cold_scope_restore_failed", "scope": scope_id, "error": type(problem).__name__})
            )

    async def cancel_restores(self) -> None:
        """Cancel running restores; each is one transaction."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def defer_restore(parts: Dependencies, scope_id: int) -> None:
    """Queue a job that restores a scope."""
    with suppress(RecollectError):
        await tiers.defer_waking(parts.database, scope_id)
