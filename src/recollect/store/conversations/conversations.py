"""Write and read one scope's conversations: their messages, threads and branches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import DictRow
from psycopg.sql import SQL

from recollect.core.conversations.appends import OpenConversation, ParentMessage, PositionedMessage, check_open
from recollect.core.conversations.budget import price_image
from recollect.core.conversations.messages import count_images
from recollect.core.conversations.repeats import StoredMessages, hash_external_id
from recollect.core.text.tokens import ESTIMATE
from recollect.errors import ConflictError
from recollect.models.conversations import (
    Attachment,
    ConversationInfo,
    ConversationState,
    HistoryOptions,
    Message,
    MessageStatus,
    Part,
    PartType,
    ThreadEnd,
)
from recollect.models.filters import Filter
from recollect.models.memories import Role
from recollect.models.service import Scope
from recollect.store.database.filter import bind
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.memories.columns import write_json
from recollect.store.service.scopes import names

PIECES = load_queries(__file__)
QUERIES, THEN = (
    load_queries(__file__, messages=SQL(PIECES[f"messages_{when}"]), leaf=SQL(PIECES[f"leaf_{when}"]))
    for when in ("now", "then")
)
"""The queries of a thread: now, and at a past time."""
EVERY_STATE = tuple(ConversationState)
AT_ONCE = 100
"""Maximum number of messages that one statement writes."""
MAX_THREAD_MESSAGES = 20_000
"""Maximum number of messages of a thread to count."""
VISIBLE = (ConversationState.ACTIVE, ConversationState.ARCHIVED)


@dataclass(frozen=True, slots=True)
class Read:
    """A message as it was read, with fields that only the walk needs."""

    message: Message
    exact: bool
    """Whether its tokens were counted with the requested tokenizer."""
    followed: UUID | None = None
    """The turn that its source names as its parent, or the turn that it follows here."""


async def fetch_stored(
    database: Database, scope: Scope, conversation: str, external_ids: Sequence[str]
) -> StoredMessages:
    """Fetch messages by their external IDs, including forgotten ones; refuse a deleted conversation."""
    if not external_ids:
        return StoredMessages({}, {})
    hashes = {hash_external_id(each): each for each in external_ids}
    asked = {"conversation": conversation, "external_ids": list(external_ids), "hashes": list(hashes)}
    parameters = {**names(scope), **asked, "states": [state.value for state in EVERY_STATE]}
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["find"], parameters)
        forgotten = await connection.execute(QUERIES["forgotten"], parameters)
        repeated = await connection.execute(QUERIES["repeated"], parameters)
    if row := await found.fetchone():
        check_open(to_conversation(row).state)
    versions = dict[str, list[Message]]()
    for row in await repeated.fetchall():
        versions.setdefault(row["external_id"], []).append(to_read(row, "").message)
    return StoredMessages(versions, {hashes[row["external_hash"]]: row["id"] for row in await forgotten.fetchall()})


async def ask_opened(
    connection: Connection, scope: Scope, conversation: str, named: Sequence[UUID], external_ids: Sequence[str] = ()
) -> tuple[AsyncCursor[DictRow], AsyncCursor[DictRow] | None]:
    """Lock a conversation of an opened scope for an append, and query the messages named as parents."""
    hashes = [*map(hash_external_id, external_ids)]
    parameters = {**names(scope), "conversation": conversation, "ids": list(named), "hashes": hashes}
    opened = await connection.execute(QUERIES["open"], parameters)
    return opened, await connection.execute(QUERIES["anchors"], parameters) if named else None


async def read_opened(asked: tuple[AsyncCursor[DictRow], AsyncCursor[DictRow] | None]) -> OpenConversation:
    """Read the result of `ask_opened`; a conversation that does not exist yet counts as empty."""
    opened, anchors = asked
    row = await opened.fetchone()
    if row is None:
        return OpenConversation(ConversationState.ACTIVE, 0, None, None, {})
    if row["was_forgotten"]:
        raise ConflictError("A message with one of these external_ids was forgotten. Send the request again.")
    return OpenConversation(
        ConversationState(row["state"]),
        row["last_number"],
        to_anchor(row["newest_id"], row["newest_turn"]),
        to_anchor(row["unbranched_id"], row["unbranched_turn"]),
        {
            found["asked"]: ParentMessage(found["id"], found["turn_id"])
            for found in (await anchors.fetchall() if anchors else ())
        },
    )


def to_anchor(identity: UUID | None, turn: UUID | None) -> ParentMessage | None:
    """Build the parent of a message, if there is one."""
    return ParentMessage(identity, turn) if identity is not None and turn is not None else None


async def store_messages(
    connection: Connection,
    scope_id: int,
    conversation: str,
    linked: Sequence[PositionedMessage],
    tokens: Sequence[Mapping[str, int]],
    moments: Sequence[datetime],
) -> None:
    """Write messages and their conversation, in portions between which the event loop is free."""
    for start in range(0, len(linked), AT_ONCE):
        portion = slice(start, start + AT_ONCE)
        given = zip(linked[portion], tokens[portion], moments[portion], strict=True)
        rows = write_json([to_row(*each) for each in given])
        parameters = {"scope_id": scope_id, "conversation": conversation, "rows": rows}
        await connection.execute(QUERIES["store_messages"], parameters)
        await asyncio.sleep(0)
    parameters = {
        "scope_id": scope_id,
        "conversation": conversation,
        "last_number": linked[-1].number,
        "begun_at": moments[0],
        "updated_at": max(moments),
    }
    await connection.execute(QUERIES["close"], parameters)


def to_row(linked: PositionedMessage, tokens: Mapping[str, int], moment: datetime) -> dict[str, object]:
    """Return the fields of a message."""
    message = linked.message
    return {
        "id": linked.id,
        "number": linked.number,
        "parent_id": linked.parent,
        "turn_id": linked.turn,
        "role": message.role.value,
        "status": message.status.value,
        "occurred_at": moment,
        "tokens": dict(tokens),
        "images": count_images(message),
        "parts": [trim(part) for part in message.parts],
        "attachments": [trim(file) for file in message.attachments],
        "external_id": message.external_id,
        "stated_parent": linked.stated_parent,
    }


def trim(value: Part | Attachment) -> dict[str, str]:
    """Convert a part or an attachment without its empty fields; it always has a type."""
    return {name: field for name, field in asdict(value).items() if field or name == "type"}


async def find_conversation(
    database: Database, scope: Scope, conversation: str, states: Sequence[ConversationState] = VISIBLE
) -> ConversationInfo | None:
    """Find a conversation that is in one of these states."""
    parameters = {**names(scope), "conversation": conversation, "states": [state.value for state in states]}
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["find"], parameters)
    row = await found.fetchone()
    return to_conversation(row) if row else None


async def page(
    database: Database,
    scope: Scope,
    states: Sequence[ConversationState],
    before: tuple[datetime, str] | None,
    limit: int,
) -> list[ConversationInfo]:
    """Fetch conversations, latest first, from before a position in that order."""
    moment, identity = before or ("infinity", "")
    bounds = {"states": [state.value for state in states], "before": moment, "before_id": identity, "limit": limit}
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["page"], {**names(scope), **bounds})
    return [to_conversation(row) for row in await found.fetchall()]


async def fetch_appended(database: Database, scope: Scope, ids: Sequence[UUID]) -> list[DictRow]:
    """Fetch the numbers, parents and token counts of messages."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["appended"], {**names(scope), "ids": list(ids)})
    return await found.fetchall()


