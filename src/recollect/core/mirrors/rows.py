"""The rows of a mirror with their checksums, the rows that a log changes, and comparisons."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import numpy as np


class MirroredTable(Enum):
    """The tables that a mirror can contain."""

    MEMORIES = "memories"
    """All memories that recall uses: text and vector."""
    ENTITIES = "entities"
    FACTS = "facts"
    """Every visible version of a fact, with both times."""


class RowKey(NamedTuple):
    """The key of a row in a scope."""

    table: MirroredTable
    id: UUID


@dataclass(frozen=True, slots=True)
class MirroredRow:
    """One row as stored in a mirror; vectors are arrays, times have a zone."""

    table: MirroredTable
    id: UUID
    values: Mapping[str, Any]

    @property
    def key(self) -> RowKey:
        """Return the key of the row."""
        return RowKey(self.table, self.id)


@dataclass(frozen=True, slots=True)
class MirrorBatch:
    """The changes for a mirror in one scope, from one snapshot of the record."""

    scope_id: int
    version: int
    """The scope's change number in that snapshot: newer rows of the mirror are not changed."""
    position: int
    """The number of the newest change that the mirror includes after this batch."""
    present: Sequence[MirroredRow] = ()
    gone: Sequence[RowKey] = ()


Checksums: TypeAlias = Mapping[RowKey, str]


def checksum(row: MirroredRow) -> str:
    """Return the checksum of a row; equal rows of the record and of a mirror have the same."""
    written = json.dumps(plain(row.values), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return blake2b(written.encode(), digest_size=16).hexdigest()


def plain(value: Any) -> Any:  # noqa: ANN401 - any value of a row
    """Convert a value to a common form, independent of its engine."""
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items() if each is not None}
    if isinstance(value, np.ndarray):
        return np.asarray(value, dtype="<f4").tobytes().hex()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, UUID):
        return str(value)
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class MirrorDiff:
    """The differences of a mirror from the record: missing, changed and extra rows."""

    missing: frozenset[RowKey] = frozenset()
    changed: frozenset[RowKey] = frozenset()
    extra: frozenset[RowKey] = frozenset()

    @property
    def size(self) -> int:
        """Count the rows that differ."""
        return len(self.missing) + len(self.changed) + len(self.extra)


def compare(record: Checksums, mirror: Checksums) -> MirrorDiff:
    """Compare a mirror with the record."""
    both = record.keys() & mirror.keys()
    return MirrorDiff(
        missing=frozenset(record.keys() - both),
        changed=frozenset(key for key in both if record[key] != mirror[key]),
        extra=frozenset(mirror.keys() - both),
    )


@dataclass(frozen=True, slots=True)
class LogRow:
    """One row of the change log."""

    number: int
    operation: str
    ids: Sequence[UUID]


OF_MEMORY = frozenset({"stored", "changed", "revised", "forgotten", "state", "embedded", "fact"})
TOUCHES: Mapping[MirroredTable, frozenset[str]] = MappingProxyType(
    {
        MirroredTable.MEMORIES: OF_MEMORY,
        MirroredTable.FACTS: OF_MEMORY - {"stored", "embedded"},
        MirroredTable.ENTITIES: frozenset({"entity"}),
    }
)
"""The operations that change the rows of each table; a stored fact is also logged as a fact."""
OF_CONVERSATION = "conversation"
"""Changes which names are visible, and has no IDs."""


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The rows that log entries of a scope changed, without duplicates; all entities if unknown."""

    ids: Mapping[MirroredTable, Sequence[UUID]] = field(default_factory=dict[MirroredTable, Sequence[UUID]])
    sources: Sequence[UUID] = ()
    """Memories that may have added or removed names of entities."""
    every_entity: bool = False

    @property
    def entities(self) -> list[MirroredTable]:
        """Return the table whose changed rows must be searched, if a mirror contains it."""
        return [MirroredTable.ENTITIES] if MirroredTable.ENTITIES in self.ids else []


def coalesce(rows: Iterable[LogRow], tables: Iterable[MirroredTable]) -> ChangedRows:
    """Return each changed ID once; the record has its present state."""
    found: dict[MirroredTable, dict[UUID, None]] = {table: {} for table in tables}
    sources: dict[UUID, None] = {}
    every = False
    for row in rows:
        every |= row.operation == OF_CONVERSATION
        if row.operation in {"state", "changed"}:
            sources |= dict.fromkeys(row.ids)
        for table, ids in found.items():
            if row.operation in TOUCHES[table]:
                ids.update(dict.fromkeys(row.ids))
    wanted = MirroredTable.ENTITIES in found
    return ChangedRows({table: [*ids] for table, ids in found.items()}, [*sources] if wanted else (), every and wanted)
