"""What every call begins with: one caller, one scope, a right to check and a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from recollect.core.service.rights import check_all_users, check_right
from recollect.core.text.variants import NEWEST, folding_by
from recollect.errors import UnavailableError
from recollect.models.recall import Cue
from recollect.models.service import Caller, Right, Scope
from recollect.store.service.scopes import Place, locate
from recollect.store.shards.probe import AnyProbe
from recollect.verbs.parts import Parts, awake

RIGHT_TO_RECALL = "`read`; `write` to keep the recall, or to date an access"


@dataclass(frozen=True, slots=True)
class Access:
    """One caller's access to one scope."""

    parts: Parts
    caller: Caller
    scope: Scope
    deadline_seconds: float
    place: Place | None = None
    """The place of the scope when the caller was authorized, valid for that request; None looks it up each time."""
    probe: AnyProbe | None = None

    @asynccontextmanager
    async def asking(self, right: Right, *, all_users: bool = False) -> AsyncIterator[Self]:
        """Do something that needs a right, within the deadline."""
        self.require(right, all_users=all_users)
        async with within(self.deadline_seconds):
            yield self

    def require(self, right: Right, *, all_users: bool = False) -> None:
        """Refuse a caller without a right, or one who is bound to one user where all users are concerned."""
        if all_users:
            check_all_users(self.caller)
        check_right(self.caller, right)

    async def follow(self) -> Self:
        """Return the access to the scope where it lies now, after it has been moved."""
        await self.parts.servers.read_anew(self.scope.tenant_id)
        database = await self.parts.servers.of_scope(self.scope)
        used = database.used(key_id=str(self.caller.key_id)) if self.caller.key_id else database
        return replace(self, parts=replace(self.parts, database=used), place=None)

    def folding(self) -> AbstractContextManager[None]:
        """Fold texts as the scope stores them; where its place is not known, as the database is known to."""
        known = self.place or self.probe
        return folding_by(known.text_version if known else NEWEST)

    async def locate(self) -> Place:
        """Return the place of the scope."""
        if self.place is not None:
            return self.place
        return await awake(self.parts, partial(locate, self.parts.database, self.scope))


@asynccontextmanager
async def within(seconds: float | None) -> AsyncIterator[None]:
    """End work that takes too long, with an error that a caller can act on; None is no limit."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise UnavailableError(f"No answer within {seconds:g} seconds; try again.") from None


def right_for(cues: Sequence[Cue]) -> Right:
    """Tell which right a recall needs: setting the time of an access, or keeping the recall, is a write."""
    return Right.WRITE if any(cue.keep or (cue.now is not None and cue.touch) for cue in cues) else Right.READ
