"""Find what of another system is imported already, and store where a conversation came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from recollect.models.conversations import LEGACY, ConversationState
from recollect.models.memories import JSON
from recollect.models.service import Scope
from recollect.store.database.pool import Database, load_queries
from recollect.store.service.scopes import lock_scope, names

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class KnownConversation:
    """What of a conversation is imported already."""

    state: ConversationState | None
    """None if there is no such conversation."""
    kept: bool
    """Whether its name and metadata were imported."""
    known: dict[str, UUID]
    """Its messages by their external id."""


@dataclass(frozen=True, slots=True)
class Label:
    """A conversation's name, and metadata about its origin."""

    ours: str
    """The metadata key for it."""
    name: str
    metadata: Mapping[str, JSON]
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class Arrived:
    """The memories and facts of one system that a scope holds."""

    ids: dict[str, UUID]
    """By their ids at the source; if it changed one, the newest."""
    hashes: set[tuple[str, str]]
    """The hash of what each of them says."""
    newest: UUID
    """The newest memory of the scope."""


async def read_standing(database: Database, scope: Scope, conversation: str, ours: str) -> KnownConversation:
    """Read what of a conversation is imported."""
    parameters = {**names(scope), "conversation": conversation, "ours": ours}
    async with database.reading(scope.tenant_id) as connection:
        standing = await connection.execute(QUERIES["standing"], parameters)
        known = await connection.execute(QUERIES["known"], parameters)
    row = await standing.fetchone()
    messages = {found["external_id"]: found["id"] for found in await known.fetchall()}
    return KnownConversation(ConversationState(row["state"]) if row else None, bool(row and row["kept"]), messages)


async def keep(database: Database, scope: Scope, conversation: str, label: Label) -> None:
    """Store a conversation's name and origin, unless that was done before."""
    parameters = {"conversation": conversation, "name": label.name, "metadata": Jsonb(dict(label.metadata))}
    parameters |= {"created_at": label.created_at, "ours": label.ours}
    async with database.transaction(scope.tenant_id) as connection:
        await lock_scope(connection, scope)
        await connection.execute(QUERIES["keep"], {**names(scope), **parameters})


async def read_arrived(database: Database, scope: Scope, ours: str) -> Arrived:
    """Read which memories and facts of another system are imported."""
    parameters = {**names(scope), "ours": ours}
    async with database.reading(scope.tenant_id) as connection:
        arrived = await connection.execute(QUERIES["arrived"], parameters)
        newest = await connection.execute(QUERIES["newest"], parameters)
    rows = await arrived.fetchall()
    last = await newest.fetchone()
    hashes = {(row["key"], row["hash"]) for row in rows}
    return Arrived({row["key"]: row["id"] for row in rows}, hashes, last["id"] if last else LEGACY)
