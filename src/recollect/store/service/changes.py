"""Read a scope's change log, and wake those who follow it: one listener and one look a second for a whole process."""

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
from recollect.store.database.pool import Connection, Database, load_queries, show_cold
from recollect.store.database.refusals import connect
from recollect.store.service.scopes import UNKNOWN_KEY
from recollect.store.shards.servers import one_per_server

LOG = logging.getLogger("recollect.changes")
QUERIES = load_queries(__file__)
MOST_FOLLOWERS = 1_000
LOOK_SECONDS = 1.0
"""How often keys are checked, and the log where nobody tells of changes; admission's bound is twice this."""
SAFE_LOOKS = 5
"""Every so many looks the log is looked at even where changes are told."""
TOLD_SECONDS, RENEW_SECONDS = 90.0, 60.0
"""How long writers tell of changes after a scope was registered, and with how much of that left it is renewed."""
HEAR_SECONDS, DEAF_SECONDS = 2.0, 60.0
"""How long a first notification may take, and when to try again where none came."""
TURN_SECONDS = 5.0
BUSY_MILLISECONDS = "300"
"""How long to wait for a writer to commit."""
TOO_MANY = "Too many changes are followed here already; try again later."
CLOSING = "The service stops; follow again from your last cursor."


@dataclass(frozen=True, slots=True)
class LogPage:
    """What a scope's log has after a number."""

    incarnation: UUID
    former: frozenset[UUID]
    """Those of the servers that the scope has come from: their cursors hold."""
    scope_id: int | None
    """None while nothing was ever written to the scope."""
    newest: int
    changes: tuple[Change, ...]


async def read_log(database: Database, scope: Scope, after: int | None, limit: int) -> LogPage:
    """Read a page of a scope's log after a number; None only tells the newest number."""
    asked = {"agent": scope.agent, "user": scope.user, "after": after, "limit": limit}
    async with database.listing(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["read_log"], asked)
    rows = await found.fetchall()
    if not rows:
        raise UnavailableError("The database does not tell its incarnation; try again.")
    changes = tuple(to_change(row) for row in rows if row["number"] is not None)
    incarnation, former = rows[0]["incarnation"], frozenset(rows[0]["former"])
    return LogPage(incarnation, former, rows[0]["scope_id"], rows[0]["newest"] or 0, changes)


def to_change(row: DictRow) -> Change:
    """Turn a row into a change."""
    cursor = write_cursor(row["incarnation"], row["number"])
    return Change(cursor, row["number"], row["at"], row["operation"], tuple(row["ids"]))


@dataclass(eq=False, slots=True)
class Follower:
    """One who follows a scope: how far it has read, and what ended it."""

    tenant_id: int
    key_id: UUID | None
    scope_id: int | None = None
    number: int = 0
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    problem: RecollectError | None = None

    def begin_reading(self) -> None:
        """Forget what it was woken for, or raise what has ended it."""
        self.woken.clear()
        if self.problem is not None:
            raise self.problem

    def end(self, problem: RecollectError) -> None:
        """Wake it for the last time."""
        self.problem = self.problem or problem
        self.woken.set()


