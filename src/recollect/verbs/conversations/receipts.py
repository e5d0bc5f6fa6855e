"""Receipts: what purges of conversations removed, of one scope or of a whole tenant."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain
from uuid import UUID

from recollect.core.service.rights import check_bounds, check_right, check_unbound
from recollect.core.text.checks import check_limit, check_scope
from recollect.errors import InvalidInputError
from recollect.models.conversations import ListedReceipt, PurgeReceipts
from recollect.models.service import Bounds, Caller, Right, Scope
from recollect.store.conversations import lifecycle
from recollect.verbs.parts import Parts

FIRST = ("infinity", UUID(int=2**128 - 1))


async def page_receipts(parts: Parts, caller: Caller, bounds: Bounds, cursor: str, limit: int) -> PurgeReceipts:
    """Fetch one page, the latest first: of the scope that is named, or that a key is bound to, or of the tenant.

    The whole tenant's are for administrators.
    """
    check_limit(limit)
    agent = bounds.agent or caller.bounds.agent
    if agent is None:
        check_unbound(caller)
        check_right(caller, Right.ADMIN)
        if bounds.user is not None:
            raise InvalidInputError("name the agent, too: a user alone is no scope")
        scope = None
    else:
        check_right(caller, Right.READ)
        user = bounds.user or caller.bounds.user or ""
        check_scope(agent, user)
        check_bounds(caller, agent, user)
        scope = Scope(caller.tenant_id, agent, user)
    before = read_place(cursor) if cursor else FIRST
    servers = await parts.servers.each(caller.tenant_id) if scope is None else [await parts.servers.of_scope(scope)]
    pages = [await lifecycle.page_receipts(each, caller.tenant_id, scope, before, limit + 1) for each in servers]
    found = sorted(chain.from_iterable(pages), key=lambda each: (each.begun_at, each.id), reverse=True)
    return PurgeReceipts(tuple(found[:limit]), write_place(found[limit - 1]) if len(found) > limit else None)


def write_place(last: ListedReceipt) -> str:
    """Write where the next page begins."""
    return f"{last.begun_at.astimezone(UTC).isoformat().replace('+00:00', 'Z')}_{last.id}"


def read_place(cursor: str) -> tuple[str, UUID]:
    """Read where a page begins."""
    moment, _, identity = cursor.partition("_")
    try:
        return datetime.fromisoformat(moment).isoformat(), UUID(identity)
    except (ValueError, OverflowError):
        raise InvalidInputError("cursor must be the next_cursor of the page before") from None