async def walk(
    database: Database, scope: Scope, conversation: str, window: HistoryOptions, tokenizer: str
) -> list[Read]:
    """Read a thread from its leaf upwards, as far as a token budget can reach."""
    parameters = {
        **names(scope),
        "conversation": conversation,
        "leaf": window.leaf,
        "tokenizer": tokenizer,
        "image_tokens": price_image(window),
        "unanswered": window.unanswered,
        "budget": window.max_tokens,
        **bind(Filter(as_of=window.as_of, at=window.at)),
    }
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute((THEN if window.as_of else QUERIES)["walk"], parameters)
    return [to_read(row, tokenizer) for row in await found.fetchall()]


async def read_turns(
    database: Database, scope: Scope, conversation: str, limit: int, window: HistoryOptions, tokenizer: str
) -> list[Read]:
    """Read the newest questions of a conversation with their answers, of all threads."""
    times = bind(Filter(as_of=window.as_of, at=window.at))
    parameters = {**names(scope), "conversation": conversation, "limit": limit, **times}
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute((THEN if window.as_of else QUERIES)["turns"], parameters)
    return [to_read(row, tokenizer) for row in await found.fetchall()]


async def count_thread(
    database: Database, scope: Scope, conversation: str, window: HistoryOptions, tokenizer: str
) -> tuple[int, int]:
    """Count the turns of a thread from a window's leaf up, and their tokens."""
    parameters = {
        **names(scope),
        "conversation": conversation,
        "leaf": window.leaf,
        "tokenizer": tokenizer,
        "image_tokens": price_image(window),
        "most": MAX_THREAD_MESSAGES,
        **bind(Filter(as_of=window.as_of, at=window.at)),
    }
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute((THEN if window.as_of else QUERIES)["count_thread"], parameters)
    row = await found.fetchone()
    return (row["turns"], int(row["tokens"])) if row else (0, 0)


