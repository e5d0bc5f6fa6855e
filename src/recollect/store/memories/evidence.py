"""Read the evidence of memories, and write those that are derived again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.core.service.numbers import tenant_of
from recollect.core.text.similar import SourceText
from recollect.core.text.variants import check_version
from recollect.models.memories import Kind
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.memories import memories
from recollect.store.memories.columns import Row

QUERIES = load_queries(__file__)


async def fetch_source_texts(database: Database, scope_id: int, ids: Sequence[UUID]) -> dict[UUID, SourceText]:
    """Fetch texts of sources by their ids; hidden ones are absent."""
    if not ids:
        return {}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["source_texts"], {"scope_id": scope_id, "ids": sorted(set(ids))})
    return {row["id"]: SourceText(**row) for row in await found.fetchall()}


@dataclass(frozen=True, slots=True)
class ToRederive:
    """A blank memory, and the evidence that is left of it."""

    id: UUID
    kind: Kind
    importance: float
    depth: int
    occurred_at: datetime
    evidence: tuple[UUID, ...]


async def find_next(database: Database, scope_id: int, after: UUID) -> ToRederive | None:
    """Find the next memory after an id that can be derived again."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["next"], {"scope_id": scope_id, "after": after})
    row = await found.fetchone()
    if row is None:
        return None
    return ToRederive(**{**row, "kind": Kind(row["kind"]), "evidence": tuple(row["evidence"])})


async def open_scope(connection: Connection, scope_id: int) -> tuple[int, int]:
    """Lock a scope; return how many memories and terms it holds."""
    row = await (await connection.execute(QUERIES["open"], {"scope_id": scope_id})).fetchone()
    if row is None:
        return 0, 0
    check_version(row["text_version"])
    return row["memory_count"], row["term_count"]


async def hold(connection: Connection, scope_id: int, memory: ToRederive) -> bool:
    """Tell whether a memory still waits with the same evidence, and lock it until the end of the transaction."""
    parameters = {"scope_id": scope_id, "id": memory.id, "evidence": list(memory.evidence)}
    return await (await connection.execute(QUERIES["hold"], parameters)).fetchone() is not None


async def write(connection: Connection, scope_id: int, row: Row, terms: int) -> None:
    """Let a memory take part in recall again with new words, keywords and terms."""
    triple = row.memory.triple
    parameters = {
        "scope_id": scope_id,
        "id": row.id,
        "kind": row.memory.kind.value,
        "content": row.memory.content,
        "subject": triple.subject,
        "predicate": triple.predicate,
        "object": triple.object,
        "keywords": list(row.keywords),
        "idle": row.idle,
        "trust": row.trust,
        "terms": terms,
        "length": len(row.weights),
        "tells": row.tells,
        "speaker": row.named,
    }
    await connection.execute(QUERIES["write"], parameters)
    await connection.execute(QUERIES["write_features"], parameters)
    await memories.store_terms(connection, scope_id, row)
    await memories.store_links(connection, scope_id, [row])
    await connection.execute(QUERIES["count"], parameters)


async def keep_past(connection: Connection, scope_id: int, memory_id: UUID) -> None:
    """Withhold a memory that was derived again from recall if it is a version that is over."""
    await connection.execute(QUERIES["keep_past"], {"scope_id": scope_id, "id": memory_id})
