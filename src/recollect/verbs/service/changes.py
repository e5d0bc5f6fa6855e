"""Follow a scope's changes: from a cursor or from now on, each once and in order, until the caller or its key ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

from recollect.core.service.numbers import read_cursor, write_cursor
from recollect.errors import CursorExpiredError, SetupError
from recollect.models.service import Caller, Change, Scope
from recollect.store.service.changes import LogPage, read_log
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recovery import recover

PAGE = 500
BEGAN = "began"
EXPIRED = "Cursor expired: too old, or from before a restore. Reconnect without `since` and reload the scope."


async def follow_changes(parts: Dependencies, caller: Caller, scope: Scope, since: str) -> AsyncIterator[Change]:
    """Yield the start, then every change of a scope after a cursor, or after now if it is empty.

    A scope that moves to another server is followed there.
    """
    start, began = read_cursor(since) if since else None, False
    changes = follow_there(parts, caller, scope, start)

    async def follow_anew() -> Change | None:
        nonlocal changes
        changes = follow_there(await parts.at(scope), caller, scope, start)
        return await anext(changes, None)

    try:
        while change := await recover(parts.recoveries, scope.tenant_id, lambda: anext(changes, None), follow_anew):
            start = read_cursor(change.cursor)
            if not began or change.operation != BEGAN:
                began = True
                yield change
    finally:
        await changes.aclose()


async def follow_there(
    parts: Dependencies, caller: Caller, scope: Scope, start: tuple[UUID, int] | None
) -> AsyncGenerator[Change]:
    """Follow a scope on its current server."""
    if parts.process.feeds is None:
        raise SetupError("changes() needs Recollect opened with its own database")
    feed = parts.process.feeds.of(parts.database)
    async with feed.following(caller.tenant_id, caller.key_id) as follower:
        page = await read_log(parts.database, scope, start[1] if start else None, PAGE)
        incarnation, number = start or (page.incarnation, page.newest)
        check_page(page, incarnation, number)
        yield Change(write_cursor(page.incarnation, number), number, datetime.now(UTC), BEGAN, ())
        while True:
            check_page(page, incarnation, number)
            feed.place(follower, page)
            for change in page.changes:
                yield change
                number = change.number
            if len(page.changes) < PAGE:
                await follower.woken.wait()
            follower.begin_reading()
            page = await read_log(parts.database, scope, number, PAGE)


def check_page(page: LogPage, incarnation: UUID, number: int) -> None:
    """Raise CursorExpiredError unless a page continues the previous one."""
    following = page.changes[0].number == number + 1 if page.changes else page.newest == number
    if incarnation not in {page.incarnation, *page.former} or not following:
        raise CursorExpiredError(EXPIRED)
