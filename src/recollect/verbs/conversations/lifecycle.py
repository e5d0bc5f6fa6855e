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
    ConversationInfo,
    ConversationPage,
    ConversationState,
    DeletedConversation,
    PurgeReceipt,
    ThreadEnd,
)
from recollect.models.memories import JSON
from recollect.models.service import Caller, Scope
from recollect.store.conversations import conversations, lifecycle
from recollect.store.conversations.lifecycle import StateChange
from recollect.verbs.conversations.history import UNKNOWN
from recollect.verbs.dependencies import Dependencies

SYNC_SECONDS = 2.0
"""How long a call updates memories after a change of state; enough for most conversations."""


async def get_conversation(parts: Dependencies, scope: Scope, conversation: str) -> ConversationInfo:
    """Read one conversation, in any state."""
    check_conversation(conversation)
    found = await conversations.find_conversation(parts.database, scope, conversation, conversations.EVERY_STATE)
    if found is None:
        raise NotFoundError(UNKNOWN)
    return found


async def list_conversations(
    parts: Dependencies, scope: Scope, state: ConversationState | None, cursor: str, limit: int
) -> ConversationPage:
    """Fetch one page, latest first."""
    check_limit(limit)
    states = conversations.VISIBLE if state is None else (state,)
    rows = await conversations.page(parts.database, scope, states, read_cursor(cursor), limit + 1)
    return ConversationPage(tuple(rows[:limit]), write_cursor(rows[limit - 1]) if len(rows) > limit else "")


def write_cursor(last: ConversationInfo) -> str:
    """Encode the position of the next page, in characters that are safe in a URL."""
    return f"{last.updated_at.astimezone(UTC).isoformat().replace('+00:00', 'Z')}_{last.id}"


def read_cursor(cursor: str) -> tuple[datetime, str] | None:
    """Decode the position of a page."""
    if not cursor:
        return None
    moment, _, conversation = cursor.partition("_")
    try:
        return datetime.fromisoformat(moment).astimezone(UTC), conversation
    except (ValueError, OverflowError):
        raise InvalidInputError("cursor must be the next_cursor of the previous page") from None


async def list_leaves(parts: Dependencies, scope: Scope, conversation: str, limit: int) -> list[ThreadEnd]:
    """List the ends of a conversation's threads, newest first."""
    check_conversation(conversation)
    check_limit(limit)
    leaves = await conversations.list_leaves(parts.database, scope, conversation, limit)
    if not leaves and await conversations.find_conversation(parts.database, scope, conversation) is None:
        raise NotFoundError(UNKNOWN)
    return leaves


async def update_conversation_details(
    parts: Dependencies, scope: Scope, conversation: str, name: str | None, metadata: Mapping[str, JSON] | None
) -> None:
    """Change a conversation's name or metadata."""
    check_conversation(conversation)
    if name is not None:
        check_line("name", name)
    if metadata is not None:
        check_metadata(dict(metadata))
    if not await conversations.store_conversation_details(parts.database, scope, conversation, name, metadata):
        raise NotFoundError(UNKNOWN)


async def set_state(
    parts: Dependencies, caller: Caller, scope: Scope, conversation: str, wanted: ConversationState
) -> ConversationInfo:
    """Set the state of a conversation, and update its memories within the time limit."""
    await change(parts, caller, scope, conversation, wanted)
    return await get_conversation(parts, scope, conversation)


async def delete(
    parts: Dependencies, caller: Caller, scope: Scope, conversation: str, *, dry_run: bool = False
) -> DeletedConversation:
    """Delete a conversation, or only count the memories that would be hidden."""
    hidden = dict[str, int]()
    if dry_run:
        hidden = await preview(parts, scope, conversation, ConversationState.DELETED)
    else:
        await change(parts, caller, scope, conversation, ConversationState.DELETED)
    return DeletedConversation(**asdict(await get_conversation(parts, scope, conversation)), hidden=hidden)


async def purge(
    parts: Dependencies, caller: Caller, scope: Scope, conversation: str, *, dry_run: bool = False
) -> PurgeReceipt:
    """Erase a conversation permanently, in any state, and return the receipt; a running purge continues.

    A dry run only counts rows, and its receipt is not stored.
    """
    if dry_run:
        removed = await preview(parts, scope, conversation, ConversationState.PURGING)
        return PurgeReceipt(None, conversation, caller.origin, removed, None, None)
    await change(parts, caller, scope, conversation, ConversationState.PURGING)
    return (await lifecycle.list_receipts(parts.database, scope, conversation, 1))[0]


async def preview(parts: Dependencies, scope: Scope, conversation: str, wanted: ConversationState) -> dict[str, int]:
    """Count the memories that a change of state would remove or hide."""
    check_conversation(conversation)
    counted = await lifecycle.count_affected(parts.database, scope, conversation, wanted)
    if counted is None:
        raise NotFoundError(UNKNOWN)
    return counted


async def list_receipts(parts: Dependencies, scope: Scope, conversation: str, limit: int) -> list[PurgeReceipt]:
    """List receipts of purges, latest first; of one conversation, or of all in the scope if none is named."""
    if conversation:
        check_conversation(conversation)
    check_limit(limit)
    return await lifecycle.list_receipts(parts.database, scope, conversation, limit)


async def change(
    parts: Dependencies, caller: Caller, scope: Scope, conversation: str, wanted: ConversationState
) -> None:
    """Change a state in one small transaction, then update memories in chunks until the time limit."""
    check_conversation(conversation)
    started = time.monotonic()
    scope_id = await lifecycle.change(parts.database, scope, conversation, StateChange(wanted, caller.origin))
    if scope_id is None:
        raise NotFoundError(UNKNOWN)
    while time.monotonic() - started < SYNC_SECONDS:
        step = await lifecycle.sync_chunk(parts.database, scope_id, conversation, rederive=parts.chat is not None)
        if step is None or step.last:
            return
