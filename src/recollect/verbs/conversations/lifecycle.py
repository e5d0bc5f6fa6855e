"""List, read, update, delete and purge conversations."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from datetime import UTC, datetime

from recollect.core.conversations.appends import check_conversation
from recollect.core.memories.checks import check_metadata
from recollect.core.text.checks import MAX_HITS, check_limit, check_line
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.conversations import (
    ConversationInfo,
    ConversationPage,
    ConversationState,
    DeletedConversation,
    PurgeReceipt,
)
from recollect.models.service import Caller, Scope
from recollect.store.conversations import conversations, lifecycle
from recollect.store.conversations.lifecycle import StateChange
from recollect.verbs.conversations.history import UNKNOWN
from recollect.verbs.conversations.receipts import FIRST
from recollect.verbs.dependencies import Dependencies

SYNC_SECONDS = 2.0
"""How long a call updates memories after a change of state; enough for most conversations."""


async def get_conversation(parts: Dependencies, scope: Scope, conversation: str, threads: int = 0) -> ConversationInfo:
    """Read one conversation, in any state; with the ends of its newest threads, if it is not deleted."""
    check_conversation(conversation)
    if not 0 <= threads <= MAX_HITS:
        raise InvalidInputError(f"threads must be between 0 and {MAX_HITS}")
    found = await conversations.find_conversation(parts.database, scope, conversation, conversations.EVERY_STATE)
    if found is None:
        raise NotFoundError(UNKNOWN)
    if not threads:
        return found
    return replace(found, threads=await conversations.list_leaves(parts.database, scope, conversation, threads))


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


def to_visible_state(state: str | None) -> ConversationState | None:
    """Check a state that an update may set."""
    if state is None:
        return None
    if state not in conversations.VISIBLE:
        raise InvalidInputError("state must be `active` or `archived`. To remove a conversation, use `delete`.")
    return ConversationState(state)


async def update_conversation(parts: Dependencies, scope: Scope, conversation: str, wanted: StateChange) -> None:
    """Change a conversation's name, metadata and state together."""
    if wanted.name is not None:
        check_line("name", wanted.name)
    if wanted.metadata is not None:
        check_metadata(dict(wanted.metadata))
    await change(parts, scope, conversation, wanted)


async def delete(
    parts: Dependencies, caller: Caller, scope: Scope, conversation: str, *, dry_run: bool = False
) -> DeletedConversation:
    """Delete a conversation, or only count the memories that would be hidden."""
    hidden = dict[str, int]()
    if dry_run:
        hidden = await preview(parts, scope, conversation, ConversationState.DELETED)
    else:
        await change(parts, scope, conversation, StateChange(ConversationState.DELETED, caller.origin))
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
    await change(parts, scope, conversation, StateChange(ConversationState.PURGING, caller.origin))
    [receipt] = await lifecycle.page_receipts(parts.database, scope.tenant_id, scope, conversation, FIRST, 1)
    return receipt


async def preview(parts: Dependencies, scope: Scope, conversation: str, wanted: ConversationState) -> dict[str, int]:
    """Count the memories that a change of state would remove or hide."""
    check_conversation(conversation)
    counted = await lifecycle.count_affected(parts.database, scope, conversation, wanted)
    if counted is None:
        raise NotFoundError(UNKNOWN)
    return counted


async def change(parts: Dependencies, scope: Scope, conversation: str, wanted: StateChange) -> None:
    """Change a conversation in one small transaction, then update memories in chunks until the time limit."""
    check_conversation(conversation)
    started = time.monotonic()
    scope_id = await lifecycle.change(parts.database, scope, conversation, wanted)
    if scope_id is None:
        raise NotFoundError(UNKNOWN)
    while wanted.wanted and time.monotonic() - started < SYNC_SECONDS:
        step = await lifecycle.sync_chunk(parts.database, scope_id, conversation, rederive=parts.chat is not None)
        if step is None or step.last:
            return
