"""The replicas of a server: they read for who has seen no more than they have replayed; all else the primary does.

A replica costs nothing but speed: whatever goes wrong with one, the primary is asked, and the replica is left alone for
a while. Nobody waits for a connection to one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any

from recollect.core.service.positions import join_positions
from recollect.errors import BehindError, MovedError, OverdueError
from recollect.store.database.calls import CALL
from recollect.store.database.pool import Connection, Database, Known, Wanted

LOG = logging.getLogger("recollect.replicas")
WAIT_SECONDS = 0.02
"""How long a replica may take to replay what a caller has seen."""
FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 0.25, 8.0
"""How long a replica is left alone that did not answer: twice as long each time, up to this."""
BEHIND_SECONDS = 0.5
"""How long one is left alone that was behind so many times in a row: everybody would wait in vain."""
MOST_BEHIND = 8
REACH_SECONDS = 1.0
"""How long a connection to a replica may take."""
HARMLESS = (BehindError, MovedError, OverdueError)
"""Such an error says nothing against a replica: it answers."""
MOST_LATER = 1_000
"""So many notes may wait for the primary; what comes then is not noted."""
CLOSE_SECONDS = 5.0


class Replica:
    """One replica: its connections, once they are there, and until when it is left alone."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.database: Database | None = None
        self.opening: asyncio.Task[None] | None = None
        self.rests_until = 0.0
        self._behind, self._failures = 0, 0

    def rest(self, seconds: float, problem: Exception) -> None:
        """Leave it alone for a while."""
        self.rests_until = time.monotonic() + seconds
        LOG.warning(json.dumps({"event": "replica_left_alone", "seconds": seconds, "problem": type(problem).__name__}))

    def begin(self, now: float) -> None:
        """Read; after a failure one call tries it, and the others wait to hear how it went."""
        if self._failures:
            self.rests_until = now + LONGEST_REST_SECONDS

    def note(self, problem: Exception | None) -> None:
        """Learn how a read went; one that finds it behind tells little, many in a row tell that all would."""
        self._behind = self._behind + 1 if isinstance(problem, BehindError) else 0
        if problem is None or isinstance(problem, HARMLESS):
            self.rests_until = 0.0 if self._failures else self.rests_until
            self._failures = 0
        else:
            self.rest(min(LONGEST_REST_SECONDS, FIRST_REST_SECONDS * 2**self._failures), problem)
            self._failures = min(self._failures + 1, 10)
        if problem is not None and self._behind >= MOST_BEHIND:
            self.rest(BEHIND_SECONDS, problem)
            self._behind = 0


class ReplicaDatabase(Database):
    """A replica's connections for what one call reads, and the primary's for all else."""

    def __init__(self, own: Database, primary: Database, replica: Replica, replicas: Replicas) -> None:
        self._own, self._replica, self._replicas = own, replica, replicas
        self.primary = primary
        """The connections of the server that writes."""
        self.shard, self.log, self.direct = primary.shard, primary.log, primary.direct
        self.deadline_seconds, self.milliseconds = primary.deadline_seconds, primary.milliseconds
        self.asked = False
        """Whether anything was read here."""

    def note(self, problem: Exception | None = None) -> None:
        """Tell how the call went, so that a replica that fails is left alone."""
        if self.asked:
            self._replica.note(problem)

    def later(self, write: Coroutine[Any, Any, None]) -> None:
        """Write something to the primary behind the answer."""
        self._replicas.later(write)

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[Connection]:
        """Lend one of the primary's connections."""
        async with self.primary.statement() as connection:
            yield connection

    @asynccontextmanager
    async def reading(
        self, tenant_id: int | None, *, one_snapshot: bool = False, seconds: float | None = None
    ) -> AsyncIterator[Connection]:
        """Read as a tenant; a snapshot would be older than what was waited for, so that is read from the primary."""
        near = tenant_id is not None and not one_snapshot
        self.asked |= near
        reading = (self._own if near else self.primary).reading
        async with reading(tenant_id, one_snapshot=one_snapshot, seconds=seconds) as connection:
            yield connection

    @asynccontextmanager
    async def transaction(self, tenant_id: int | None, *, pipelined: bool = True) -> AsyncIterator[Connection]:
        """Write as a tenant, to the primary."""
        async with self.primary.transaction(tenant_id, pipelined=pipelined) as connection:
            yield connection

    def is_same(self, other: Database) -> bool:
        """Tell whether another one has the same connections, for whomever."""
        return self.primary.is_same(other)

    def used(self, by: Known | None = None, /, **known: Any) -> Database:  # noqa: ANN401 - fields of `Known`
        """Return the primary's connections for whom something else is known."""
        return self.primary.used(by, **known)


class Replicas:
    """All replicas of one server."""

    def __init__(self, addresses: Sequence[str], connect: Callable[[str], Awaitable[Database]]) -> None:
        self._replicas = [Replica(address) for address in addresses]
        self._connect = connect
        self._later: set[asyncio.Task[None]] = set()

    def choose(self, primary: Database, max_staleness: float | None) -> ReplicaDatabase | None:
        """Choose a replica for a call; None if it needs the primary, or if no replica can be asked."""
        wanted = find_wanted(primary, max_staleness)
        if wanted is None:
            return None
        now = time.monotonic()
        ready = [(each, own) for each in self._replicas if each.rests_until <= now and (own := self._reach(each))]
        if not ready:
            return None
        chosen, own = random.choice(ready)  # noqa: S311 - any of them will do
        chosen.begin(now)
        return ReplicaDatabase(own.as_replica(primary, wanted), primary, chosen, self)

    def later(self, write: Coroutine[Any, Any, None]) -> None:
        """Do something behind the answer; it is no part of the call any more."""
        if len(self._later) >= MOST_LATER:
            write.close()
            LOG.warning(json.dumps({"event": "not_noted", "waiting": MOST_LATER}))
            return
        task = asyncio.create_task(write, context=Context())
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def close(self) -> None:
        """Let what waits be written, and close every connection."""
        if self._later:
            await asyncio.wait(self._later, timeout=CLOSE_SECONDS)
        opening = [each.opening for each in self._replicas if each.opening is not None]
        for task in (*opening, *self._later):
            task.cancel()
        await asyncio.gather(*opening, *self._later, return_exceptions=True)
        for each in self._replicas:
            if each.database is not None:
                await each.database.close()

    def _reach(self, replica: Replica) -> Database | None:
        """Return the connections to a replica; those that are not there yet are made, and nobody waits for that."""
        if replica.database is None and replica.opening is None:
            replica.opening = asyncio.create_task(self._open(replica), context=Context())
        return replica.database

    async def _open(self, replica: Replica) -> None:
        try:
            replica.database = await self._connect(replica.address)
        except Exception as problem:  # a replica that cannot be used costs nothing but speed
            replica.note(problem)
        finally:
            replica.opening = None


def primary_of(database: Database) -> Database:
    """Return the connections of the server that writes, whoever reads."""
    return database.primary if isinstance(database, ReplicaDatabase) else database


def find_wanted(primary: Database, max_staleness: float | None) -> Wanted | None:
    """Say what a call needs of a replica; None if only the primary will do.

    Who calls from outside says what it has seen. Who calls in this process has seen what the process wrote.
    """
    call, shard = CALL.get(), primary.shard
    if call is None:
        position = primary.log.newest if primary.log else None
    else:
        position = join_positions(call.seen, call.written.values()).get(shard)
        max_staleness = call.max_staleness
    if position is None and max_staleness is None:
        return None
    return Wanted(position, max_staleness, WAIT_SECONDS)
