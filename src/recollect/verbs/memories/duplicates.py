"""Skip known memories: those in the scope, and those of the same transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from recollect.core.memories.duplicates import FoldedMemory, is_known, normalize, search_by
from recollect.models.memories import IfNew, MemoryProgress
from recollect.store.database.pool import Connection
from recollect.store.memories import duplicates
from recollect.store.memories.columns import Row
from recollect.store.memories.duplicates import DuplicateQuery, SimilarMemory
from recollect.store.memories.memories import Source
from recollect.verbs.memories.rows import PreparedMemory, Write


@dataclass(frozen=True, slots=True)
class KnownMemories:
    """The known memories of a write, by position: another memory, or an earlier one of the same write."""

    met: Mapping[int, Source | int] = field(default_factory=dict[int, Source | int])
    progress: Mapping[int, MemoryProgress] = field(default_factory=dict[int, MemoryProgress])
    """The progress of the known memories."""

    def keep(self, prepared: Sequence[PreparedMemory]) -> list[PreparedMemory]:
        """Return the memories that are not known."""
        return [item for place, item in enumerate(prepared) if place not in self.met]


async def find_known(connection: Connection, scope_id: int, write: Write, before: Sequence[Row]) -> KnownMemories:
    """Find the known memories of a write; `before` are the rows of earlier writes in the transaction."""
    if not write.if_new:
        return KnownMemories()
    wordings = [normalize(item.memory) for item in write.prepared]
    trust = write.caller.trust
    sought = [
        DuplicateQuery(place, wording, search_by(wording, write.if_new), trust, len(item.counts))
        for place, (wording, item) in enumerate(zip(wordings, write.prepared, strict=True))
        if wording.terms
    ]
    alike = await duplicates.find_alike(connection, scope_id, sought) if sought else []
    alike += [
        SimilarMemory(place, Source(row.id, row.trust, row.depth), normalize(row.memory))
        for row in before
        if row.trust >= trust
        for place in range(len(wordings))
    ]
    met = find_duplicates(wordings, alike, write.if_new)
    stored = {place: source.id for place, source in met.items() if isinstance(source, Source)}
    progress = await duplicates.fetch_progress(connection, scope_id, [*stored.values()])
    return KnownMemories(met, {place: progress.get(each, MemoryProgress.STORED) for place, each in stored.items()})


def find_duplicates(
    wordings: Sequence[FoldedMemory], alike: Sequence[SimilarMemory], if_new: IfNew
) -> dict[int, Source | int]:
    """Find for each new memory the first with the same text, stored ones before those of the same write."""
    by_place = dict[int, list[SimilarMemory]]()
    for each in alike:
        by_place.setdefault(each.place, []).append(each)
    met = dict[int, Source | int]()
    for place, wording in enumerate(wordings):
        stored = (each.source for each in by_place.get(place, ()) if is_known(wording, each.wording, if_new))
        earlier = (other for other in range(place) if other not in met and is_known(wording, wordings[other], if_new))
        found: Source | int | None = next(stored, None)
        found = next(earlier, None) if found is None else found
        if found is not None:
            met[place] = found
    return met
