"""Write and read the rows of one scope's memories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.core.service.batches import divide
from recollect.core.text.terms import term_position, within_scope
from recollect.models.filters import Filter
from recollect.models.memories import ImportanceFrom, Kind, Memory, MemoryProgress, NewMemory, RecallState, Role, Triple
from recollect.models.service import Scope
from recollect.store.database.erasures import log_erasure
from recollect.store.database.filter import (
    KEYWORDS,
    MAX_CACHED_STATEMENTS,
    MEMORIES,
    NAMED_MEMORIES,
    PLACE,
    bind,
    restrict,
    restrict_rows,
)
from recollect.store.database.pool import Connection, Database, load_queries, to_sql
from recollect.store.memories import accesses, columns, embeddings
from recollect.store.memories.accesses import AccessRecord
from recollect.store.memories.columns import Row, gather, write_json
from recollect.store.memories.copy_protocol import SLOTS
from recollect.store.service.scopes import BEGINNING, lock_scope, names

QUERIES = load_queries(__file__, **columns.FRAGMENTS)
STORE_GIVEN, STORE_STAGED = (
    to_sql(sql.SQL(QUERIES["store_memories"]).format(source=sql.SQL(QUERIES[source]))) for source in ("given", "staged")
)
"""Store memories, their features and their terms, from JSON or from the staging table of a bulk load."""
PRESENT = Filter()
ORDERS = {"oldest": sql.SQL("id"), "latest": sql.SQL("id desc"), "newest": sql.SQL("occurred_at desc, id desc")}
KEPT = ("archived", "faded")
"""Excluded from recall, but still readable."""
BY_REASON = {"archived": RecallState.IN_ARCHIVED, "to_rederive": RecallState.WITHHELD}
"""The states of memories whose reason for exclusion has another name."""
WITHHELD: Mapping[RecallState, Sequence[str]] = {
    RecallState.CURRENT: (),
    RecallState.IN_ARCHIVED: ("archived",),
    RecallState.FADED: ("faded",),
    RecallState.PAST: ("past",),
    RecallState.WITHHELD: ("to_rederive",),
}
"""Why memories in each state are excluded from recall; deleted memories are in no state."""
FORESEE, FORGET = (
    to_sql(sql.SQL(QUERIES["derived"]).format(then=sql.SQL(QUERIES[name]))) for name in ("foresee", "forget")
)
MAX_ROWS, MAX_TERMS = 100, 10_000
HEAVY_TERMS = 2_000
CONVERTED = {"kind", "importance_from", "triple", "keywords", "evidence", "conversation", "role"}
BELIEF, ELSEWHERE = {"valid_at", "invalid_at", "superseded_at", "contested"}, {"state", "progress"}
PLAIN = [field.name for field in fields(Memory) if field.name not in CONVERTED | BELIEF | ELSEWHERE]
"""The fields of a memory that are read from the column of their name."""


@dataclass(frozen=True, slots=True)
class Source:
    """A memory named as evidence; derived memories have at most its trust, and more depth."""

    id: UUID
    trust: int
    depth: int


@dataclass(frozen=True, slots=True)
class Claim:
    """The state of an idempotency key: new, or used before with this body and outcome."""

    fresh: bool
    fingerprint: bytes
    memory_ids: list[UUID]
    embedded: list[bool]
    known: Sequence[int] = ()
    """The positions of memories that were known already."""


async def ask_sources(connection: Connection, scope: Scope, new: Sequence[NewMemory]) -> AsyncCursor[DictRow] | None:
    """Query the memories that evidence names by ID, if there are any, and lock them until the write ends."""
    ids = {source for memory in new for source in memory.evidence if isinstance(source, UUID)}
    return await connection.execute(QUERIES["sources"], {**names(scope), "ids": sorted(ids)}) if ids else None


async def read_sources(found: AsyncCursor[DictRow] | None) -> dict[UUID | int, Source]:
    """Read the result of `ask_sources`."""
    return {row["id"]: Source(**row) for row in await found.fetchall()} if found else {}


async def ask_claim(connection: Connection, scope: Scope, key: str, fingerprint: bytes) -> AsyncCursor[DictRow]:
    """Claim an idempotency key; a replay writes, too, so that its commit waits like the first one's."""
    parameters = {**names(scope), "key": key, "fingerprint": fingerprint}
    return await connection.execute(QUERIES["claim_key"], parameters)


