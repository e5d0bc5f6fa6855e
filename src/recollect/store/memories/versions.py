"""Read and write the versions of memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.models.memories import Memory, Role
from recollect.models.service import Scope
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.memories import columns, memories
from recollect.store.memories.memories import RowQuery
from recollect.store.service import jobs
from recollect.store.service.scopes import lock_scope, names

QUERIES = load_queries(__file__, **columns.FRAGMENTS)
MAX_VERSIONS = 1_000


@dataclass(frozen=True, slots=True)
class VersionState:
    """The position of a memory among its versions, and in its conversation if it is a message."""

    memory: Memory | None
    """None while it is hidden, or waits to be derived again."""
    lineage: UUID
    version: int
    current_id: UUID | None
    withheld: str
    item: bool
    """Whether it is the text of an item."""
    conversation: str
    role: Role | None
    number: int | None
    parts: Sequence[Mapping[str, Any]]
    attachments: Sequence[Mapping[str, Any]]


async def query_state(
    connection: Connection, scope: Scope, memory_id: UUID
) -> tuple[AsyncCursor[DictRow], AsyncCursor[DictRow]]:
    """Query the version state of a memory."""
    found = await memories.query_memories(connection, scope, RowQuery([memory_id], expired=True, every=True))
    return found, await connection.execute(QUERIES["standing"], {**names(scope), "id": memory_id})


async def read_version_state(asked: tuple[AsyncCursor[DictRow], AsyncCursor[DictRow]]) -> VersionState | None:
    """Read the result of `query_state`; None if the memory does not exist."""
    found, standing = await memories.read_memory_rows(asked[0]), await asked[1].fetchone()
    if standing is None:
        return None
    return VersionState(
        memory=next(iter(found.values()), None),
        lineage=standing["lineage"],
        version=standing["version"],
        current_id=standing["current_id"],
        withheld=standing["withheld"] or "",
        item=standing["item"],
        conversation=standing["conversation_id"] or "",
        role=Role(standing["role"]) if standing["role"] else None,
        number=standing["number"],
        parts=standing["parts"] or (),
        attachments=standing["attachments"] or (),
    )


async def fetch_standing(database: Database, scope: Scope, memory_id: UUID) -> VersionState | None:
    """Read the version state of a memory."""
    async with database.reading(scope.tenant_id) as connection:
        asked = await query_state(connection, scope, memory_id)
    return await read_version_state(asked)


async def fetch_versions(database: Database, scope: Scope, memory_id: UUID) -> list[Memory]:
    """Fetch all versions of a memory, named by any of them, oldest first; hidden ones are absent."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["every_version"], {**names(scope), "id": memory_id})
    ids = [row["id"] for row in await found.fetchall()][:MAX_VERSIONS] or [memory_id]
    read = await memories.fetch_every(database, scope, ids)
    return [read[each] for each in ids if each in read]


