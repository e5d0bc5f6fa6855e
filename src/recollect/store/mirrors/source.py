"""Read the record for a mirror: a tenant's scopes in one snapshot, by the log or whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from psycopg import sql
from psycopg.rows import DictRow

from recollect.core.mirrors.rows import ChangedRows, LogRow, MirroredRow, MirroredTable, RowKey
from recollect.models.service import EmbeddingSpace
from recollect.store.database.pool import Connection, Database, load_queries, show_cold
from recollect.store.memories.embeddings import vectors_table
from recollect.store.service.scopes import BEGINNING

QUERIES = load_queries(__file__)
PAGE = 500
"""Number of rows that one statement reads."""
MAX_LOG_ROWS = 500
"""Maximum number of log rows to follow at a time in one scope; each may name many IDs."""
COLUMNS: Mapping[MirroredTable, Sequence[str]] = {
    MirroredTable.MEMORIES: ("kind", "text", "speaker", "occurred_at", "vector"),
    MirroredTable.ENTITIES: ("name", "type", "names", "merged_into"),
    MirroredTable.FACTS: (
        *("subject_id", "predicate", "object_id", "text"),
        *("valid_at", "invalid_at", "created_at", "superseded_at"),
    ),
}


@dataclass(frozen=True, slots=True)
class ScopeLog:
    """The rows of a scope's log after a position."""

    change_number: int
    """The scope's newest change."""
    rows: Sequence[LogRow]
    """The next changes, in their order."""
    broken: bool
    """Whether the log does not continue at the position: then the whole scope must be compared."""


class RecordReader:
    """A tenant's rows in one snapshot."""

    def __init__(self, connection: Connection, space: EmbeddingSpace | None) -> None:
        self._connection = connection
        vectors = sql.SQL("") if space is None else vectors_table(space.id)
        with_vectors = "memories" if space is not None else "memories_alone"
        self._queries: dict[MirroredTable, sql.SQL | sql.Composed] = {
            MirroredTable.MEMORIES: sql.SQL(QUERIES[with_vectors]).format(vectors=vectors),
            MirroredTable.ENTITIES: sql.SQL(QUERIES["entities"]),
            MirroredTable.FACTS: sql.SQL(QUERIES["facts"]),
        }

    async def read_incarnation(self) -> UUID:
        """Read the ID of the record."""
        row = await (await self._connection.execute(QUERIES["incarnation"])).fetchone()
        assert row is not None  # noqa: S101 - every database has one
        incarnation: UUID = row["id"]
        return incarnation

    async def read_log(self, positions: Mapping[int, int]) -> dict[int, ScopeLog]:
        """Read the log of scopes after a position in each."""
        asked = {"scopes": list(positions), "positions": list(positions.values()), "most": MAX_LOG_ROWS}
        numbers = await (await self._connection.execute(QUERIES["numbers"], asked)).fetchall()
        logged: dict[int, list[LogRow]] = {}
        for row in await (await self._connection.execute(QUERIES["log"], asked)).fetchall():
            logged.setdefault(row["scope_id"], []).append(LogRow(row["number"], row["operation"], row["ids"]))
        found: dict[int, ScopeLog] = {}
        for row in numbers:
            scope_id, change_number = row["scope_id"], row["change_number"]
            rows, position = logged.get(scope_id, []), positions[row["scope_id"]]
            # Numbers have no gaps: if the first number is not the next one, rows before it are gone.
            gone = change_number > position and (not rows or rows[0].number != position + 1)
            found[scope_id] = ScopeLog(change_number, rows, broken=gone or position > change_number)
        return found

    async def find_entities(self, scope_id: int, touched: ChangedRows) -> list[UUID]:
        """Find the changed entities: those named in the log, and those whose names came from changed sources."""
        named = touched.ids.get(MirroredTable.ENTITIES, ())
        if not touched.every_entity and not touched.sources:
            return list(named)
        asked = {"scope_id": scope_id, "sources": list(touched.sources), "every": touched.every_entity}
        rows = await (await self._connection.execute(QUERIES["touched_entities"], asked)).fetchall()
        return [*dict.fromkeys([*named, *(row["id"] for row in rows)])]

    async def read_rows(self, keys: Iterable[tuple[int, RowKey]]) -> dict[tuple[int, RowKey], MirroredRow]:
        """Read rows of scopes; missing and hidden rows are absent."""
        found: dict[tuple[int, RowKey], MirroredRow] = {}
        asked: dict[MirroredTable, list[tuple[int, UUID]]] = {}
        for scope_id, key in keys:
            asked.setdefault(key.table, []).append((scope_id, key.id))
        for table, pairs in asked.items():
            for first in range(0, len(pairs), PAGE):
                some = pairs[first : first + PAGE]
                parameters = {"scopes": [scope for scope, _ in some], "ids": [each for _, each in some]}
                answer = await self._connection.execute(self._queries[table], parameters, binary=True)
                for row in await answer.fetchall():
                    found[row["scope_id"], RowKey(table, row["id"])] = to_row(table, row)
        return found

    async def walk(self, scope_id: int, table: MirroredTable) -> AsyncIterator[list[MirroredRow]]:
        """Read all rows of a scope, page by page."""
        after = BEGINNING
        while True:
            asked = {"scope_id": scope_id, "after": after, "limit": PAGE}
            listed = await self._connection.execute(QUERIES[f"list_{table.value}"], asked)
            ids = [row["id"] for row in await listed.fetchall()]
            if not ids:
                return
            rows = await self.read_rows((scope_id, RowKey(table, each)) for each in ids)
            yield [*rows.values()]
            after = ids[-1]


@asynccontextmanager
async def reading_record(
    database: Database, tenant_id: int, space: EmbeddingSpace | None
) -> AsyncIterator[RecordReader]:
    """Read a tenant's record in one snapshot without a deadline, with the vectors of a space."""
    async with database.snapshot(tenant_id) as connection:
        await show_cold(connection)
        yield RecordReader(connection, space)


def to_row(table: MirroredTable, row: DictRow) -> MirroredRow:
    """Convert an answer of the database to a mirrored row."""
    values: dict[str, Any] = {name: row.get(name) for name in COLUMNS[table]}
    if values.get("vector") is not None:
        values["vector"] = np.asarray(values["vector"].to_numpy(), dtype=np.float32)
    return MirroredRow(table, row["id"], {name: each for name, each in values.items() if each is not None})
