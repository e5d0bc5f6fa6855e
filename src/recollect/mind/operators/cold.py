"""Scopes in object storage, as an operator looks after them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import astuple, dataclass
from typing import TypeVar

from recollect.core.text.checks import check_line
from recollect.errors import InvalidInputError, NotFoundError
from recollect.jobs.cold import tidy
from recollect.models.outside import ColdStanding, FoundScope, Moved, Tier
from recollect.models.service import Caller
from recollect.store.cold import keys, tiers
from recollect.store.cold.storage import require_storage
from recollect.store.service import scopes
from recollect.verbs.cold.moves import bring_back, send_out
from recollect.verbs.parts import Parts

Done = TypeVar("Done")
AT_ONCE = 4
NO_MASTER = "set RECOLLECT_COLD_KEY to the new master key and RECOLLECT_COLD_KEY_BEFORE to the old one"
MARGIN_SECONDS = 0.5
"""How much longer than the longest call a scope is marked before it leaves."""


@dataclass(frozen=True, slots=True)
class ColdScopes:
    """Where an operator sends scopes out and brings them back."""

    parts: Parts
    deadline_seconds: float

    async def standing(self) -> ColdStanding:
        """Count cold scopes over all tenants."""
        counted = [await tiers.read_standing(each.database) for each in await self.parts.servers.all()]
        return ColdStanding(*(sum(numbers) for numbers in zip(*map(astuple, counted), strict=True)))

    async def list(self, caller: Caller, agent: str | None = None, user: str | None = None) -> Sequence[FoundScope]:
        """List scopes of a tenant that are not hot."""
        found = await tiers.find(self.parts.database, caller.tenant_id, agent, user)
        return [each for each in found if each.tier is not Tier.HOT]

    async def out(
        self, caller: Caller, agent: str | None, user: str | None = None, report: Callable[[int], None] = lambda _: None
    ) -> Moved:
        """Send scopes of a tenant out now; whoever asks for one meanwhile keeps it here.

        They are marked for longer than any call may take, so that none that is under way finds its rows gone.
        """
        require_storage(self.parts.cold)
        found = await self._find(caller, agent, user)
        database, held = self.parts.database, [each.scope_id for each in found if each.tier is not Tier.COLD]
        await tiers.mark(database, caller.tenant_id, held)
        await asyncio.sleep(self.deadline_seconds + MARGIN_SECONDS)
        done = await in_turn(held, lambda scope_id: send_out(self.parts, scope_id), report)
        sent = [each for each in done if each is not None]
        return Moved(len(sent), len(found) - len(sent), sum(each.bytes for each in sent))

    async def back(
        self, caller: Caller, agent: str | None, user: str | None = None, report: Callable[[int], None] = lambda _: None
    ) -> Moved:
        """Bring scopes of a tenant back now; those that were to leave stay."""
        require_storage(self.parts.cold)
        found = await self._find(caller, agent, user)

        async def bring(scope_id: int) -> bool:
            await scopes.touch(self.parts.database, scope_id)
            return await bring_back(self.parts, scope_id)

        done = await in_turn([each.scope_id for each in found if each.tier is not Tier.HOT], bring, report)
        return Moved(sum(done), len(found) - sum(done))

    async def rewrap(self) -> int:
        """Wrap every tenant's key by the current master key; return how many were wrapped by the one before."""
        storage = require_storage(self.parts.cold)
        if not storage.keys.current:
            raise InvalidInputError(
                "set RECOLLECT_COLD_KEY to the new master key and RECOLLECT_COLD_KEY_BEFORE to the old"
            )
        return await keys.rewrap(self.parts.database, storage.keys)

    async def tidy(self) -> int:
        """Remove objects that nothing needs any more; return how many."""
        return await tidy(self.parts.database, require_storage(self.parts.cold))

    async def _find(self, caller: Caller, agent: str | None, user: str | None) -> Sequence[FoundScope]:
        for name, given in (("agent", agent), ("user", user)):
            check_line(name, given or "")
        found = await tiers.find(self.parts.database, caller.tenant_id, agent, user)
        if not found:
            raise NotFoundError("There is no such scope: nothing was ever remembered there.")
        return found


async def in_turn(
    scopes: Sequence[int], move: Callable[[int], Awaitable[Done]], report: Callable[[int], None]
) -> list[Done]:
    """Move scopes, some at a time, and report how many are done."""
    places, done = asyncio.Semaphore(AT_ONCE), 0

    async def one(scope_id: int) -> Done:
        nonlocal done
        async with places:
            outcome = await move(scope_id)
        done += 1
        report(done)
        return outcome

    return await asyncio.gather(*(one(each) for each in scopes))
