"""Read scopes' change logs, and wake followers: one listener and one check per second for a whole process."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from random import choice
from uuid import UUID

import psycopg
from psycopg.rows import DictRow
from psycopg.sql import SQL, Identifier

from recollect.core.service.numbers import tenant_of, write_cursor
from recollect.errors import RecollectError, UnauthenticatedError, UnavailableError
from recollect.models.service import Change, Scope
from recollect.store.database.connect_errors import connect
from recollect.store.database.pool import Connection, Database, load_queries, show_cold
from recollect.store.service.scopes import UNKNOWN_KEY
from recollect.store.shards.servers import once_per_server

LOG = logging.getLogger("recollect.changes")
QUERIES = load_queries(__file__)
MAX_FOLLOWERS = 1_000
LOOK_SECONDS = 1.0
"""Seconds between checks of keys, and of the log without notifications; admission's bound is twice this."""
SAFE_LOOKS = 5
"""Every Nth check reads the log even if there are notifications."""
TOLD_SECONDS, RENEW_SECONDS = 90.0, 60.0
"""How long writers notify after a scope was registered, and how long before its end to renew this."""
HEAR_SECONDS, DEAF_SECONDS = 2.0, 60.0
"""Time limit for the first notification, and seconds until the next try without one."""
TURN_SECONDS = 5.0
BUSY_MILLISECONDS = "300"
"""Time limit for a writer to commit."""
TOO_MANY = "Too many change streams on this server. Try again later."
CLOSING = "The server is shutting down. Reconnect with your last cursor."


@dataclass(frozen=True, slots=True)
class LogPage:
    """The rows of a scope's log after a number."""

    incarnation: UUID
    former: frozenset[UUID]
    """The incarnations of servers that had the scope before: their cursors are valid."""
    scope_id: int | None
    """None if the scope was never written to."""
    newest: int
    changes: tuple[Change, ...]


async def read_log(database: Database, scope: Scope, after: int | None, limit: int) -> LogPage:
    """Read a page of a scope's log after a number; None returns only the newest number."""
    asked = {"agent": scope.agent, "user": scope.user, "after": after, "limit": limit}
    async with database.listing(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["read_log"], asked)
    rows = await found.fetchall()
    if not rows:
        raise UnavailableError("Cannot read the database identity. Try again.")
    changes = tuple(to_change(row) for row in rows if row["number"] is not None)
    incarnation, former = rows[0]["incarnation"], frozenset(rows[0]["former"])
    return LogPage(incarnation, former, rows[0]["scope_id"], rows[0]["newest"] or 0, changes)


def to_change(row: DictRow) -> Change:
    """Turn a row into a change."""
    cursor = write_cursor(row["incarnation"], row["number"])
    return Change(cursor, row["number"], row["at"], row["operation"], tuple(row["ids"]))


@dataclass(eq=False, slots=True)
class Follower:
    """A follower of a scope: how far it has read, and the error that ended it."""

    tenant_id: int
    key_id: UUID | None
    scope_id: int | None = None
    number: int = 0
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    problem: RecollectError | None = None

    def begin_reading(self) -> None:
        """Clear the wake-up, or raise the error that ended the follower."""
        self.woken.clear()
        if self.problem is not None:
            raise self.problem

    def end_with_error(self, problem: RecollectError) -> None:
        """Wake the follower for the last time."""
        self.problem = self.problem or problem
        self.woken.set()


