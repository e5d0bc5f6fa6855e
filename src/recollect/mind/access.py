"""What every call begins with: one caller, one scope, a right to check and a deadline."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from recollect.core.service.positions import read_positions, write_positions
from recollect.core.service.rights import check_all_users, check_right
from recollect.core.text.variants import NEWEST, folding_by
from recollect.errors import InvalidInputError, UnavailableError
from recollect.models.recall import Cue
from recollect.models.service import Caller, Right, Scope
from recollect.store.database.calls import CallPositions, is_served, serving
from recollect.store.database.pool import Database
from recollect.store.database.replicas import ReplicaDatabase, primary_of
from recollect.store.service.scopes import Place, locate
from recollect.store.shards.probe import AnyProbe
from recollect.verbs.parts import Parts, awake

RIGHT_TO_RECALL = "`read`; `write` to keep the recall, or to date an access"


SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)


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
    max_staleness: float | None = None
    """By how many seconds what is read may be behind where nothing was written in this process; None is not at all."""

    @asynccontextmanager
    async def asking(self, right: Right, *, all_users: bool = False) -> AsyncIterator[Self]:
        """Do something that needs a right, within the deadline."""
        self.require(right, all_users=all_users)
        async with within(self.deadline_seconds):
            yield self if right is Right.READ else self.at_primary()

    def choose_replica(self) -> ReplicaDatabase | None:
        """Choose a replica that has what the caller has seen; None if the primary is to be asked."""
        if self.caller.key_id and not is_served():
            # Somebody outside of this process, and nobody knows what it has seen.
            return None
        return self.parts.servers.choose_replica(self.parts.database, self.max_staleness)

    def at_primary(self) -> Self:
        """Return the access to the scope on the server that writes."""
        primary = primary_of(self.parts.database)
        return self if primary is self.parts.database else self.asking_of(primary)

    def asking_of(self, database: Database) -> Self:
        """Return the access to the scope by way of other connections."""
        return replace(self, parts=replace(self.parts, database=database))

    def require(self, right: Right, *, all_users: bool = False) -> None:
        """Refuse a caller without a right, or one who is bound to one user where all users are concerned."""
        if all_users:
            check_all_users(self.caller)
        check_right(self.caller, right)

    async def follow(self) -> Self:
        """Return the access to the scope where it lies now, after it has been moved."""
        await self.parts.servers.read_anew(self.scope.tenant_id)
        database = await self.parts.servers.of_scope(self.scope)
        return replace(self.asking_of(lend_to(self.caller, database)), place=None)

    def folding(self) -> AbstractContextManager[None]:
        """Fold texts as the scope stores them; where its place is not known, as the database is known to."""
        known = self.place or self.probe
        return folding_by(known.text_version if known else NEWEST)

    async def locate(self) -> Place:
        """Return the place of the scope."""
        if self.place is not None:
            return self.place
        return await awake(self.parts, partial(locate, self.parts.database, self.scope))


def lend_to(caller: Caller, database: Database) -> Database:
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


class OutsideCall:
    """A call of somebody outside of this process: what it has seen of others, and what comes of it."""

    def __init__(self, position: str = "", max_staleness: str = "") -> None:
        if max_staleness and not SECONDS.fullmatch(max_staleness):
            raise InvalidInputError("The staleness that is allowed is a number of seconds.")
        self._positions = CallPositions(read_positions(position), float(max_staleness) if max_staleness else None)
        self.caller: Caller | None = None
        """Who calls, once the database has said so."""

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Serve it."""
        before = OUTSIDE.set(self)
        try:
            with serving(self._positions):
                yield
        finally:
            OUTSIDE.reset(before)

    @property
    def position(self) -> str:
        """Say how far the servers' logs came by it; empty if it wrote nothing, or where there are no replicas."""
        return write_positions(self._positions.written) if self._positions.written else ""

    @property
    def served_by(self) -> str:
        """Say who has read for it, the primary or a replica, where there are replicas."""
        return self._positions.served_by


OUTSIDE: ContextVar[OutsideCall | None] = ContextVar("outside", default=None)


def note_caller(caller: Caller) -> None:
    """Tell the call from outside, if one is served, who calls."""
    call = OUTSIDE.get()
    if call is not None:
        call.caller = caller


def right_for(cues: Sequence[Cue]) -> Right:
    """Tell which right a recall needs: setting the time of an access, or keeping the recall, is a write."""
    return Right.WRITE if any(cue.keep or (cue.now is not None and cue.touch) for cue in cues) else Right.READ
