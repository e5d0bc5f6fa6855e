"""List and describe conversations, archive, restore, delete and purge them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from recollect.core.conversations.appends import check_conversation
from recollect.core.memories.checks import check_metadata
from recollect.core.text.checks import check_limit, check_line
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.conversations import (
    Conversation,
    Conversations,
    ConversationState,
    DeletedConversation,
    Leaf,
    PurgeReceipt,
)
from recollect.models.memories import JSON
from recollect.models.service import Caller, Scope
from recollect.store.conversations import conversations, lifecycle
from recollect.store.conversations.lifecycle import StateChange
from recollect.verbs.conversations.history import UNKNOWN
from recollect.verbs.parts import Parts

SYNC_SECONDS = 2.0
"""A call that changes a state works on it so long; a conversation of usual size is done by then."""


async def get_conversation(parts: Parts, scope: Scope, conversation: str) -> Conversation:
    """Read one conversation, in any state."""
    check_conversation(conversation)
    found = await conversations.find(parts.database, scope, conversation, conversations.EVERY_STATE)
    if found is None:
        raise NotFoundError(UNKNOWN)
    return found


async def list_conversations(
    parts: Parts, scope: Scope, state: ConversationState | None, cursor: str, limit: int
) -> Conversations:
    """Fetch one page, the latest first."""
    check_limit(limit)
    states = conversations.IN_SIGHT if state is None else (state,)
    rows = await conversations.page(parts.database, scope, states, read_cursor(cursor), limit + 1)
    return Conversations(tuple(rows[:limit]), write_cursor(rows[limit - 1]) if len(rows) > limit else "")


def write_cursor(last: Conversation) -> str:
    """Write where the next page begins, in characters that are safe in a URL."""
    return f"{last.updated_at.astimezone(UTC).isoformat().replace('+00:00', 'Z')}_{last.id}"


def read_cursor(cursor: str) -> tuple[datetime, str] | None:
    """Read where a page begins."""
    if not cursor:
        return None
    moment, _, conversation = cursor.partition("_")
    try:
        return datetime.fromisoformat(moment).astimezone(UTC), conversation
    except (ValueError, OverflowError):
        raise InvalidInputError("cursor must be the next_cursor of the page before") from None


async def list_leaves(parts: Parts, scope: Scope, conversation: str, limit: int) -> list[Leaf]:
    """List the ends of a conversation's threads, newest first."""
    check_conversation(conversation)
    check_limit(limit)
    leaves = await conversations.list_leaves(parts.database, scope, conversation, limit)
    if not leaves and await conversations.find(parts.database, scope, conversation) is None:
        raise NotFoundError(UNKNOWN)
    return leaves


async def describe(
    parts: Parts, scope: Scope, conversation: str, name: str | None, metadata: Mapping[str, JSON] | None
) -> None:
    """Change a conversation's name or metadata."""
    check_conversation(conversation)
    if name is not None:
        check_line("name", name)
    if metadata is not None:
        check_metadata(dict(metadata))
    if not await conversations.describe(parts.database, scope, conversation, name, metadata):
        raise NotFoundError(UNKNOWN)


async def bring(
    parts: Parts, caller: Caller, scope: Scope, conversation: str, wanted: ConversationState
) -> Conversation:
    """Bring a conversation into a state, and its memories in line with it as far as there is time."""
    await change(parts, caller, scope, conversation, wanted)
    return await get_conversation(parts, scope, conversation)


async def delete(
    parts: Parts, caller: Caller, scope: Scope, conversation: str, *, dry_run: bool = False
) -> DeletedConversation:
    """Delete a conversation, or only count what would go out of sight with it."""
    hidden = dict[str, int]()
    if dry_run:
        hidden = await foresee(parts, scope, conversation, ConversationState.DELETED)
    else:
        await change(parts, caller, scope, conversation, ConversationState.DELETED)
    return DeletedConversation(**asdict(await get_conversation(parts, scope, conversation)), hidden=hidden)


async def purge(
    parts: Parts, caller: Caller, scope: Scope, conversation: str, *, dry_run: bool = False
) -> PurgeReceipt:
    """Erase a conversation for good, in any state, and return the receipt; a purge under way goes on.

    A dry run only counts what would go, and its receipt is not kept.
    """
    if dry_run:
        removed = await foresee(parts, scope, conversation, ConversationState.PURGING)
        return PurgeReceipt(None, conversation, caller.origin, removed, None, None)
    await change(parts, caller, scope, conversation, ConversationState.PURGING)
    return (await lifecycle.list_receipts(parts.database, scope, conversation, 1))[0]


async def foresee(parts: Parts, scope: Scope, conversation: str, wanted: ConversationState) -> dict[str, int]:
    """Count what would go if a conversation came into a state."""
    check_conversation(conversation)
    counted = await lifecycle.foresee(parts.database, scope, conversation, wanted)
    if counted is None:
        raise NotFoundError(UNKNOWN)
    return counted


async def list_receipts(parts: Parts, scope: Scope, conversation: str, limit: int) -> list[PurgeReceipt]:
    """List what purges removed, the latest first; of one conversation, or of all in the scope if none is named."""
    if conversation:
        check_conversation(conversation)
    check_limit(limit)
    return await lifecycle.list_receipts(parts.database, scope, conversation, limit)


async def change(parts: Parts, caller: Caller, scope: Scope, conversation: str, wanted: ConversationState) -> None:
    """Change a state in one small transaction, then bring memories in line chunk by chunk until the time is over."""
    check_conversation(conversation)
    started = time.monotonic()
    scope_id = await lifecycle.change(parts.database, scope, conversation, StateChange(wanted, caller.origin))
    if scope_id is None:
        raise NotFoundError(UNKNOWN)
    while time.monotonic() - started < SYNC_SECONDS:
        step = await lifecycle.sync_chunk(parts.database, scope_id, conversation, rederive=parts.chat is not None)
        if step is None or step.last:
            return
