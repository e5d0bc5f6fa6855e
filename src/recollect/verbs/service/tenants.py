"""The scopes of a tenant, by last write, size or name; and the status of the service for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any

from recollect.core.service.permissions import check_bounds, check_right
from recollect.core.text.checks import check_limit, check_line
from recollect.errors import InvalidInputError
from recollect.llm.embedder import explain_not_served, serves
from recollect.loading import package_version
from recollect.models.service import (
    MAX_SCOPE_NAME_LENGTH,
    Caller,
    EmbedderStatus,
    KeyBinding,
    Right,
    ScopeInfo,
    ScopeOrder,
    ScopePage,
    ScopeQuery,
    ServiceStatus,
    TaskStatus,
)
from recollect.store.service import jobs, scope_lists
from recollect.store.service.scope_lists import ScopePlace
from recollect.store.shards.probe import AnyProbe
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.service.costs import read_budget

BETWEEN = {ScopeOrder.RECENT: "_", ScopeOrder.SIZE: "_", ScopeOrder.NAME: "/"}
"""Separates the parts of a cursor: no name has a slash."""


async def list_scopes(
    parts: Dependencies, caller: Caller, wanted: ScopeQuery, cursor: str = "", limit: int = 50
) -> ScopePage:
    """Fetch one page of the scopes of the caller's tenant."""
    check_right(caller, Right.READ)
    check_limit(limit)
    check_line("search", wanted.search, MAX_SCOPE_NAME_LENGTH)
    if wanted.agent:
        check_bounds(replace(caller, bounds=KeyBinding(caller.bounds.agent)), wanted.agent, None)
    bounds = KeyBinding(wanted.agent or caller.bounds.agent, caller.bounds.user)
    before = read_place(wanted.order, cursor) if cursor else None
    pages = [
        await scope_lists.page(each, caller.tenant_id, bounds, wanted, before, limit + 1)
        for each in await parts.servers.each(caller.tenant_id)
    ]
    found = sorted(chain.from_iterable(pages), key=order_by(wanted.order)) if len(pages) > 1 else pages[0]
    listed = tuple(each for _, each in found[:limit])
    return ScopePage(listed, write_place(wanted.order, found[limit - 1][0]) if len(found) > limit else None)


def order_by(order: ScopeOrder) -> Callable[[tuple[ScopePlace, ScopeInfo]], Any]:
    """Return the sort key that merges the pages of several servers: the order of each page."""
    keys: dict[ScopeOrder, Callable[[tuple[ScopePlace, ScopeInfo]], Any]] = {
        ScopeOrder.NAME: lambda each: (each[1].agent.encode(), each[1].user.encode()),
        ScopeOrder.RECENT: lambda each: (-each[1].last_written_at.timestamp(), -int(each[0].tie)),
        ScopeOrder.SIZE: lambda each: (-each[1].memories, -int(each[0].tie)),
    }
    return keys[order]


async def read_status(parts: Dependencies, probe: AnyProbe, caller: Caller) -> ServiceStatus:
    """Return the setup of the service, and the remaining work for the caller's tenant."""
    check_right(caller, Right.READ)
    space = await probe.active_space()
    bound = caller.bounds.agent is not None
    servers = await parts.servers.each(caller.tenant_id)
    return ServiceStatus(
        version=package_version(),
        embedder=EmbedderStatus(parts.embedder.model if parts.embedder else "", serves(parts.embedder, space)),
        by_words=explain_not_served(parts.embedder, space),
        chat_model=parts.chat.model if parts.chat else "",
        keep_recalls="off" if parts.options.keep_share <= 0 else "on" if parts.options.keep_share >= 1 else "sampled",
        jobs=add_up([await jobs.count_by_task(each, caller.tenant_id, caller.bounds) for each in servers]),
        budget=None if bound else await read_budget(parts, caller.tenant_id),
    )


def add_up(counted: Sequence[Sequence[TaskStatus]]) -> tuple[TaskStatus, ...]:
    """Sum up the remaining work of a tenant's servers, by task."""
    if len(counted) == 1:
        return tuple(counted[0])
    tasks = sorted({each.task for some in counted for each in some})
    return tuple(join_tasks([each for some in counted for each in some if each.task == task]) for task in tasks)


def join_tasks(same: Sequence[TaskStatus]) -> TaskStatus:
    """Sum up the counts of one task on several servers."""
    oldest = [each.oldest_seconds for each in same if each.oldest_seconds is not None]
    return TaskStatus(
        same[0].task,
        waiting=sum(each.waiting for each in same),
        running=sum(each.running for each in same),
        failed=sum(each.failed for each in same),
        oldest_seconds=max(oldest, default=None),
    )


def write_place(order: ScopeOrder, place: ScopePlace) -> str:
    """Encode the position of the next page."""
    return f"{place.value}{BETWEEN[order]}{place.tie}"


def read_place(order: ScopeOrder, cursor: str) -> ScopePlace:
    """Decode the position of a page, in the given order."""
    value, _, tie = cursor.partition(BETWEEN[order])
    try:
        if order is ScopeOrder.NAME:
            return ScopePlace(value, tie)
        if order is ScopeOrder.RECENT:
            return ScopePlace(datetime.fromisoformat(value).isoformat(), read_number(tie))
        return ScopePlace(read_number(value), read_number(tie))
    except (ValueError, OverflowError):
        raise InvalidInputError("cursor must be the next_cursor of an earlier page in the same order") from None


def read_number(written: str) -> int:
    """Parse a number in a cursor."""
    number = int(written)
    if not 0 <= number <= scope_lists.MAX_INT:
        raise ValueError
    return number
