"""Receipts of purged conversations, of one scope or of a whole tenant."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain
from uuid import UUID

from recollect.core.conversations.appends import check_conversation
from recollect.core.service.permissions import check_bounds, check_right, check_unbound
from recollect.core.text.checks import check_limit, check_scope
from recollect.errors import InvalidInputError
from recollect.models.conversations import ListedReceipt, PurgeReceiptPage
from recollect.models.service import Caller, KeyBinding, Right, Scope
from recollect.store.conversations import lifecycle
from recollect.verbs.dependencies import Dependencies

FIRST = ("infinity", UUID(int=2**128 - 1))


async def page_receipts(
    parts: Dependencies, caller: Caller, bounds: KeyBinding, conversation: str, cursor: str, limit: int
) -> PurgeReceiptPage:
    """Fetch one page, latest first: of the named scope or its conversation, of the key's scope, or of the tenant.

    Only administrators may read those of the whole tenant.
    """
    check_limit(limit)
    if conversation:
        check_conversation(conversation)
    agent = bounds.agent or caller.bounds.agent
    if agent is None:
        check_unbound(caller)
        check_right(caller, Right.ADMIN)
        if bounds.user is not None or conversation:
            raise InvalidInputError("user and conversation require agent")
        scope = None
    else:
        check_right(caller, Right.READ)
        user = bounds.user or caller.bounds.user or ""
        check_scope(agent, user)
        check_bounds(caller, agent, user)
        scope = Scope(caller.tenant_id, agent, user)
    before = read_place(cursor) if cursor else FIRST
    servers = await parts.servers.each(caller.tenant_id) if scope is None else [await parts.servers.for_scope(scope)]
    pages = [
        await lifecycle.page_receipts(each, caller.tenant_id, scope, conversation, before, limit + 1)
        for each in servers
    ]
    found = sorted(chain.from_iterable(pages), key=lambda each: (each.begun_at, each.id), reverse=True)
    return PurgeReceiptPage(tuple(found[:limit]), write_place(found[limit - 1]) if len(found) > limit else None)


def write_place(last: ListedReceipt) -> str:
    """Encode the position of the next page."""
    return f"{last.begun_at.astimezone(UTC).isoformat().replace('+00:00', 'Z')}_{last.id}"


def read_place(cursor: str) -> tuple[str, UUID]:
    """Decode the position of a page."""
    moment, _, identity = cursor.partition("_")
    try:
        return datetime.fromisoformat(moment).isoformat(), UUID(identity)
    except (ValueError, OverflowError):
        raise InvalidInputError("cursor must be the next_cursor of the previous page") from None
