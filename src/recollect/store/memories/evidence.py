"""Read the evidence of memories, and write those that are derived again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.core.service.numbers import tenant_of
from recollect.core.text.similarity import SourceText
from recollect.models.memories import EvidenceStep, EvidenceWalk, Kind, Memory
from recollect.models.service import Scope
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.memories import memories
from recollect.store.memories.columns import Row
from recollect.store.memories.memories import RowQuery
from recollect.store.service.scopes import names

QUERIES = load_queries(__file__)
MAX_LINKS = 2_000
"""Maximum number of links to read for each step of a walk."""


async def fetch_source_texts(database: Database, scope_id: int, ids: Sequence[UUID]) -> dict[UUID, SourceText]:
    """Fetch texts of sources by their ids; hidden ones are absent."""
    if not ids:
        return {}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["source_texts"], {"scope_id": scope_id, "ids": sorted(set(ids))})
    return {row["id"]: SourceText(**row) for row in await found.fetchall()}


@dataclass(frozen=True, slots=True)
class PendingRederivation:
    """A blank memory, and its remaining evidence."""

    id: UUID
    kind: Kind
    importance: float
    depth: int
    occurred_at: datetime
    evidence: tuple[UUID, ...]


async def find_next(database: Database, scope_id: int, after: UUID) -> PendingRederivation | None:
    """Find the next memory after an ID that can be derived again."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["next"], {"scope_id": scope_id, "after": after})
    row = await found.fetchone()
    if row is None:
        return None
    return PendingRederivation(**{**row, "kind": Kind(row["kind"]), "evidence": tuple(row["evidence"])})


async def open_scope(connection: Connection, scope_id: int) -> tuple[int, int]:
    """Lock a scope; return how many memories and terms it holds."""
    row = await (await connection.execute(QUERIES["open"], {"scope_id": scope_id})).fetchone()
    if row is None:
        return 0, 0
    return row["memory_count"], row["term_count"]


async def hold(connection: Connection, scope_id: int, memory: PendingRederivation) -> bool:
    """Return whether a memory still waits with the same evidence, and lock it until the transaction ends."""
    parameters = {"scope_id": scope_id, "id": memory.id, "evidence": list(memory.evidence)}
    return await (await connection.execute(QUERIES["hold"], parameters)).fetchone() is not None


async def store_rederived_memory(connection: Connection, scope_id: int, row: Row, terms: int) -> None:
    """Include a memory in recall again with new words, keywords and terms."""
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


async def exclude_past_version(connection: Connection, scope_id: int, memory_id: UUID) -> None:
    """Exclude a memory that was derived again from recall if it is a past version."""
    await connection.execute(QUERIES["exclude_past_version"], {"scope_id": scope_id, "id": memory_id})


async def walk(database: Database, scope: Scope, memory_id: UUID, depth: int, limit: int) -> EvidenceWalk | None:
    """Follow evidence both ways in one snapshot; None if the memory does not exist."""
    async with database.reading(scope.tenant_id, one_snapshot=True) as connection:
        if not await read_each(connection, scope, [memory_id]):
            return None
        sources, all_sources = await trace_evidence(
            connection, scope, memory_id, EvidenceReach("sources_of", depth, limit)
        )
        derived, all_derived = await trace_evidence(
            connection, scope, memory_id, EvidenceReach("derived_of", depth, limit)
        )
    return EvidenceWalk(sources, derived, all_sources and all_derived)


@dataclass(frozen=True, slots=True)
class EvidenceReach:
    """One direction of a walk, and its limits."""

    query: str
    depth: int
    limit: int


async def trace_evidence(
    connection: Connection, scope: Scope, start: UUID, way: EvidenceReach
) -> tuple[tuple[EvidenceStep, ...], bool]:
    """Follow evidence in one direction; return the steps, and whether they are all. Hidden memories end a path."""
    found: dict[UUID, EvidenceStep] = {}
    ends, whole = [start], True
    # One step more than allowed shows whether anything is left.
    for step in range(1, way.depth + 2):
        parameters = {**names(scope), "ends": ends, "known": [start, *found], "most": MAX_LINKS}
        rows = await (await connection.execute(QUERIES[way.query], parameters)).fetchall()
        # Of two that lead to the same memory, the first counts.
        links = {row["id"]: row["of"] for row in reversed(rows)}
        room = way.limit - len(found) if step <= way.depth else 0
        whole = whole and len(links) <= room and len(rows) < MAX_LINKS
        chosen = sorted(links)[:room]
        seen = await read_each(connection, scope, chosen) if chosen else {}
        ends = [each for each in chosen if each in seen]
        found |= {each: EvidenceStep(seen[each], links[each], step) for each in ends}
        if not ends:
            break
    return tuple(found.values()), whole


async def read_each(connection: Connection, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, Memory]:
    """Read memories of any version by their IDs within a transaction; hidden ones are absent."""
    return await memories.read_memory_rows(
        await memories.query_memories(connection, scope, RowQuery(ids, expired=True, every=True))
    )
