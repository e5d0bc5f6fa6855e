"""The columns of a memory's row, each named once: writes, bulk loads and reads take their lists from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import sql
from psycopg.types.json import Jsonb

from recollect.models.memories import NewMemory, Role


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """Where a message stands, and whose it is."""

    conversation: str
    role: Role
    number: int


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
    """By which it is drawn for a sample of its scope."""
    tells: int
    """What it is like by its wording."""
    named: str
    """Its speaker in the form names are compared by."""
    place: MessagePlace | None = None


@dataclass(frozen=True, slots=True)
class MemoryColumn:
    """A column that every memory has a value for."""

    name: str
    type: LiteralString
    value: Callable[[Row], Any]
    sent_as: str = ""
    """The name of its parameter, where a column of another table has its name and holds something else."""

    @property
    def parameter(self) -> str:
        """Name the parameter that its values travel in."""
        return self.sent_as or self.name


ID = MemoryColumn("id", "uuid", lambda row: row.id)
KIND = MemoryColumn("kind", "text", lambda row: row.memory.kind.value)
IMPORTANCE = MemoryColumn("importance", "real", lambda row: float(row.memory.importance))
OCCURRED = MemoryColumn("occurred_at", "timestamptz", lambda row: row.occurred_at)
EXPIRES = MemoryColumn("expires_at", "timestamptz", lambda row: row.memory.expires_at)
COLUMNS = (
    ID,
    KIND,
    MemoryColumn("content", "text", lambda row: row.memory.content),
    MemoryColumn("speaker", "text", lambda row: row.memory.speaker),
    IMPORTANCE,
    MemoryColumn("subject", "text", lambda row: row.memory.triple.subject),
    MemoryColumn("predicate", "text", lambda row: row.memory.triple.predicate),
    MemoryColumn("object", "text", lambda row: row.memory.triple.object),
    MemoryColumn("idle", "boolean", lambda row: row.idle),
    MemoryColumn("depth", "smallint", lambda row: row.depth),
    MemoryColumn("keywords", "text[]", lambda row: list(row.keywords)),
    MemoryColumn("trust", "smallint", lambda row: row.trust),
    OCCURRED,
    MemoryColumn("embedding_text", "text", lambda row: row.memory.embedding_text),
    MemoryColumn("metadata", "jsonb", lambda row: Jsonb(dict(row.memory.metadata))),
    EXPIRES,
)
FEATURES = (
    ID,
    KIND,
    IMPORTANCE,
    OCCURRED,
    EXPIRES,
    MemoryColumn("length", "integer", lambda row: len(row.weights)),
    MemoryColumn("tells", "smallint", lambda row: row.tells),
    MemoryColumn("pinned", "boolean", lambda row: row.memory.pinned),
    MemoryColumn("speaker", "text", lambda row: row.named, "speaker_named"),
    MemoryColumn("conversation_id", "text", lambda row: row.place and row.place.conversation),
    MemoryColumn("role", "text", lambda row: row.place and row.place.role.value),
    MemoryColumn("number", "bigint", lambda row: row.place and row.place.number),
)
"""The columns of `memory_features`: what ranking and filters read. `state` begins as current and follows."""
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
    parameter = sql.Placeholder(column.parameter, "b" if is_text(column) else "s")
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
        column.parameter: [
            write_array(column.value(row)) if column.type == "text[]" else column.value(row) for row in rows
        ]
        for column in dict.fromkeys((*COLUMNS, *FEATURES))
    }


def write_array(texts: Sequence[str]) -> str:
    """Write texts as PostgreSQL reads an array of them."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"
