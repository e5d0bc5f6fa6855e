"""What every call begins with: one caller, one scope, a right to check and a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Self

from recollect.core.service.permissions import check_all_users, check_right
from recollect.errors import UnavailableError
from recollect.models.recall import Cue
from recollect.models.service import Caller, Right, Scope
from recollect.store.database.pool import Database
from recollect.store.service.scopes import ScopeHandle, locate
from recollect.verbs.dependencies import Dependencies

RIGHT_TO_RECALL = "`read`; `write` to keep the recall, or to date an access"


@dataclass(frozen=True, slots=True)
class Access:
    """One caller's access to one scope."""

    parts: Dependencies
    caller: Caller
    scope: Scope
    deadline_seconds: float
    place: ScopeHandle | None = None
    """The place of the scope when the caller was authorized, valid for that request; None looks it up each time."""

    def require(self, right: Right, *, all_users: bool = False) -> None:
        """Refuse a caller without a right, or one who is bound to one user where all users are concerned."""
        if all_users:
            check_all_users(self.caller)
        check_right(self.caller, right)

    async def renew_access(self) -> Self:
        """Return the access to the scope in its current database."""
        database = await self.parts.servers.for_scope(self.scope)
        return replace(self, parts=replace(self.parts, database=connection_for(self.caller, database)), place=None)

    async def locate(self) -> ScopeHandle:
        """Return the place of the scope."""
        return self.place or await locate(self.parts.database, self.scope)


def connection_for(caller: Caller, database: Database) -> Database:
    """Return the connections for a caller: the change log names its key."""
    return database.used(key_id=str(caller.key_id)) if caller.key_id else database


@asynccontextmanager
async def within(seconds: float | None) -> AsyncIterator[None]:
    """End work that takes too long, with an error that a caller can act on; None is no limit."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise UnavailableError(f"No answer within {seconds:g} seconds; try again.") from None


@dataclass(slots=True)
class OutsideCall:
    """A call of a program outside this process."""

    caller: Caller | None = None
    """The caller, once the database has accepted its key."""


OUTSIDE: ContextVar[OutsideCall | None] = ContextVar("outside", default=None)


def record_caller(caller: Caller) -> None:
    """Record the caller in the context of the call from outside, if there is one."""
    call = OUTSIDE.get()
    if call is not None:
        call.caller = caller


def right_for(cues: Sequence[Cue]) -> Right:
    """Return the right that a recall needs: setting an access time or saving the recall needs the right to write."""
    return Right.WRITE if any(cue.keep or (cue.now is not None and cue.touch) for cue in cues) else Right.READ
