"""Store which memories a conversation was shown in blocks, and find the memory of a short id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.core.conversations.shown_memories import ShownMemory
from recollect.core.service.numbers import tenant_of
from recollect.models.conversations import ConversationState
from recollect.store.database.pool import Connection, Database, load_queries

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a conversation was shown, which of it still takes part in recall, and the state of the conversation."""

    memories: tuple[ShownMemory, ...]
    in_sight: frozenset[UUID]
    state: ConversationState | None
    """None before its first message."""


async def fetch_shown(database: Database, scope_id: int, conversation: str) -> Shown:
    """Read the memories that a conversation was shown, in one round trip."""
    parameters = {"scope_id": scope_id, "conversation": conversation}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["read"], parameters)
        known = await connection.execute(QUERIES["state"], parameters)
    rows, row = await found.fetchall(), await known.fetchone()
    memories = tuple(
        ShownMemory(each["memory_id"], each["short_id"], each["score"], each["computed_at"]) for each in rows
    )
    in_sight = frozenset(each["memory_id"] for each in rows if each["in_sight"])
    return Shown(memories, in_sight, ConversationState(row["state"]) if row else None)


async def save(connection: Connection, scope_id: int, conversation: str, memories: Sequence[ShownMemory]) -> None:
    """Store the memories that a conversation has been shown."""
    parameters = {
        "scope_id": scope_id,
        "conversation": conversation,
        "ids": [each.memory_id for each in memories],
        "short_ids": [each.short_id for each in memories],
        "scores": [each.score for each in memories],
        "moments": [each.computed_at for each in memories],
    }
    await connection.execute(QUERIES["save"], parameters)


async def find_shown(database: Database, scope_id: int, conversation: str, short_id: str) -> UUID | None:
    """Find the memory of a short ID in a conversation."""
    parameters = {"scope_id": scope_id, "conversation": conversation, "short_id": short_id}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["resolve"], parameters)
    row = await found.fetchone()
    return row["memory_id"] if row else None


async def find_ending(database: Database, scope_id: int, tail: str) -> list[UUID]:
    """Find memories whose IDs have this ending: at most two."""
    parameters = {"scope_id": scope_id, "tail": tail, "length": len(tail)}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["ending"], parameters)
    return [row["id"] for row in await found.fetchall()]
