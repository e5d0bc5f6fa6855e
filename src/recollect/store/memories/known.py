"""Find memories that say what new ones do, in a scope that the caller has locked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from recollect.core.memories.known import FoldedMemory, TermSearch, word_as
from recollect.core.text.terms import hash_term
from recollect.models.memories import MemoryProgress
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories.columns import write_json
from recollect.store.memories.memories import Source

QUERIES = load_queries(__file__)
MOST_ALIKE = 50
"""Of those that have the terms, so many are compared, the nearest in their number of terms first."""


@dataclass(frozen=True, slots=True)
class SoughtMemory:
    """A new memory to look for: its position, its terms, and the trust that a known one must have."""

    place: int
    wording: FoldedMemory
    search: TermSearch
    trust: int
    expected: int
    """How many terms it would be stored with."""

    def to_row(self, scope_id: int) -> dict[str, Any]:
        """Write it for the query."""
        return {
            "place": self.place,
            "kind": self.wording.kind.value,
            "speaker": self.wording.speaker,
            "trust": self.trust,
            "terms": [hash_term(scope_id, term) for term in self.search.terms],
            "rare": [hash_term(scope_id, term) for term in self.search.rare],
            "fewest": self.search.fewest,
            "expected": self.expected,
        }


@dataclass(frozen=True, slots=True)
class Alike:
    """A stored memory with the terms of a new one."""

    place: int
    source: Source
    wording: FoldedMemory


async def find_alike(connection: Connection, scope_id: int, sought: Sequence[SoughtMemory]) -> list[Alike]:
    """Find stored memories that may say what new ones do, oldest first for each."""
    kinds = {each.place: each.wording.kind for each in sought}
    parameters = {
        "scope_id": scope_id,
        "rows": write_json([each.to_row(scope_id) for each in sought]),
        "limit": MOST_ALIKE,
    }
    found = await connection.execute(QUERIES["known"], parameters)
    return [
        Alike(
            row["place"],
            Source(row["id"], row["trust"], row["depth"]),
            word_as(kinds[row["place"]], row["speaker"], row["content"]),
        )
        for row in await found.fetchall()
    ]


async def fetch_progress(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> dict[UUID, MemoryProgress]:
    """Fetch how far memories have come."""
    if not ids:
        return {}
    found = await connection.execute(QUERIES["states"], {"scope_id": scope_id, "ids": list(ids)})
    return {row["id"]: MemoryProgress(row["state"]) for row in await found.fetchall()}
