"""Turn a line of an export's memories into a new memory, for callers who may not restore it as it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.core.imports.manifest import UNREADABLE
from recollect.core.memories.checks import MOST_EVIDENCE, check_new_memory
from recollect.errors import InvalidInputError
from recollect.models.memories import ImportanceFrom, Kind, NewMemory, Triple

TAKES_PART = {None, "archived"}
"""What is withheld for another reason is past, faded, or of a deleted conversation, and is not brought along."""


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """One memory of an export, as it would be new."""

    id: UUID
    trust: int
    memory: NewMemory
    sources: tuple[UUID, ...]
    """Its evidence, by the ids of the export."""


def read_memories(
    memories: Iterable[bytes], features: Iterable[bytes], evidence: Iterable[bytes]
) -> Iterator[MemoryLine | None]:
    """Read memories with what other sections say of them, all in the order of ids; None for one that is left out."""
    pinned, sources = Following(features, "id"), Following(evidence, "memory_id")
    for number, line in enumerate(memories, 1):
        try:
            row: Any = json.loads(line)
            if row["withheld"] not in TAKES_PART or not row["content"].strip():
                yield None
                continue
            identity = str(row["id"])
            named = tuple(UUID(each["source_id"]) for each in sources.take(identity))
            shown = any(each["pinned"] for each in pinned.take(identity))
            yield to_line(row, named, pinned=shown)
        except InvalidInputError as problem:
            raise InvalidInputError(f"memories/memories, line {number}: {problem}") from None
        except UNREADABLE:
            raise InvalidInputError(f"memories/memories, line {number} cannot be read. Nothing was imported.") from None


class Following:
    """The rows of a sorted section that belong to one memory after the other."""

    def __init__(self, lines: Iterable[bytes], key: str) -> None:
        self._rows: Iterator[Mapping[str, Any]] = map(json.loads, lines)
        self._key = key
        self._next: Mapping[str, Any] | None = None
        self._begun = False

    def take(self, identity: str) -> list[Mapping[str, Any]]:
        """Return the rows of a memory, and pass by those of memories before it."""
        if not self._begun:
            self._next, self._begun = next(self._rows, None), True
        taken: list[Mapping[str, Any]] = []
        while self._next is not None and str(self._next[self._key]) <= identity:
            if self._next[self._key] == identity:
                taken.append(self._next)
            self._next = next(self._rows, None)
        return taken


def to_line(row: Mapping[str, Any], sources: Sequence[UUID], *, pinned: bool) -> MemoryLine:
    """Turn a row into a memory that could be remembered, or say why it could not."""
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
        expires_at=datetime.fromisoformat(row["expires_at"]) if row["expires_at"] else None,
        pinned=pinned,
    )
    check_new_memory(memory)
    return MemoryLine(UUID(row["id"]), max(0, int(row["trust"])), memory, tuple(sources[:MOST_EVIDENCE]))
