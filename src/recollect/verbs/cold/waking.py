"""Bring a scope back for whoever asks for it: one attempt of a process at a time, waited for as long as a call may."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from recollect.errors import RecollectError, WakingError
from recollect.models.outside import Tier
from recollect.store.cold import tiers
from recollect.store.service import scopes
from recollect.verbs.cold.moves import bring_back
from recollect.verbs.parts import Parts

AT_ONCE = 4
"""How many scopes a process brings back at a time: each takes a connection."""
PATIENCE = 0.8
"""The share of a call's time that it waits for its scope: the rest is for the call."""
LOG = logging.getLogger("recollect.cold")


@dataclass(slots=True)
class Waker:
    """Brings scopes back, and tells how long that took."""

    parts: Parts
    deadline_seconds: float
    observe: Callable[[float], None] | None = None
    _under_way: dict[int, asyncio.Task[None]] = field(default_factory=dict[int, asyncio.Task[None]])
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def wake(self, scope_id: int) -> None:
        """Wait until a scope is hot; if that takes too long, leave it to a job, and raise WakingError."""
        parts = await self.parts.at_number(scope_id)
        if await scopes.touch(parts.database, scope_id) is not Tier.COLD:
            return
        if parts.cold is None:
            await leave_to_job(parts, scope_id)
            raise WakingError(scope_id=scope_id)
        task = self._under_way.get(scope_id)
        if task is None:
            task = self._under_way[scope_id] = asyncio.create_task(self._bring_back(parts, scope_id))
            task.add_done_callback(lambda done: self._end(scope_id, done))
        done, _ = await asyncio.wait([task], timeout=self.deadline_seconds * PATIENCE)
        if not done:
            await leave_to_job(parts, scope_id)
            raise WakingError(scope_id=scope_id)
        task.result()

    async def _bring_back(self, parts: Parts, scope_id: int) -> None:
        async with self._places:
            begun = time.monotonic()
            if not await bring_back(parts, scope_id):
                return
        seconds = time.monotonic() - begun
        LOG.info(json.dumps({"event": "scope_is_back", "scope": scope_id, "seconds": round(seconds, 3)}))
        if self.observe is not None:
            self.observe(seconds)

    def _end(self, scope_id: int, done: asyncio.Task[None]) -> None:
        del self._under_way[scope_id]
        if not done.cancelled() and (problem := done.exception()) is not None:
            LOG.warning(json.dumps({"event": "scope_not_back", "scope": scope_id, "error": type(problem).__name__}))

    async def close(self) -> None:
        """End what is under way: it is all or nothing."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def leave_to_job(parts: Parts, scope_id: int) -> None:
    """Let a worker bring a scope back."""
    with suppress(RecollectError):
        await tiers.defer_waking(parts.database, scope_id)