async def page_messages(
    database: Database, scope: Scope, conversation: str, after: int, limit: int, tokenizer: str
) -> list[Message]:
    """Fetch messages of all branches after a number, in the order of their numbers."""
    parameters = {**names(scope), "conversation": conversation, "after": after, "limit": limit}
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["numbered"], parameters)
    return [to_read(row, tokenizer).message for row in await found.fetchall()]


async def list_leaves(database: Database, scope: Scope, conversation: str, limit: int) -> tuple[ThreadEnd, ...]:
    """List the ends of a conversation's threads, newest first."""
    parameters = {**names(scope), "conversation": conversation, "limit": limit}
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["leaves"], parameters)
    return tuple(
        ThreadEnd(row["id"], row["number"], Role(row["role"]), row["content"], row["occurred_at"])
        for row in await found.fetchall()
    )


async def ask_summary(connection: Connection, scope: Scope, conversation: str, only: Filter) -> AsyncCursor[DictRow]:
    """Query the ID of a conversation's running summary, now or at a past time."""
    query = QUERIES["summary_then" if only.past else "summary"]
    parameters = {**names(scope), "conversation": conversation, **bind(only)}
    return await connection.execute(query, parameters)


async def read_summary(found: AsyncCursor[DictRow]) -> UUID | None:
    """Read the result of `ask_summary`."""
    row = await found.fetchone()
    return row["summary_id"] if row else None


def to_conversation(row: DictRow) -> ConversationInfo:
    """Turn a row into a conversation."""
    return ConversationInfo(
        id=row["id"],
        name=row["name"],
        state=ConversationState(row["state"]),
        message_count=row["last_number"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        changed_at=row["changed_at"],
        metadata=row["metadata"],
    )


def to_read(row: DictRow, tokenizer: str) -> Read:
    """Turn a row into a message with its cost."""
    counts: dict[str, int] = row["tokens"]
    message = Message(
        id=row["id"],
        role=Role(row["role"]),
        content=row["content"],
        name=row["speaker"],
        parts=tuple(to_part(part) for part in row["parts"] or ()),
        attachments=tuple(to_attachment(file) for file in row["attachments"] or ()),
        parent=row["parent_id"],
        turn=row["turn_id"],
        number=row["number"],
        status=MessageStatus(row["status"]),
        tokens=counts.get(tokenizer, counts.get(ESTIMATE, 0)),
        occurred_at=row["occurred_at"],
        external_id=row["external_id"],
        metadata=row["metadata"],
    )
    return Read(message, tokenizer in counts, row.get("stated_parent") or row.get("parent_turn"))


def to_part(stored: Mapping[str, Any]) -> Part:
    """Turn stored JSON into a part."""
    return Part(**{**stored, "type": PartType(stored["type"])})


def to_attachment(stored: Mapping[str, Any]) -> Attachment:
    """Turn stored JSON into an attachment."""
    side = stored.get("side")
    return Attachment(**{**stored, "side": Role(side) if side else None})
