"""Find memories with the same meaning as new ones, in a scope that the caller has locked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from recollect.core.memories.duplicates import FoldedMemory, TermSearch, normalize_as
from recollect.core.text.terms import hash_term
from recollect.models.memories import MemoryProgress
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories.columns import write_json
from recollect.store.memories.memories import Source

QUERIES = load_queries(__file__)
MAX_SIMILAR = 50
"""Maximum number of memories to compare among those with the terms; the nearest in number of terms first."""


@dataclass(frozen=True, slots=True)
class DuplicateQuery:
    """A new memory to look for: its position, its terms, and the trust that a known one must have."""

    place: int
    wording: FoldedMemory
    search: TermSearch
    trust: int
    expected: int
    """The number of terms that it would be stored with."""

    def to_row(self, scope_id: int) -> dict[str, Any]:
        """Return it as a row for the query."""
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
class SimilarMemory:
    """A stored memory with the terms of a new one."""

    place: int
    source: Source
    wording: FoldedMemory


async def find_alike(connection: Connection, scope_id: int, sought: Sequence[DuplicateQuery]) -> list[SimilarMemory]:
    """Find stored memories that may repeat new ones, oldest first for each."""
    kinds = {each.place: each.wording.kind for each in sought}
    parameters = {
        "scope_id": scope_id,
        "rows": write_json([each.to_row(scope_id) for each in sought]),
        "limit": MAX_SIMILAR,
    }
    found = await connection.execute(QUERIES["known"], parameters)
    return [
        SimilarMemory(
            row["place"],
            Source(row["id"], row["trust"], row["depth"]),
            normalize_as(kinds[row["place"]], row["speaker"], row["content"]),
        )
        for row in await found.fetchall()
    ]


async def fetch_progress(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> dict[UUID, MemoryProgress]:
    """Fetch the progress of memories."""
    if not ids:
        return {}
    found = await connection.execute(QUERIES["states"], {"scope_id": scope_id, "ids": list(ids)})
    return {row["id"]: MemoryProgress(row["state"]) for row in await found.fetchall()}
