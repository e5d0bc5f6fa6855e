"""What a tenant has: its scopes, by the last write, by size or by name; and how the service stands for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any

from recollect.core.service.rights import check_bounds, check_right
from recollect.core.text.checks import check_limit, check_line
from recollect.errors import InvalidInputError
from recollect.llm.embedder import explain_unserved, serves
from recollect.loading import own_version
from recollect.models.service import (
    LONGEST_SCOPE_NAME,
    Bounds,
    Caller,
    EmbedderStatus,
    ListedScope,
    Right,
    ScopeOrder,
    ScopeQuery,
    Scopes,
    ServiceStatus,
    TaskStatus,
)
from recollect.store.service import jobs, scope_lists
from recollect.store.service.scope_lists import ScopePlace
from recollect.store.shards.probe import AnyProbe
from recollect.verbs.parts import Parts
from recollect.verbs.service.costs import read_budget

BETWEEN = {ScopeOrder.RECENT: "_", ScopeOrder.SIZE: "_", ScopeOrder.NAME: "/"}
"""What stands between the parts of a cursor: no name has a slash."""


async def list_scopes(parts: Parts, caller: Caller, wanted: ScopeQuery, cursor: str = "", limit: int = 50) -> Scopes:
    """Fetch one page of the scopes of the caller's tenant."""
    check_right(caller, Right.READ)
    check_limit(limit)
    check_line("search", wanted.search, LONGEST_SCOPE_NAME)
    if wanted.agent:
        check_bounds(replace(caller, bounds=Bounds(caller.bounds.agent)), wanted.agent, None)
    bounds = Bounds(wanted.agent or caller.bounds.agent, caller.bounds.user)
    before = read_place(wanted.order, cursor) if cursor else None
    pages = [
        await scope_lists.page(each, caller.tenant_id, bounds, wanted, before, limit + 1)
        for each in await parts.servers.each(caller.tenant_id)
    ]
    found = sorted(chain.from_iterable(pages), key=order_by(wanted.order)) if len(pages) > 1 else pages[0]
    listed = tuple(each for _, each in found[:limit])
    return Scopes(listed, write_place(wanted.order, found[limit - 1][0]) if len(found) > limit else None)


def order_by(order: ScopeOrder) -> Callable[[tuple[ScopePlace, ListedScope]], Any]:
    """Return what the pages of several servers are merged by: the order that each of them has."""
    keys: dict[ScopeOrder, Callable[[tuple[ScopePlace, ListedScope]], Any]] = {
        ScopeOrder.NAME: lambda each: (each[1].agent.encode(), each[1].user.encode()),
        ScopeOrder.RECENT: lambda each: (-each[1].last_written_at.timestamp(), -int(each[0].tie)),
        ScopeOrder.SIZE: lambda each: (-each[1].memories, -int(each[0].tie)),
    }
    return keys[order]


async def read_status(parts: Parts, probe: AnyProbe, caller: Caller) -> ServiceStatus:
    """Say how the service is set up, and what it still has to do for the caller's tenant."""
    check_right(caller, Right.READ)
    space = await probe.active_space()
    bound = caller.bounds.agent is not None
    servers = await parts.servers.each(caller.tenant_id)
    return ServiceStatus(
        version=own_version(),
        embedder=EmbedderStatus(parts.embedder.model if parts.embedder else "", serves(parts.embedder, space)),
        by_words=explain_unserved(parts.embedder, space),
        chat_model=parts.chat.model if parts.chat else "",
        keep_recalls="off" if parts.keep_share <= 0 else "on" if parts.keep_share >= 1 else "sampled",
        jobs=add_up([await jobs.count_by_task(each, caller.tenant_id, caller.bounds) for each in servers]),
        budget=None if bound else await read_budget(parts, caller.tenant_id),
    )


def add_up(counted: Sequence[Sequence[TaskStatus]]) -> tuple[TaskStatus, ...]:
    """Add up what the servers of a tenant have to do, by task."""
    if len(counted) == 1:
        return tuple(counted[0])
    tasks = sorted({each.task for some in counted for each in some})
    return tuple(join_tasks([each for some in counted for each in some if each.task == task]) for task in tasks)


def join_tasks(same: Sequence[TaskStatus]) -> TaskStatus:
    """Add up what several servers say of one task."""
    oldest = [each.oldest_seconds for each in same if each.oldest_seconds is not None]
    return TaskStatus(
        same[0].task,
        waiting=sum(each.waiting for each in same),
        running=sum(each.running for each in same),
        failed=sum(each.failed for each in same),
        oldest_seconds=max(oldest, default=None),
    )


def write_place(order: ScopeOrder, place: ScopePlace) -> str:
    """Write where the next page begins."""
    return f"{place.value}{BETWEEN[order]}{place.tie}"


def read_place(order: ScopeOrder, cursor: str) -> ScopePlace:
    """Read where a page begins, in the order that it was written in."""
    value, _, tie = cursor.partition(BETWEEN[order])
    try:
        if order is ScopeOrder.NAME:
            return ScopePlace(value, tie)
        if order is ScopeOrder.RECENT:
            return ScopePlace(datetime.fromisoformat(value).isoformat(), read_number(tie))
        return ScopePlace(read_number(value), read_number(tie))
    except (ValueError, OverflowError):
        raise InvalidInputError("cursor must be the next_cursor of a page before, in the same order") from None


def read_number(written: str) -> int:
    """Read a number that a cursor can hold."""
    number = int(written)
    if not 0 <= number <= scope_lists.LARGEST:
        raise ValueError
    return number