class ChangeFeed:
    """Who follows which scope in this process, and the tasks that wake them, which run while there is anybody."""

    def __init__(self, database: Database, find_home: Callable[[int], Awaitable[Database]]) -> None:
        self._database, self._find_home = database, find_home
        self._followers = set[Follower]()
        self._by_scope = dict[int, set[Follower]]()
        self._told = dict[int, float]()
        """Until when writers tell of a scope's changes, by the loop's clock."""
        self._channel = ""
        """Where changes are heard; empty while they are not."""
        self._work: asyncio.Task[None] | None = None
        self._nudge = asyncio.Event()
        self._looks = 0

    @asynccontextmanager
    async def following(self, tenant_id: int, key_id: UUID | None) -> AsyncIterator[Follower]:
        """Follow a scope, which is named later, for as long as the block lasts."""
        if len(self._followers) >= MOST_FOLLOWERS:
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
                self._leave(follower, follower.scope_id)
            self._nudge.set()

    def place(self, follower: Follower, page: LogPage) -> None:
        """Note which scope is followed, and how far it was read."""
        follower.number = page.changes[-1].number if page.changes else page.newest
        if page.scope_id is not None and follower.scope_id is None:
            follower.scope_id = page.scope_id
            self._by_scope.setdefault(page.scope_id, set()).add(follower)
            self._nudge.set()

    def _leave(self, follower: Follower, scope_id: int) -> None:
        beside = self._by_scope.get(scope_id, set())
        beside.discard(follower)
        if not beside:
            self._by_scope.pop(scope_id, None)
            self._told.pop(scope_id, None)

    async def close(self) -> None:
        """End all that follow."""
        if self._work is not None:
            await end(self._work)

    def _end_all(self, problem: RecollectError) -> None:
        for follower in self._followers:
            follower.end(problem)

    def _wake(self, scopes: Iterable[int]) -> None:
        for scope_id in scopes:
            for follower in self._by_scope.get(scope_id, ()):
                follower.woken.set()

    async def _run(self) -> None:
        try:
            while self._followers and not is_cancelled():
                await self._serve()
        except Exception as problem:
            # Whoever follows must not wait for ever, and the text of an error may quote content.
            LOG.error(json.dumps({"event": "following_failed", "reason": type(problem).__name__}))  # noqa: TRY400
        finally:
            self._work = None
            self._end_all(UnavailableError(CLOSING))

    async def _serve(self) -> None:
        """Look after those who follow, as long as there are any."""
        listening = asyncio.create_task(self._listen())
        try:
            while self._followers and not is_cancelled():
                self._nudge.clear()
                try:
                    await self._look()
                except RecollectError as problem:
                    # Whether their keys are still valid is not known: they begin again when it is.
                    self._end_all(problem)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._nudge.wait()
        finally:
            await end(listening)

    async def _look(self) -> None:
        """Check keys, look at the log where nobody tells of changes, and let writers tell of them from now on."""
        self._looks += 1
        keys = {(each.tenant_id, each.key_id) for each in self._followers if each.key_id is not None}
        standing = await self._check_keys(keys)
        async with self._database.reading(None) as connection:
            newest = await connection.execute(QUERIES["newest"], {"scopes": self._unheard()})
            channel = await connection.execute(QUERIES["channel"])
        # Whoever has come meanwhile was not asked about.
        ended = {key for _, key in keys} - standing
        numbers = {row["scope_id"]: row["number"] for row in await newest.fetchall()}
        if self._channel not in {row["channel"] for row in await channel.fetchall()}:
            self._channel = ""
        for follower in tuple(self._followers):
            if follower.key_id in ended:
                follower.end(UnauthenticatedError(UNKNOWN_KEY))
            elif follower.scope_id is None or numbers.get(follower.scope_id) != follower.number:
                # It has changed, or it has gone to another server.
                follower.woken.set()
        with suppress(RecollectError):  # on a server that only reads, the log is looked at
            await self._register()

    async def _check_keys(self, keys: Collection[tuple[int, UUID]]) -> set[UUID]:
        """Return the keys that are still let in, as the homes of their tenants say."""
        standing = set[UUID]()
        homes = {tenant_id: await self._find_home(tenant_id) for tenant_id, _ in keys}
        for home in one_per_server(list(homes.values())):
            own = [(tenant_id, key) for tenant_id, key in keys if homes[tenant_id].is_same(home)]
            asked = {"tenants": [tenant_id for tenant_id, _ in own], "keys": [key for _, key in own]}
            async with home.reading(None) as connection:
                found = await connection.execute(QUERIES["standing"], asked)
            standing |= {row["key_id"] for row in await found.fetchall()}
        return standing

    def _unheard(self) -> list[int]:
        """List the scopes whose changes are not told; sometimes all, to be safe."""
        now = asyncio.get_running_loop().time()
        if not self._channel or self._looks % SAFE_LOOKS == 0:
            return list(self._by_scope)
        return [scope_id for scope_id in self._by_scope if self._told.get(scope_id, 0.0) <= now]

    async def _register(self) -> None:
        """Have writers tell of the changes of scopes: what was written before is read by those who are woken here."""
        now = asyncio.get_running_loop().time()
        due = sorted(scope_id for scope_id in self._by_scope if self._told.get(scope_id, 0.0) - now < RENEW_SECONDS)
        if not self._channel:
            return
        for tenant_id, scopes in groupby(due, tenant_of):
            wanted = list(scopes)
            registered = await self._ask_to_tell(tenant_id, wanted)
            busy = [scope_id for scope_id in wanted if scope_id not in registered]
            if busy:
                # One each time is waited for, until its writer commits: what is never idle is told of, too.
                with suppress(UnavailableError):
                    registered += await self._ask_to_tell(tenant_id, [choice(busy)], BUSY_MILLISECONDS)  # noqa: S311
            self._wake(scope_id for scope_id in registered if self._told.get(scope_id, 0.0) <= now)
            self._told |= {scope_id: now + TOLD_SECONDS for scope_id in registered if scope_id in self._by_scope}

    async def _ask_to_tell(self, tenant_id: int, scopes: list[int], milliseconds: str = "") -> list[int]:
        """Register scopes of a tenant; return those that were not locked, or not for longer than told."""
        query = QUERIES["register_busy" if milliseconds else "register"]
        async with self._database.transaction(tenant_id) as connection:
            await show_cold(connection)
            if milliseconds:
                await connection.execute(QUERIES["wait_for_lock"], {"milliseconds": milliseconds})
            found = await connection.execute(query, {"scopes": scopes, "seconds": TOLD_SECONDS})
            return [row["id"] for row in await found.fetchall()]

    async def _listen(self) -> None:
        """Hear of changes on a connection of its own; try again where it is lost or hears nothing."""
        pause = LOOK_SECONDS
        while not is_cancelled():
            with suppress(psycopg.Error, RecollectError):
                connection = await connect(self._database.direct)
                try:
                    pause = await self._hear(connection)
                finally:
                    self._channel = ""
                    self._told.clear()
                    await connection.close()
            await asyncio.sleep(pause)
            pause = LOOK_SECONDS

    async def _hear(self, connection: Connection) -> float:
        """Wake followers as long as changes are heard; return how long to wait before the next try."""
        rows = await (await connection.execute(QUERIES["channel"])).fetchall()
        channel: str = rows[0]["channel"]
        await connection.execute(SQL(QUERIES["listen"]).format(channel=Identifier(channel)))
        async with self._database.statement() as other:
            await other.execute(QUERIES["ping"], {"channel": channel})
        if not [note async for note in connection.notifies(timeout=HEAR_SECONDS, stop_after=1)]:
            # Behind a pooler that shares connections nothing is heard.
            LOG.warning(json.dumps({"event": "cannot_listen", "message": "Changes are looked for once a second."}))
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
        """Return the feed of the server that a database lies on."""
        for known, feed in self._feeds:
            if known.is_same(database):
                return feed
        feed = ChangeFeed(database.used(key_id="", placed=None), self._find_home)
        self._feeds.append((database, feed))
        return feed

    async def close(self) -> None:
        """End all that follow."""
        for _, feed in self._feeds:
            await feed.close()


async def end(task: asyncio.Task[None]) -> None:
    """Cancel a task until it has ended.

    It may miss a cancellation: `asyncio.wait_for` of Python 3.11 drops one that comes together with what it waits for,
    and the driver uses it while it connects.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=LOOK_SECONDS)
    if not task.cancelled():
        task.exception()


def is_cancelled() -> bool:
    """Tell whether this task was cancelled: while it waited for the database it may have got the driver's error."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
