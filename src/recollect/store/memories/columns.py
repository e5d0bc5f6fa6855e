"""The columns of a memory's row, each named once: writes, bulk loads and reads use these lists."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import sql
from psycopg.types.json import Jsonb

from recollect.core.memories.importance import read_importance
from recollect.models.memories import NewMemory, Role


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """The position and author of a message."""

    conversation: str
    role: Role
    number: int


@dataclass(frozen=True, slots=True)
class Row:
    """A memory ready to be written: the request, and the decisions of the service."""

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
    """Its random number for a sample of its scope."""
    tells: int
    """How a memory's wording classifies it."""
    named: str
    """Its speaker in the form used to compare names."""
    place: MessagePlace | None = None


@dataclass(frozen=True, slots=True)
class MemoryColumn:
    """A column that every memory has a value for."""

    name: str
    type: LiteralString
    value: Callable[[Row], Any]
    sent_as: str = ""
    """The name of its field, if a column of another table has its name and other content."""
    unworded: LiteralString = ""
    """Its value in a version that has no words yet, in SQL; if empty, the value of the previous version."""

    @property
    def field(self) -> str:
        """Return the name of the field with its value."""
        return self.sent_as or self.name


ID = MemoryColumn("id", "uuid", lambda row: row.id, unworded="given.heir")
KIND = MemoryColumn("kind", "text", lambda row: row.memory.kind.value)
IMPORTANCE = MemoryColumn("importance", "real", lambda row: read_importance(row.memory.importance))
OCCURRED = MemoryColumn("occurred_at", "timestamptz", lambda row: row.occurred_at)
EXPIRES = MemoryColumn("expires_at", "timestamptz", lambda row: row.memory.expires_at)
COLUMNS = (
    ID,
    KIND,
    MemoryColumn("content", "text", lambda row: row.memory.content, unworded="''"),
    MemoryColumn("speaker", "text", lambda row: row.memory.speaker, unworded="''"),
    IMPORTANCE,
    MemoryColumn("importance_from", "text", lambda row: row.memory.importance_from.value),
    MemoryColumn("subject", "text", lambda row: row.memory.triple.subject, unworded="''"),
    MemoryColumn("predicate", "text", lambda row: row.memory.triple.predicate, unworded="''"),
    MemoryColumn("object", "text", lambda row: row.memory.triple.object, unworded="''"),
    MemoryColumn("idle", "boolean", lambda row: row.idle, unworded="false"),
    MemoryColumn("depth", "smallint", lambda row: row.depth),
    MemoryColumn("keywords", "text[]", lambda row: list(row.keywords), unworded="'{}'"),
    MemoryColumn("trust", "smallint", lambda row: row.trust),
    OCCURRED,
    MemoryColumn("embedding_text", "text", lambda row: row.memory.embedding_text, unworded="''"),
    MemoryColumn("metadata", "jsonb", lambda row: Jsonb(dict(row.memory.metadata)), unworded="'{}'"),
    EXPIRES,
)
FEATURES = (
    ID,
    KIND,
    IMPORTANCE,
    OCCURRED,
    EXPIRES,
    MemoryColumn("length", "integer", lambda row: len(row.weights), unworded="0"),
    MemoryColumn("tells", "smallint", lambda row: row.tells, unworded="0"),
    MemoryColumn("pinned", "boolean", lambda row: row.memory.pinned),
    MemoryColumn("speaker", "text", lambda row: row.named, "speaker_named", unworded="''"),
    MemoryColumn("conversation_id", "text", lambda row: row.place and row.place.conversation, unworded="null"),
    MemoryColumn("role", "text", lambda row: row.place and row.place.role.value, unworded="null"),
    MemoryColumn("number", "bigint", lambda row: row.place and row.place.number, unworded="null"),
)
"""The columns of `memory_features`: read by ranking and filters. `state` begins as current and follows."""
SHARED: Mapping[str, LiteralString] = {"scope_id": "bigint", "origin": "text", "created_at": "timestamptz"}
"""The columns, with their types, that all rows of one write have the same value for."""


NAMES, FEATURE_NAMES = (
    sql.SQL(", ").join(sql.Identifier(column.name) for column in some) for some in (COLUMNS, FEATURES)
)
UNWORDED, FEATURES_UNWORDED = (
    sql.SQL(", ").join(
        sql.SQL(column.unworded) if column.unworded else sql.Identifier("elder", column.name) for column in some
    )
    for some in (COLUMNS, FEATURES)
)
EVERY = tuple(dict.fromkeys((*COLUMNS, *FEATURES)))
"""The columns of both tables, each once."""
FRAGMENTS: Mapping[str, sql.Composable] = {
    "columns": NAMES,
    "features": FEATURE_NAMES,
    "unworded": UNWORDED,
    "features_unworded": FEATURES_UNWORDED,
    "feature_fields": sql.SQL(", ").join(sql.Identifier(column.field) for column in FEATURES),
    "fields": sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(column.field), sql.SQL(column.type)) for column in EVERY
    ),
}
"""The fragments for names in braces in queries."""


def gather(row: Row) -> dict[str, Any]:
    """Return the fields of a row for JSON."""
    return {column.field: column.value(row) for column in EVERY}


def write_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as one JSON text; it costs far less than an array for each column."""
    return json.dumps(rows, default=plain, ensure_ascii=False, separators=(",", ":"))


def plain(value: object) -> object:
    """Convert a value without a JSON form to JSON, or to a text that the database reads."""
    return value.obj if isinstance(value, Jsonb) else str(value)
