"""Conversations: find them, list them, and say where their threads end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from recollect.core.conversations.appends import check_conversation
from recollect.core.memories.checks import check_metadata
from recollect.core.text.checks import check_limit, check_line
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.conversations import Conversation, Conversations, ConversationState, Leaf
from recollect.models.memories import JSON
from recollect.models.service import Scope
from recollect.store.conversations import conversations
from recollect.verbs.history import UNKNOWN
from recollect.verbs.parts import Parts


async def get_conversation(parts: Parts, scope: Scope, conversation: str) -> Conversation:
    """Read one conversation, whatever its state."""
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
    """Say where the next page begins, in letters that a URL can carry as they are."""
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
    """Change what a conversation is called, or what a caller keeps of it."""
    check_conversation(conversation)
    if name is not None:
        check_line("name", name)
    if metadata is not None:
        check_metadata(dict(metadata))
    if not await conversations.describe(parts.database, scope, conversation, name, metadata):
        raise NotFoundError(UNKNOWN)
