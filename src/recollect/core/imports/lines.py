"""Convert rows of exported memories to new memories, for callers who may not restore them unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.core.imports.manifest import UNREADABLE
from recollect.core.memories.checks import MAX_EVIDENCE, check_new_memory
from recollect.errors import InvalidInputError
from recollect.models.memories import ImportanceFrom, Kind, NewMemory, Triple


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """One memory of an export, converted to a new memory."""

    trust: int
    memory: NewMemory
    sources: tuple[int, ...]
    """Its evidence, as positions of earlier memories."""


def read_memories(rows: bytes) -> Iterator[MemoryLine]:
    """Parse a block of checked rows; raise an error for rows that cannot be written."""
    for row in json.loads(rows):
        try:
            yield to_line(row)
        except InvalidInputError as problem:
            raise InvalidInputError(f"memories/memories, {row['id']}: {problem} Nothing was imported.") from None
        except UNREADABLE:
            raise InvalidInputError("memories/memories cannot be read. Nothing was imported.") from None


def to_line(row: Mapping[str, Any]) -> MemoryLine:
    """Convert a row to a valid new memory, or raise an error."""
    memory = NewMemory(
        content=row["content"],
        kind=Kind(row["kind"]),
        speaker=row["speaker"],
        importance=float(row["importance"]),
        importance_from=ImportanceFrom(row["importance_from"]),
        triple=Triple(row["subject"], row["predicate"], row["object"]),
        idle=bool(row["idle"]),
        keywords=tuple(row["keywords"]),
        occurred_at=datetime.fromisoformat(row["occurred_at"]),
        embedding_text=row["embedding_text"],
        metadata=row["metadata"],
        expires_at=datetime.fromisoformat(row["expires_at"]) if row.get("expires_at") else None,
        pinned=row["pinned"],
    )
    check_new_memory(memory)
    return MemoryLine(row["trust"], memory, tuple(row["sources"][:MAX_EVIDENCE]))
