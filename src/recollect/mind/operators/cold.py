"""Scopes in object storage, as an operator looks after them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TypeVar

from recollect.core.text.checks import check_line
from recollect.errors import InvalidInputError, NotFoundError
from recollect.jobs.cold import tidy
from recollect.models.outside import ColdStats, MoveResult, ScopeLocation, StorageTier
from recollect.models.service import Caller
from recollect.store.cold import keys, tiers
from recollect.store.cold.storage import require_storage
from recollect.store.database.pool import Database
from recollect.store.service import scopes
from recollect.verbs.cold.moves import restore_scope, send_out
from recollect.verbs.dependencies import Dependencies

Done = TypeVar("Done")
AT_ONCE = 4
MARGIN_SECONDS = 0.5
"""How much longer than the longest call a scope is marked before it leaves."""


@dataclass(frozen=True, slots=True)
class ColdScopes:
    """Operator commands that move scopes to object storage and back."""

    parts: Dependencies
    deadline_seconds: float

    async def stats(self) -> ColdStats:
        """Count cold scopes over all tenants."""
        counted = [await tiers.count_cold_scopes(each.database) for each in await self.parts.servers.answering()]
        return ColdStats(*(sum(numbers) for numbers in zip(*map(astuple, counted), strict=True)))

    async def list(self, caller: Caller, agent: str | None = None, user: str | None = None) -> Sequence[ScopeLocation]:
        """List scopes of a tenant that are not hot."""
        return [each for _, each in await self._find(caller, agent, user) if each.tier is not StorageTier.HOT]

    async def out(
        self, caller: Caller, agent: str | None, user: str | None = None, report: Callable[[int], None] = lambda _: None
    ) -> MoveResult:
        """Move scopes of a tenant to object storage now. A scope that is requested during the call stays here.

        Scopes are marked for longer than any call may take, so no running call loses the rows that it reads.
        """
        require_storage(self.parts.cold)
        found = await self._require(caller, agent, user)
        held = [(database, each.scope_id) for database, each in found if each.tier is not StorageTier.COLD]
        for database in dict.fromkeys(database for database, _ in held):
            own = [scope_id for each, scope_id in held if each is database]
            await tiers.mark(database, caller.tenant_id, own)
        await asyncio.sleep(self.deadline_seconds + MARGIN_SECONDS)
        done = await in_turn(held, lambda each: send_out(replace(self.parts, database=each[0]), each[1]), report)
        sent = [each for each in done if each is not None]
        return MoveResult(len(sent), len(found) - len(sent), sum(each.bytes for each in sent))

    async def back(
        self, caller: Caller, agent: str | None, user: str | None = None, report: Callable[[int], None] = lambda _: None
    ) -> MoveResult:
        """Bring scopes of a tenant back now; those that were to leave stay."""
        require_storage(self.parts.cold)
        found = await self._require(caller, agent, user)

        async def restore_one(each: tuple[Database, int]) -> bool:
            database, scope_id = each
            await scopes.touch(database, scope_id)
            return await restore_scope(replace(self.parts, database=database), scope_id)

        away = [(database, each.scope_id) for database, each in found if each.tier is not StorageTier.HOT]
        done = await in_turn(away, restore_one, report)
        return MoveResult(sum(done), len(found) - sum(done))

    async def rewrap(self) -> int:
        """Wrap every tenant's key by the current master key; return how many were wrapped by the one before."""
        storage = require_storage(self.parts.cold)
        if not storage.keys.current:
            raise InvalidInputError(
                "set RECOLLECT_COLD__KEY to the new master key and RECOLLECT_COLD__PREVIOUS_KEY to the old"
            )
        wrapped = [await keys.rewrap(each.database, storage.keys) for each in await self.parts.servers.all()]
        return len({key for some in wrapped for key in some})

    async def remove_unused(self) -> int:
        """Remove objects that nothing needs any more; return how many."""
        storage = require_storage(self.parts.cold)
        return sum([await tidy(each.database, storage) for each in await self.parts.servers.all()])

    async def _find(
        self, caller: Caller, agent: str | None, user: str | None
    ) -> Sequence[tuple[Database, ScopeLocation]]:
        """Find scopes of a tenant, each with the database that stores it."""
        for name, given in (("agent", agent), ("user", user)):
            check_line(name, given or "")
        return [
            (database, each)
            for database in await self.parts.servers.each(caller.tenant_id)
            for each in await tiers.find_scopes(database, caller.tenant_id, agent, user)
        ]

    async def _require(
        self, caller: Caller, agent: str | None, user: str | None
    ) -> Sequence[tuple[Database, ScopeLocation]]:
        found = await self._find(caller, agent, user)
        if not found:
            raise NotFoundError("No such scope: nothing was ever stored there.")
        return found


async def in_turn(
    scopes: Sequence[tuple[Database, int]],
    move: Callable[[tuple[Database, int]], Awaitable[Done]],
    report: Callable[[int], None],
) -> list[Done]:
    """Move scopes, some at a time, and report how many are done."""
    places, done = asyncio.Semaphore(AT_ONCE), 0

    async def one(scope: tuple[Database, int]) -> Done:
        nonlocal done
        async with places:
            outcome = await move(scope)
        done += 1
        report(done)
        return outcome

    return await asyncio.gather(*(one(each) for each in scopes))