class ChangeFeed:
    """The followers of scopes in this process, and the tasks that wake them, which run while there are any."""

    def __init__(self, database: Database, find_home: Callable[[int], Awaitable[Database]]) -> None:
        self._database, self._find_home = database, find_home
        self._followers = set[Follower]()
        self._by_scope = dict[int, set[Follower]]()
        self._told = dict[int, float]()
        """The time until which writers notify of a scope's changes, by the loop's clock."""
        self._channel = ""
        """The channel of the notifications; empty without a listener."""
        self._work: asyncio.Task[None] | None = None
        self._nudge = asyncio.Event()
        self._looks = 0

    @asynccontextmanager
    async def following(self, tenant_id: int, key_id: UUID | None) -> AsyncIterator[Follower]:
        """Follow a scope, which is named later, during the block."""
        if len(self._followers) >= MAX_FOLLOWERS:
            raise UnavailableError(TOO_MANY)
        follower = Follower(tenant_id, key_id)
        self._followers.add(follower)
        if self._work is None:
            self._work = asyncio.create_task(self._run())
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            if follower.scope_id is not None:
                self._remove_follower(follower, follower.scope_id)
            self._nudge.set()

    def place(self, follower: Follower, page: LogPage) -> None:
        """Set the scope of a follower, and how far it has read."""
        follower.number = page.changes[-1].number if page.changes else page.newest
        if page.scope_id is not None and follower.scope_id is None:
            follower.scope_id = page.scope_id
            self._by_scope.setdefault(page.scope_id, set()).add(follower)
            self._nudge.set()

    def _remove_follower(self, follower: Follower, scope_id: int) -> None:
        beside = self._by_scope.get(scope_id, set())
        beside.discard(follower)
        if not beside:
            self._by_scope.pop(scope_id, None)
            self._told.pop(scope_id, None)

    async def end_followers(self) -> None:
        """End all followers."""
        if self._work is not None:
            await cancel_task(self._work)

    def _end_all(self, problem: RecollectError) -> None:
        for follower in self._followers:
            follower.end_with_error(problem)

    def _wake(self, scopes: Iterable[int]) -> None:
        for scope_id in scopes:
            for follower in self._by_scope.get(scope_id, ()):
                follower.woken.set()

    async def _run(self) -> None:
        try:
            while self._followers and not is_cancelled():
                await self._serve()
        except Exception as problem:
            # Followers must not wait forever, and the text of an error may quote content.
            LOG.error(json.dumps({"event": "change_feed_failed", "reason": type(problem).__name__}))  # noqa: TRY400
        finally:
            self._work = None
            self._end_all(UnavailableError(CLOSING))

    async def _serve(self) -> None:
        """Serve the followers while there are any."""
        listening = asyncio.create_task(self._listen())
        try:
            while self._followers and not is_cancelled():
                self._nudge.clear()
                try:
                    await self._look()
                except RecollectError as problem:
                    # It is unknown whether their keys are still valid: they reconnect when the server is available.
                    self._end_all(problem)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._nudge.wait()
        finally:
            await cancel_task(listening)

    async def _look(self) -> None:
        """Check keys, check the log of scopes without notifications, and register scopes for notifications."""
        self._looks += 1
        keys = {(each.tenant_id, each.key_id) for each in self._followers if each.key_id is not None}
        standing = await self._check_keys(keys)
        async with self._database.reading(None) as connection:
            newest = await connection.execute(QUERIES["newest"], {"scopes": self._unheard()})
            channel = await connection.execute(QUERIES["channel"])
        # Keys of new followers were not checked.
        ended = {key for _, key in keys} - standing
        numbers = {row["scope_id"]: row["number"] for row in await newest.fetchall()}
        if self._channel not in {row["channel"] for row in await channel.fetchall()}:
            self._channel = ""
        for follower in tuple(self._followers):
            if follower.key_id in ended:
                follower.end_with_error(UnauthenticatedError(UNKNOWN_KEY))
            elif follower.scope_id is None or numbers.get(follower.scope_id) != follower.number:
                # It has changed, or it has moved to another server.
                follower.woken.set()
        with suppress(RecollectError):  # on a server that only reads, the log is checked
            await self._register()

    async def _check_keys(self, keys: Collection[tuple[int, UUID]]) -> set[UUID]:
        """Return the keys that are still valid, from the home servers of their tenants."""
        standing = set[UUID]()
        homes = {tenant_id: await self._find_home(tenant_id) for tenant_id, _ in keys}
        for home in once_per_server(list(homes.values())):
            own = [(tenant_id, key) for tenant_id, key in keys if homes[tenant_id].is_same(home)]
            asked = {"tenants": [tenant_id for tenant_id, _ in own], "keys": [key for _, key in own]}
            async with home.reading(None) as connection:
                found = await connection.execute(QUERIES["standing"], asked)
            standing |= {row["key_id"] for row in await found.fetchall()}
        return standing

    def _unheard(self) -> list[int]:
        """List the scopes without notifications; every few checks all scopes, to be safe."""
        now = asyncio.get_running_loop().time()
        if not self._channel or self._looks % SAFE_LOOKS == 0:
            return list(self._by_scope)
        return [scope_id for scope_id in self._by_scope if self._told.get(scope_id, 0.0) <= now]

    async def _register(self) -> None:
        """Register scopes, so that writers notify of changes; wake their followers to read earlier changes."""
        now = asyncio.get_running_loop().time()
        due = sorted(scope_id for scope_id in self._by_scope if self._told.get(scope_id, 0.0) - now < RENEW_SECONDS)
        if not self._channel:
            return
        for tenant_id, scopes in groupby(due, tenant_of):
            wanted = list(scopes)
            registered = await self._ask_to_tell(tenant_id, wanted)
            busy = [scope_id for scope_id in wanted if scope_id not in registered]
            if busy:
                # Wait for the writer of one scope each time, so that a scope with constant writes is registered, too.
                with suppress(UnavailableError):
                    registered += await self._ask_to_tell(tenant_id, [choice(busy)], BUSY_MILLISECONDS)  # noqa: S311
            self._wake(scope_id for scope_id in registered if self._told.get(scope_id, 0.0) <= now)
            self._told |= {scope_id: now + TOLD_SECONDS for scope_id in registered if scope_id in self._by_scope}

    async def _ask_to_tell(self, tenant_id: int, scopes: list[int], milliseconds: str = "") -> list[int]:
        """Register scopes of a tenant; return those whose lock was free or became free in time."""
        query = QUERIES["register_busy" if milliseconds else "register"]
        async with self._database.transaction(tenant_id) as connection:
            await show_cold(connection)
            if milliseconds:
                await connection.execute(QUERIES["wait_for_lock"], {"milliseconds": milliseconds})
            found = await connection.execute(query, {"scopes": scopes, "seconds": TOLD_SECONDS})
            return [row["id"] for row in await found.fetchall()]

    async def _listen(self) -> None:
        """Listen for changes on a separate connection; try again if it is lost or receives nothing."""
        pause = LOOK_SECONDS
        while not is_cancelled():
            with suppress(psycopg.Error, RecollectError):
                connection = await connect(self._database.direct)
                try:
                    await self._database.server(connection)
                    pause = await self._listen_for_changes(connection)
                finally:
                    self._channel = ""
                    self._told.clear()
                    await connection.close()
            await asyncio.sleep(pause)
            pause = LOOK_SECONDS

    async def _listen_for_changes(self, connection: Connection) -> float:
        """Wake followers while notifications arrive; return how long to wait before the next try."""
        rows = await (await connection.execute(QUERIES["channel"])).fetchall()
        channel: str = rows[0]["channel"]
        await connection.execute(SQL(QUERIES["listen"]).format(channel=Identifier(channel)))
        async with self._database.statement() as other:
            await other.execute(QUERIES["ping"], {"channel": channel})
        if not [note async for note in connection.notifies(timeout=HEAR_SECONDS, stop_after=1)]:
            # A pooler that shares connections delivers no notifications.
            LOG.warning(
                json.dumps(
                    {
                        "event": "listen_unavailable",
                        "message": "LISTEN is not available; polling for changes every second.",
                    }
                )
            )
            return DEAF_SECONDS
        self._channel = channel
        self._nudge.set()
        while self._channel == channel:
            async with aclosing(connection.notifies(timeout=TURN_SECONDS)) as notes:
                async for note in notes:
                    self._wake([int(note.payload)] if note.payload else [])
        return 0.0


class ChangeFeeds:
    """The feed of each server."""

    def __init__(self, find_home: Callable[[int], Awaitable[Database]]) -> None:
        self._find_home = find_home
        self._feeds: list[tuple[Database, ChangeFeed]] = []

    def of(self, database: Database) -> ChangeFeed:
        """Return the feed of a database's server."""
        for known, feed in self._feeds:
            if known.is_same(database):
                return feed
        feed = ChangeFeed(database.used(key_id="", placed=None), self._find_home)
        self._feeds.append((database, feed))
        return feed

    async def end_followers(self) -> None:
        """End all followers."""
        for _, feed in self._feeds:
            await feed.end_followers()


async def cancel_task(task: asyncio.Task[None]) -> None:
    """Cancel a task until it has ended.

    A task may miss a cancellation: `asyncio.wait_for` of Python 3.11 drops one that arrives together with the awaited
    result, and the driver uses it while it connects.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=LOOK_SECONDS)
    if not task.cancelled():
        task.exception()


def is_cancelled() -> bool:
    """Return whether this task was cancelled: the driver may have raised an error instead."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