async def read_claim(claimed: AsyncCursor[DictRow]) -> Claim:
    """Read the result of `ask_claim`."""
    row = await claimed.fetchone()
    assert row is not None  # noqa: S101 - an upsert in an opened scope always returns its row
    # The outcome of items is stored there as well.
    known = row["outcome"].get("known", ()) if isinstance(row["outcome"], dict) else ()
    return Claim(row["fresh"], row["fingerprint"], row["memory_ids"], row["embedded"], known)


async def complete_claim(
    connection: Connection,
    scope_id: int,
    key: str,
    ids: Sequence[UUID],
    embedded: Sequence[bool],
    known: Sequence[int] = (),
) -> None:
    """Record the outcome of a new key."""
    outcome = Jsonb({"known": list(known)}) if known else None
    parameters = {"scope_id": scope_id, "key": key, "ids": list(ids), "embedded": list(embedded), "outcome": outcome}
    await connection.execute(QUERIES["complete_claim"], parameters)


async def release_claim(connection: Connection, scope_id: int, key: str) -> None:
    """Delete the claim of a key whose write was refused."""
    await connection.execute(QUERIES["release_claim"], {"scope_id": scope_id, "key": key})


async def store_memories(
    connection: Connection, scope_id: int, origin: str, created_at: datetime, rows: Sequence[Row]
) -> None:
    """Write memories, their terms and their evidence, in portions between which the event loop is free."""
    for portion in divide(rows, lambda row: len(row.weights), MAX_ROWS, MAX_TERMS):
        await store_portion(connection, scope_id, origin, created_at, portion)
        await asyncio.sleep(0)
    await store_links(connection, scope_id, rows)


async def store_portion(
    connection: Connection, scope_id: int, origin: str, created_at: datetime, rows: Sequence[Row]
) -> None:
    """Write memories and their terms."""
    given = await write_rows_in_thread(
        rows, lambda: write_json([gather(row) | encode_terms(scope_id, row) for row in rows])
    )
    parameters = {"scope_id": scope_id, "origin": origin, "created_at": created_at, "rows": given}
    await connection.execute(STORE_GIVEN, parameters)


async def store_terms(connection: Connection, scope_id: int, row: Row) -> None:
    """Replace the terms that a memory is found by."""
    named = {"id": row.id, "kind": row.memory.kind.value, "trust": row.trust}
    given = await write_rows_in_thread([row], lambda: write_json([named | encode_terms(scope_id, row)]))
    await connection.execute(QUERIES["store_terms"], {"scope_id": scope_id, "rows": given})


async def write_rows_in_thread(rows: Sequence[Row], work: Callable[[], str]) -> str:
    """Write rows with many terms in a thread, so that the event loop stays free."""
    heavy = sum(len(row.weights) for row in rows) > HEAVY_TERMS
    return await asyncio.to_thread(work) if heavy else work()


async def store_links(connection: Connection, scope_id: int, rows: Sequence[Row]) -> None:
    """Store the evidence and the keywords of new memories."""
    filed = [(row, keyword) for row in rows for keyword in row.keywords]
    if filed:
        parameters = {
            "scope_id": scope_id,
            "ids": [row.id for row, _ in filed],
            "kinds": [row.memory.kind.value for row, _ in filed],
            "keywords": [keyword for _, keyword in filed],
            "counted": [row.counted for row, _ in filed],
        }
        await connection.execute(QUERIES["store_keywords"], parameters)
    pairs = [(row.id, source) for row in rows for source in dict.fromkeys(row.evidence)]
    if pairs:
        parameters = {
            "scope_id": scope_id,
            "memory_ids": [memory_id for memory_id, _ in pairs],
            "source_ids": [source_id for _, source_id in pairs],
        }
        await connection.execute(QUERIES["store_evidence"], parameters)
    summaries = {row.id for row in rows if row.memory.kind is Kind.SUMMARY}
    if summarised := [(summary, source) for summary, source in pairs if summary in summaries]:
        parameters = {
            "scope_id": scope_id,
            "summaries": [summary for summary, _ in summarised],
            "sources": [source for _, source in summarised],
        }
        await connection.execute(QUERIES["link_summaries"], parameters)


def encode_terms(scope_id: int, row: Row) -> dict[str, Any]:
    """Return the fields of a row's terms, with the weights in the database's sparse vector format."""
    hashes, by_slot = hash_terms(scope_id, row.weights)
    weights = ",".join(f"{number}:{weight:.6g}" for number, weight in by_slot.items())
    return {"terms": hashes, "weights": f"{{{weights}}}/{SLOTS}", "draw": row.draw}


