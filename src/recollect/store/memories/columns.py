"""The columns of a memory's row, each named once: writes, bulk loads and reads take their lists from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import sql
from psycopg.types.json import Jsonb

from recollect.models.memories import NewMemory


@dataclass(frozen=True, slots=True)
class Row:
    """One memory ready to be written: what was asked, and what the service decided."""

    id: UUID
    memory: NewMemory
    keywords: tuple[str, ...]
    counted: bool
    """Whether it adds to the strength of its keywords."""
    idle: bool
    depth: int
    occurred_at: datetime
    trust: int
    evidence: tuple[UUID, ...]
    weights: dict[int, float]
    draw: int
    """The number by which it is drawn for a sample of its scope."""


@dataclass(frozen=True, slots=True)
class MemoryColumn:
    """A column that every memory has a value for."""

    name: str
    type: LiteralString
    value: Callable[[Row], Any]


COLUMNS = (
    MemoryColumn("id", "uuid", lambda row: row.id),
    MemoryColumn("kind", "text", lambda row: row.memory.kind.value),
    MemoryColumn("content", "text", lambda row: row.memory.content),
    MemoryColumn("speaker", "text", lambda row: row.memory.speaker),
    MemoryColumn("importance", "real", lambda row: float(row.memory.importance)),
    MemoryColumn("subject", "text", lambda row: row.memory.triple.subject),
    MemoryColumn("predicate", "text", lambda row: row.memory.triple.predicate),
    MemoryColumn("object", "text", lambda row: row.memory.triple.object),
    MemoryColumn("idle", "boolean", lambda row: row.idle),
    MemoryColumn("depth", "smallint", lambda row: row.depth),
    MemoryColumn("keywords", "text[]", lambda row: list(row.keywords)),
    MemoryColumn("trust", "smallint", lambda row: row.trust),
    MemoryColumn("occurred_at", "timestamptz", lambda row: row.occurred_at),
    MemoryColumn("embedding_text", "text", lambda row: row.memory.embedding_text),
    MemoryColumn("metadata", "jsonb", lambda row: Jsonb(dict(row.memory.metadata))),
    MemoryColumn("expires_at", "timestamptz", lambda row: row.memory.expires_at),
)
FEATURES = (
    MemoryColumn("id", "uuid", lambda row: row.id),
    MemoryColumn("pinned", "boolean", lambda row: row.memory.pinned),
)
"""The columns of `memory_features`: what a caller may filter by, apart from kind and trust."""
SHARED: Mapping[str, LiteralString] = {"scope_id": "bigint", "origin": "text", "created_at": "timestamptz"}
"""The columns, with their types, that all rows of one write have the same value for."""


NAMES, FEATURE_NAMES = (
    sql.SQL(", ").join(sql.Identifier(column.name) for column in some) for some in (COLUMNS, FEATURES)
)
VALUES = sql.SQL(", ").join(
    sql.SQL("{}::{}").format(sql.Identifier(column.name), sql.SQL(column.type)) for column in COLUMNS
)
"""The columns as `unnest` gives them, each as its own type."""


def is_text(column: MemoryColumn) -> bool:
    """Tell whether a column's values are sent as texts: arrays are, as an array of arrays would need one length."""
    return column.type in {"text", "text[]"}


def _name_array(column: MemoryColumn) -> sql.Composed:
    sent: LiteralString = "text" if is_text(column) else column.type
    # Texts are written and read faster in binary.
    parameter = sql.Placeholder(column.name, "b" if is_text(column) else "s")
    return sql.SQL("{}::{}[]").format(parameter, sql.SQL(sent))


ARRAYS, FEATURE_ARRAYS = (sql.SQL(", ").join(map(_name_array, some)) for some in (COLUMNS, FEATURES))
"""One parameter for each column: the values of all rows."""
FRAGMENTS: Mapping[str, sql.Composable] = {
    "columns": NAMES,
    "values": VALUES,
    "arrays": ARRAYS,
    "features": FEATURE_NAMES,
    "feature_arrays": FEATURE_ARRAYS,
}
"""What queries have in braces."""


def gather(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Return the parameters that the arrays name."""
    return {
        column.name: [write_array(column.value(row)) if column.type == "text[]" else column.value(row) for row in rows]
        for column in (*COLUMNS, *FEATURES)
    }


def write_array(texts: Sequence[str]) -> str:
    """Write texts as PostgreSQL reads an array of them."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"
