"""What a tenant has: its scopes, by the last write, by size or by name; and how the service stands for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from importlib.metadata import version

from recollect.core.service.rights import check_bounds, check_right
from recollect.core.text.checks import check_limit, check_line
from recollect.errors import InvalidInputError
from recollect.llm.embedder import explain_unserved, serves
from recollect.models.service import (
    LONGEST_SCOPE_NAME,
    Bounds,
    Caller,
    EmbedderStatus,
    Right,
    ScopeOrder,
    ScopeQuery,
    Scopes,
    ServiceStatus,
)
from recollect.store.database.probe import Probe
from recollect.store.service import jobs, scope_lists
from recollect.store.service.scope_lists import ScopePlace
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
    found = await scope_lists.page(parts.database, caller.tenant_id, bounds, wanted, before, limit + 1)
    listed = tuple(each for _, each in found[:limit])
    return Scopes(listed, write_place(wanted.order, found[limit - 1][0]) if len(found) > limit else None)


async def read_status(parts: Parts, probe: Probe, caller: Caller) -> ServiceStatus:
    """Say how the service is set up, and what it still has to do for the caller's tenant."""
    check_right(caller, Right.READ)
    space = await probe.active_space()
    bound = caller.bounds.agent is not None
    return ServiceStatus(
        version=version("recollect"),
        embedder=EmbedderStatus(parts.embedder.model if parts.embedder else "", serves(parts.embedder, space)),
        by_words=explain_unserved(parts.embedder, space),
        chat_model=parts.chat.model if parts.chat else "",
        keep_recalls="off" if parts.keep_share <= 0 else "on" if parts.keep_share >= 1 else "sampled",
        jobs=tuple(await jobs.count_by_task(parts.database, caller.tenant_id, caller.bounds)),
        budget=None if bound else await read_budget(parts, caller.tenant_id),
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
