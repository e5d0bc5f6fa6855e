"""Decline what is known already: against what the scope holds, and what the same transaction writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from recollect.core.memories.known import FoldedMemory, is_known, search_by, word
from recollect.models.memories import IfNew, MemoryProgress
from recollect.store.database.pool import Connection
from recollect.store.memories import known
from recollect.store.memories.columns import Row
from recollect.store.memories.known import Alike, SoughtMemory
from recollect.store.memories.memories import Source
from recollect.verbs.memories.rows import Prepared, Write


@dataclass(frozen=True, slots=True)
class Declined:
    """Which memories of a write are known, by position: as another memory, or as an earlier one of the same write."""

    met: Mapping[int, Source | int] = field(default_factory=dict[int, Source | int])
    progress: Mapping[int, MemoryProgress] = field(default_factory=dict[int, MemoryProgress])
    """How far the memories have come that were met."""

    def keep(self, prepared: Sequence[Prepared]) -> list[Prepared]:
        """Leave out what is known."""
        return [item for place, item in enumerate(prepared) if place not in self.met]


async def decline(connection: Connection, scope_id: int, write: Write, before: Sequence[Row]) -> Declined:
    """Find what is known of a write; `before` is what writes before it in the same transaction store."""
    if not write.if_new:
        return Declined()
    wordings = [word(item.memory) for item in write.prepared]
    trust = write.caller.trust
    sought = [
        SoughtMemory(place, wording, search_by(wording, write.if_new), trust, len(item.counts))
        for place, (wording, item) in enumerate(zip(wordings, write.prepared, strict=True))
        if wording.terms
    ]
    alike = await known.find_alike(connection, scope_id, sought) if sought else []
    alike += [
        Alike(place, Source(row.id, row.trust, row.depth), word(row.memory))
        for row in before
        if row.trust >= trust
        for place in range(len(wordings))
    ]
    met = meet(wordings, alike, write.if_new)
    stored = {place: source.id for place, source in met.items() if isinstance(source, Source)}
    progress = await known.fetch_progress(connection, scope_id, [*stored.values()])
    return Declined(met, {place: progress.get(each, MemoryProgress.STORED) for place, each in stored.items()})


def meet(wordings: Sequence[FoldedMemory], alike: Sequence[Alike], if_new: IfNew) -> dict[int, Source | int]:
    """Find for each new memory the first that says the same, stored ones before those of the same write."""
    by_place = dict[int, list[Alike]]()
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
