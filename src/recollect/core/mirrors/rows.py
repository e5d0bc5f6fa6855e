"""What a mirror holds: rows with a checksum each, which of them a log touches, and how they are compared."""

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
    """What kind of rows a mirror can hold."""

    MEMORIES = "memories"
    """All that takes part in recall: text and vector."""
    ENTITIES = "entities"
    FACTS = "facts"
    """Every version of a fact that is in sight, with both times."""


class RowKey(NamedTuple):
    """Which row of a scope."""

    table: MirroredTable
    id: UUID


@dataclass(frozen=True, slots=True)
class MirroredRow:
    """One row as a mirror holds it; vectors are arrays, times are aware."""

    table: MirroredTable
    id: UUID
    values: Mapping[str, Any]

    @property
    def key(self) -> RowKey:
        """Return which row of its scope it is."""
        return RowKey(self.table, self.id)


@dataclass(frozen=True, slots=True)
class Batch:
    """What a mirror is told of one scope, as it stands in the record at one moment."""

    scope_id: int
    version: int
    """The scope's change number at that moment: what a mirror holds of a later one is newer, and stays."""
    position: int
    """The number of the newest change that the mirror has followed once this is applied."""
    present: Sequence[MirroredRow] = ()
    gone: Sequence[RowKey] = ()


Checksums: TypeAlias = Mapping[RowKey, str]


def checksum(row: MirroredRow) -> str:
    """Compute the checksum of a row: the same for the record's and for a mirror's, if they say the same."""
    written = json.dumps(plain(row.values), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return blake2b(written.encode(), digest_size=16).hexdigest()


def plain(value: Any) -> Any:  # noqa: ANN401 - any value of a row
    """Write a value in one way, whichever engine it comes from."""
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
class Difference:
    """Where a mirror is not equal to the record: what it lacks, what it has otherwise, what it should not have."""

    missing: frozenset[RowKey] = frozenset()
    changed: frozenset[RowKey] = frozenset()
    extra: frozenset[RowKey] = frozenset()

    @property
    def size(self) -> int:
        """Count the rows that differ."""
        return len(self.missing) + len(self.changed) + len(self.extra)


def compare(record: Checksums, mirror: Checksums) -> Difference:
    """Compare a mirror with the record."""
    both = record.keys() & mirror.keys()
    return Difference(
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
"""Which operations touch the rows of which table; a fact that is stored is logged as a fact, too."""
OF_CONVERSATION = "conversation"
"""Changes which names are in sight, and names no ids."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What the log rows of a scope touch, each once; all of its entities where nobody says which."""

    ids: Mapping[MirroredTable, Sequence[UUID]] = field(default_factory=dict[MirroredTable, Sequence[UUID]])
    sources: Sequence[UUID] = ()
    """Memories by which entities may have got names, or lost them."""
    every_entity: bool = False

    @property
    def entities(self) -> list[MirroredTable]:
        """Name the table whose touched rows are to be looked for, if a mirror holds it."""
        return [MirroredTable.ENTITIES] if MirroredTable.ENTITIES in self.ids else []


def coalesce(rows: Iterable[LogRow], tables: Iterable[MirroredTable]) -> Touched:
    """Say once of each id that it was touched, however often it was: the record says what became of it."""
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
    return Touched({table: [*ids] for table, ids in found.items()}, [*sources] if wanted else (), every and wanted)
