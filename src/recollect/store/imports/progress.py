"""Find data of another system that is imported already, and store the origin of conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.models.conversations import LEGACY, ConversationState
from recollect.models.memories import JSON
from recollect.models.service import Scope
from recollect.store.database.pool import Database, load_queries
from recollect.store.service.scopes import lock_scope, names

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class KnownConversation:
    """The imported part of a conversation."""

    state: ConversationState | None
    """None if the conversation does not exist."""
    kept: bool
    """Whether its name and metadata were imported."""
    known: dict[str, UUID]
    """Its messages by their external ID."""


@dataclass(frozen=True, slots=True)
class Label:
    """A conversation's name, and metadata about its origin."""

    ours: str
    """The metadata key for it."""
    name: str
    metadata: Mapping[str, JSON]
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class ImportedIds:
    """The memories and facts of one system that a scope holds."""

    ids: dict[str, UUID]
    """By their IDs at the source; if the source changed one, the newest."""
    hashes: set[tuple[str, str]]
    """The hash of each one's text."""
    newest: UUID
    """The newest memory of the scope."""


async def read_standing(
    database: Database, scope: Scope, conversations: Sequence[str], ours: str
) -> dict[str, KnownConversation]:
    """Read the imported parts of conversations."""
    parameters = {**names(scope), "conversations": list(conversations), "ours": ours}
    async with database.reading(scope.tenant_id) as connection:
        standing = await connection.execute(QUERIES["standing"], parameters)
        known = await connection.execute(QUERIES["known"], parameters)
    rows = {row["id"]: row for row in await standing.fetchall()}
    messages: dict[str, dict[str, UUID]] = {each: {} for each in conversations}
    for found in await known.fetchall():
        messages[found["conversation_id"]][found["external_id"]] = found["id"]
    return {each: to_known(rows.get(each), messages[each]) for each in conversations}


def to_known(row: DictRow | None, messages: dict[str, UUID]) -> KnownConversation:
    """Return the imported part of a conversation, whose row may not exist."""
    return KnownConversation(ConversationState(row["state"]) if row else None, bool(row and row["kept"]), messages)


async def keep(database: Database, scope: Scope, labels: Mapping[str, Label]) -> None:
    """Store the names and origins of conversations, unless that was done before."""
    async with database.transaction(scope.tenant_id) as connection:
        await lock_scope(connection, scope)
        for conversation, label in labels.items():
            parameters = {"conversation": conversation, "name": label.name, "metadata": Jsonb(dict(label.metadata))}
            parameters |= {"created_at": label.created_at, "ours": label.ours}
            await connection.execute(QUERIES["keep"], {**names(scope), **parameters})


async def read_arrived(database: Database, scope: Scope, ours: str) -> ImportedIds:
    """Read which memories and facts of another system are imported."""
    parameters = {**names(scope), "ours": ours}
    async with database.reading(scope.tenant_id) as connection:
        arrived = await connection.execute(QUERIES["arrived"], parameters)
        newest = await connection.execute(QUERIES["newest"], parameters)
    rows = await arrived.fetchall()
    last = await newest.fetchone()
    hashes = {(row["key"], row["hash"]) for row in rows}
    return ImportedIds({row["key"]: row["id"] for row in rows}, hashes, last["id"] if last else LEGACY)