def hash_terms(scope_id: int, weights: dict[int, float]) -> tuple[list[int], dict[int, float]]:
    """Return the hashes of a memory's terms within its scope, and their weights by slot."""
    hashes = [within_scope(scope_id, fingerprint) for fingerprint in weights]
    return sorted(hashes), dict(zip(map(term_position, weights), weights.values(), strict=True))


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Which memories to read: some by ID, or a page of all that a filter allows, oldest first."""

    ids: Sequence[UUID] | None = None
    only: Filter = PRESENT
    cursor: UUID = BEGINNING
    limit: int | None = None
    expired: bool = False
    """Whether expired memories are included."""
    every: bool = False
    """Whether every version is read, independent of times."""
    newest: bool = False
    """Whether the newest by time of occurrence come first; only memories in recall."""
    backwards: bool = False
    """Whether a page has memories stored before the cursor, last first."""
    terms: Sequence[int] = ()
    """Hashes of terms that a memory must have, all of them."""
    keyword: str = ""
    """The keyword that it must be filed under; only memories in recall."""

    def compose(self) -> sql.SQL:
        """Write the statement."""
        source = "named" if self.ids is not None else "preceding" if self.backwards else "following"
        order = "newest" if self.newest else "latest" if self.backwards else "oldest"
        extra = (*(["worded"] if self.terms else []), *(["filed"] if self.keyword else []))
        return compose(self.only, source, order, every=self.every, extra=extra)

    def bind(self, scope: Scope) -> dict[str, object]:
        """Return the values for the statement."""
        return {
            **names(scope),
            "ids": None if self.ids is None else list(self.ids),
            "cursor": self.cursor,
            "limit": self.limit if self.ids is None else len(self.ids),
            "expired": self.expired,
            "withheld": self.list_withheld(),
            "terms": list(self.terms),
            "keyword": self.keyword,
            "filed_kinds": [*map(str, self.only.kinds or Kind)],
            "filed_limit": None if self.terms else self.limit,
            **bind(self.only),
        }

    def list_withheld(self) -> list[str]:
        """List the reasons for exclusion of memories that are read anyway."""
        if self.only.state is not None:
            return [*WITHHELD[self.only.state]]
        return [*(() if self.newest else KEPT), *(("past",) if self.only.past or self.every else ())]


@lru_cache(maxsize=MAX_CACHED_STATEMENTS)
def compose(only: Filter, source: str, order: str, *, every: bool, extra: Sequence[str] = ()) -> sql.SQL:
    """Write the statement for memories: by ID, or before or after one, with extra conditions by their names."""
    columns = NAMED_MEMORIES if source == "named" else MEMORIES
    conditions = restrict_rows(only, PLACE, every=every, columns=columns)
    for name in extra:
        chosen = {"allowed": restrict(only, KEYWORDS, PLACE), "step": sql.SQL("<" if source == "preceding" else ">")}
        conditions += sql.SQL(QUERIES[name]).format(order=ORDERS[order], **chosen)
    parts = {"source": sql.SQL(QUERIES[source]), "filter": conditions, "order": ORDERS[order]}
    return to_sql(sql.SQL(QUERIES["read"]).format(**parts))


async def query_memories(connection: Connection, scope: Scope, wanted: RowQuery) -> AsyncCursor[DictRow]:
    """Query whole memories."""
    return await connection.execute(wanted.compose(), wanted.bind(scope))


async def read_memory_rows(found: AsyncCursor[DictRow]) -> dict[UUID, Memory]:
    """Read the result of `query_memories`."""
    return {memory.id: memory for memory in map(to_memory, await found.fetchall())}


async def fetch(database: Database, scope: Scope, ids: Sequence[UUID], only: Filter = PRESENT) -> dict[UUID, Memory]:
    """Fetch memories by ID; IDs of other scopes, or outside of a filter, are absent."""
    return {each.id: each for each in await page(database, scope, RowQuery(ids, only))}


async def fetch_every(database: Database, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, Memory]:
    """Fetch memories by ID at any time: all versions, including expired ones."""
    return {each.id: each for each in await page(database, scope, RowQuery(ids, expired=True, every=True))}


async def fetch_each(
    database: Database, scope: Scope, asked: Mapping[Filter, Sequence[UUID]]
) -> dict[Filter, dict[UUID, Memory]]:
    """Fetch memories by ID with several filters, in one round trip."""
    async with database.reading(scope.tenant_id) as connection:
        found = await ask_each(connection, scope, asked)
    return await read_each(found)


async def ask_each(
    connection: Connection, scope: Scope, asked: Mapping[Filter, Sequence[UUID]]
) -> dict[Filter, AsyncCursor[DictRow]]:
    """Send the queries of `fetch_each`."""
    return {only: await query_memories(connection, scope, RowQuery(ids, only)) for only, ids in asked.items()}


async def read_each(found: Mapping[Filter, AsyncCursor[DictRow]]) -> dict[Filter, dict[UUID, Memory]]:
    """Read the results of `ask_each`."""
    return {only: await read_memory_rows(rows) for only, rows in found.items()}


async def fetch_one(database: Database, scope: Scope, memory_id: UUID) -> Memory | None:
    """Fetch a memory and its progress, in one round trip; None if it is not in this scope."""
    async with database.reading(scope.tenant_id) as connection:
        found = await query_memories(connection, scope, RowQuery([memory_id], expired=True, every=True))
        stands = await connection.execute(QUERIES["state"], {**names(scope), "id": memory_id})
    row, state = await found.fetchone(), await stands.fetchone()
    return replace(to_memory(row), progress=MemoryProgress(state["state"])) if row and state else None


async def page(database: Database, scope: Scope, wanted: RowQuery) -> list[Memory]:
    """Fetch a page of memories that a filter allows."""
    async with database.reading(scope.tenant_id) as connection:
        found = await query_memories(connection, scope, wanted)
    return [*(await read_memory_rows(found)).values()]


async def fetch_accessed(
    database: Database,
    scope: Scope,
    scope_id: int,
    asked: Mapping[Filter, Sequence[UUID]],
    touched: Mapping[datetime | None, Sequence[UUID]],
) -> tuple[dict[Filter, dict[UUID, Memory]], dict[datetime | None, AccessRecord]]:
    """Fetch memories, and record accesses by time, in one round trip; return both."""
    async with database.transaction(scope.tenant_id) as connection:
        found = await ask_each(connection, scope, asked)
        sent = {moment: await accesses.record(connection, scope_id, some, moment) for moment, some in touched.items()}
    return await read_each(found), {moment: await accesses.read_recorded(each) for moment, each in sent.items()}


async def forget(
    database: Database, scope: Scope, wanted: RowQuery, *, dry_run: bool = False
) -> tuple[list[UUID], UUID | None]:
    """Delete memories and all memories derived from them, or only list them; return the cursor if there may be more.

    The scope is locked first, so that no write comes in between.
    """
    begin = database.reading if dry_run else database.transaction
    async with begin(scope.tenant_id) as connection:
        locked = None if dry_run else await lock_scope(connection, scope)
        chosen = [*(wanted.ids or ())] or [*await read_memory_rows(await query_memories(connection, scope, wanted))]
        gone = await (list_derived if dry_run else drop_buffered)(connection, scope, chosen)
        row = await locked.fetchone() if gone and locked and database.erasures else None
        if row is not None and database.erasures is not None:
            await log_erasure(connection, database.erasures, row["id"], ids=gone)
    return gone, chosen[-1] if len(chosen) == wanted.limit else None


async def list_derived(connection: Connection, scope: Scope, ids: Sequence[UUID]) -> list[UUID]:
    """List memories and all memories derived from them."""
    found = await connection.execute(FORESEE, {**names(scope), "ids": list(ids)})
    return [row["id"] for row in await found.fetchall()]


async def drop_buffered(connection: Connection, scope: Scope, ids: Sequence[UUID]) -> list[UUID]:
    """Delete memories and all memories derived from them, in a locked scope."""
    # A forgotten memory must no longer count as recently accessed.
    await connection.execute(QUERIES["fold_scope"], names(scope))
    forgotten = await connection.execute(FORGET, {**names(scope), "ids": list(ids)})
    gone = await forgotten.fetchall()
    if any(row["kind"] == Kind.MESSAGE for row in gone):
        # Messages after it have lost the vector made with it, or are being embedded with it now.
        await embeddings.defer_waiting(connection, scope)
    return [row["id"] for row in gone]


def to_memory(row: DictRow) -> Memory:
    """Convert a row of `read` to a memory: each field is the column of its name, or one of those below."""
    valid_at, invalid_at, superseded_at, contested_at = row["belief"] or (None, None, None, None)
    return Memory(
        **{name: row[name] for name in PLAIN},
        kind=Kind(row["kind"]),
        importance_from=ImportanceFrom(row["importance_from"]),
        triple=Triple(row["subject"], row["predicate"], row["object"]),
        keywords=tuple(row["keywords"]),
        evidence=tuple(row["evidence"]),
        conversation=row["conversation"] or "",
        role=Role(row["role"]) if row["role"] else None,
        valid_at=valid_at,
        invalid_at=invalid_at,
        superseded_at=superseded_at,
        contested=contested_at is not None,
        state=BY_REASON.get(row["withheld"]) or RecallState(row["withheld"] or RecallState.CURRENT),
    )