async def list_derived(connection: Connection, scope: Scope, scope_id: int, memory_id: UUID) -> dict[UUID, bool]:
    """List current memories derived from any version of a memory, sources first; True if a segment wrote them."""
    found = await connection.execute(QUERIES["every_version"], {**names(scope), "id": memory_id})
    versions = [row["id"] for row in await found.fetchall()] or [memory_id]
    derived = await connection.execute(QUERIES["derived"], {"scope_id": scope_id, "versions": versions})
    return {row["id"]: row["learned"] for row in await derived.fetchall()}


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A version and its successor in a locked scope, and the time of the change."""

    scope_id: int
    elder: UUID
    heir: UUID
    moment: datetime
    contested: bool = False

    @property
    def parameters(self) -> dict[str, object]:
        """Return the values for the statements about it."""
        return {
            "scope_id": self.scope_id,
            "elder": self.elder,
            "heir": self.heir,
            "moment": self.moment,
            "contested": self.contested,
        }


async def supersede_versions(connection: Connection, scope_id: int, ids: Sequence[UUID], moment: datetime) -> None:
    """Supersede versions at a time, and remove them from the indexes."""
    if ids:
        await connection.execute(QUERIES["close"], {"scope_id": scope_id, "ids": list(ids), "moment": moment})


async def begin(connection: Connection, scope_id: int, memory_id: UUID) -> None:
    """Make a memory its first version if it has none."""
    await connection.execute(QUERIES["begin"], {"scope_id": scope_id, "id": memory_id})


async def insert_version(connection: Connection, new: VersionChange) -> int:
    """Add a version, and return its number."""
    row = await (await connection.execute(QUERIES["add"], new.parameters)).fetchone()
    return row["version"] if row else 1


async def inherit_links(connection: Connection, new: VersionChange, *, topics: bool) -> None:
    """Copy the accesses of the previous version, and its topics if `topics`."""
    await connection.execute(QUERIES["inherit_links"], new.parameters | {"topics": topics})


async def exclude_from_recall(connection: Connection, new: VersionChange, reason: str) -> None:
    """Remove a version from the indexes for a reason."""
    await connection.execute(QUERIES["withhold"], {"scope_id": new.scope_id, "id": new.heir, "reason": reason})


async def store_message(connection: Connection, new: VersionChange, row: Mapping[str, object]) -> None:
    """Replace a version in its conversation with the new one; a contested version is stored, but not shown."""
    query = QUERIES["keep_contested_message" if new.contested else "replace_message"]
    await connection.execute(query, new.parameters | {"row": Jsonb(dict(row))})


async def read_segment_again(connection: Connection, scope_id: int, conversation: str, number: int) -> None:
    """Queue the segment of a message for another extraction by a model."""
    parameters = {"scope_id": scope_id, "conversation": conversation, "number": number}
    await connection.execute(QUERIES["read_segment_again"], parameters)
    await jobs.defer_enrichment(connection, scope_id)


async def rederive_segments(connection: Connection, scope_id: int, learned: Sequence[UUID]) -> None:
    """Derive again the memories that segments wrote without other sources."""
    parameters = {"scope_id": scope_id, "ids": list(learned)}
    await connection.execute(QUERIES["learn_again"], parameters)
    await connection.execute(QUERIES["leave_summary"], parameters)
    await jobs.defer_enrichment(connection, scope_id)


async def list_former(connection: Connection, new: VersionChange) -> list[UUID]:
    """List all other versions of a memory."""
    found = await connection.execute(QUERIES["former"], new.parameters)
    return [row["id"] for row in await found.fetchall()]


async def supersede_derived(
    connection: Connection, new: VersionChange, former: Sequence[UUID], heirs: Mapping[UUID, UUID]
) -> None:
    """Add a blank version of each derived memory, which rests on the new version instead of the former ones."""
    parameters = {
        **new.parameters,
        "elders": list(heirs),
        "heirs": list(heirs.values()),
        "former": [*former, *heirs],
        "latter": [*[new.heir] * len(former), *heirs.values()],
    }
    for step in ("add_unworded", "add_features_unworded", "move_evidence", "add_each", "replace_summaries"):
        await connection.execute(QUERIES[step], parameters)
    await jobs.defer(connection, "rederive", f"rederive:{new.scope_id}", {"scope_id": new.scope_id})


async def log(connection: Connection, new: VersionChange) -> None:
    """Log a revision."""
    await connection.execute(QUERIES["log"], {"scope_id": new.scope_id, "ids": [new.elder, new.heir]})


async def pin(database: Database, scope: Scope, memory_id: UUID, *, pinned: bool) -> bool | None:
    """Pin or unpin a memory, and return whether that changed anything; None if it does not exist."""
    async with database.transaction(scope.tenant_id) as connection:
        await lock_scope(connection, scope)
        found = await connection.execute(QUERIES["pin"], {**names(scope), "id": memory_id, "pinned": pinned})
        row = await found.fetchone()
    return row["changed"] if row else None
