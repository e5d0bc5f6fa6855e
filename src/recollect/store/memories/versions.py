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
from recollect.store.memories import memories
from recollect.store.memories.memories import RowQuery
from recollect.store.service import jobs
from recollect.store.service.scopes import names

QUERIES = load_queries(__file__)
MOST_VERSIONS = 1_000


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a memory stands among its versions, and in its conversation if it is a message."""

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


async def ask_standing(
    connection: Connection, scope: Scope, memory_id: UUID
) -> tuple[AsyncCursor[DictRow], AsyncCursor[DictRow]]:
    """Ask where a memory stands."""
    found = await memories.ask(connection, scope, RowQuery([memory_id], expired=True, every=True))
    return found, await connection.execute(QUERIES["standing"], {**names(scope), "id": memory_id})


async def read_standing(asked: tuple[AsyncCursor[DictRow], AsyncCursor[DictRow]]) -> Standing | None:
    """Read the answer to `ask_standing`; None if there is no such memory."""
    found, standing = await memories.read(asked[0]), await asked[1].fetchone()
    if standing is None:
        return None
    return Standing(
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


async def fetch_standing(database: Database, scope: Scope, memory_id: UUID) -> Standing | None:
    """Read where a memory stands."""
    async with database.reading(scope.tenant_id) as connection:
        asked = await ask_standing(connection, scope, memory_id)
    return await read_standing(asked)


async def fetch_versions(database: Database, scope: Scope, memory_id: UUID) -> list[Memory]:
    """Fetch all versions of a memory that is named by any of them, oldest first; hidden ones are absent."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["every_version"], {**names(scope), "id": memory_id})
    ids = [row["id"] for row in await found.fetchall()][:MOST_VERSIONS] or [memory_id]
    read = await memories.fetch_every(database, scope, ids)
    return [read[each] for each in ids if each in read]


async def list_derived(connection: Connection, scope: Scope, scope_id: int, memory_id: UUID) -> dict[UUID, bool]:
    """List what stands and was derived from any version of a memory, sources first; True for what segments say."""
    found = await connection.execute(QUERIES["every_version"], {**names(scope), "id": memory_id})
    versions = [row["id"] for row in await found.fetchall()] or [memory_id]
    derived = await connection.execute(QUERIES["derived"], {"scope_id": scope_id, "versions": versions})
    return {row["id"]: row["learned"] for row in await derived.fetchall()}


@dataclass(frozen=True, slots=True)
class Succession:
    """Which version follows which, in a locked scope, from which moment on."""

    scope_id: int
    elder: UUID
    heir: UUID
    moment: datetime
    contested: bool = False

    @property
    def parameters(self) -> dict[str, object]:
        """Give the values of the statements about it."""
        return {
            "scope_id": self.scope_id,
            "elder": self.elder,
            "heir": self.heir,
            "moment": self.moment,
            "contested": self.contested,
        }


async def close(connection: Connection, scope_id: int, ids: Sequence[UUID], moment: datetime) -> None:
    """Supersede versions at a moment, and take them out of the indexes."""
    if ids:
        await connection.execute(QUERIES["close"], {"scope_id": scope_id, "ids": list(ids), "moment": moment})


async def begin(connection: Connection, scope_id: int, memory_id: UUID) -> None:
    """Make a memory the first version of itself if it has none."""
    await connection.execute(QUERIES["begin"], {"scope_id": scope_id, "id": memory_id})


async def add(connection: Connection, new: Succession) -> int:
    """Add a version, and return its number."""
    row = await (await connection.execute(QUERIES["add"], new.parameters)).fetchone()
    return row["version"] if row else 1


async def inherit_links(connection: Connection, new: Succession, *, topics: bool) -> None:
    """Give a version the accesses of the one before it, and its topics if told."""
    await connection.execute(QUERIES["inherit_links"], new.parameters | {"topics": topics})


async def withhold(connection: Connection, new: Succession, reason: str) -> None:
    """Take a version out of the indexes for a reason."""
    await connection.execute(QUERIES["withhold"], {"scope_id": new.scope_id, "id": new.heir, "reason": reason})


async def store_message(connection: Connection, new: Succession, row: Mapping[str, object]) -> None:
    """Show a version in its conversation in place of the one before it; a contested one is kept aside."""
    query = QUERIES["keep_contested_message" if new.contested else "replace_message"]
    await connection.execute(query, new.parameters | {"row": Jsonb(dict(row))})


async def read_segment_again(connection: Connection, scope_id: int, conversation: str, number: int) -> None:
    """Let a model read the segment of a message again."""
    parameters = {"scope_id": scope_id, "conversation": conversation, "number": number}
    await connection.execute(QUERIES["read_segment_again"], parameters)
    await jobs.defer_enrichment(connection, scope_id)


async def say_again(connection: Connection, scope_id: int, learned: Sequence[UUID]) -> None:
    """Let segments say again what they say by themselves."""
    parameters = {"scope_id": scope_id, "ids": list(learned)}
    await connection.execute(QUERIES["learn_again"], parameters)
    await connection.execute(QUERIES["leave_summary"], parameters)
    await jobs.defer_enrichment(connection, scope_id)


async def list_former(connection: Connection, new: Succession) -> list[UUID]:
    """List all other versions of a memory."""
    found = await connection.execute(QUERIES["former"], new.parameters)
    return [row["id"] for row in await found.fetchall()]


async def await_heirs(
    connection: Connection, new: Succession, former: Sequence[UUID], heirs: Mapping[UUID, UUID]
) -> None:
    """Add a blank version of each derived memory, which rests on the new version in place of the former ones."""
    parameters = {
        **new.parameters,
        "elders": list(heirs),
        "heirs": list(heirs.values()),
        "former": [*former, *heirs],
        "latter": [*[new.heir] * len(former), *heirs.values()],
    }
    await connection.execute(QUERIES["await_heirs"], parameters)
    await jobs.defer(connection, "rederive", f"rederive:{new.scope_id}", {"scope_id": new.scope_id})


async def log(connection: Connection, new: Succession) -> None:
    """Log a revision."""
    await connection.execute(QUERIES["log"], {"scope_id": new.scope_id, "ids": [new.elder, new.heir]})
