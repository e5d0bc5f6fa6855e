"""A mirror in the memory of this process: it holds what it is told, as an engine does, and can be looked through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from recollect.core.mirrors.questions import MirrorHits, MirrorQuestion
from recollect.core.mirrors.rows import MirrorBatch, MirroredRow, MirroredTable, RowKey
from recollect.store.mirrors.generations import Generation


class MemoryMirror:
    """What every mirror can do, without an engine."""

    name = "opensearch"
    tables = (MirroredTable.MEMORIES, MirroredTable.ENTITIES, MirroredTable.FACTS)

    def __init__(self) -> None:
        self.rows: dict[int, dict[RowKey, MirroredRow]] = {}
        self.positions: dict[int, int] = {}
        self.beats = 0

    async def create(self, generation: Generation) -> None:
        """Make an empty place."""

    async def switch(self, generation: Generation) -> None:
        """Nobody else reads it."""

    async def remove(self, number: int) -> None:
        """There is one filling."""

    async def apply(self, generation: Generation, batches: Sequence[MirrorBatch]) -> None:
        """Hold what is present and not what is gone."""
        for batch in batches:
            held = self.rows.setdefault(batch.scope_id, {})
            held |= {row.key: row for row in batch.present}
            for key in batch.gone:
                held.pop(key, None)
            self.positions[batch.scope_id] = max(batch.position, self.positions.get(batch.scope_id, 0))

    async def read_positions(self, generation: Generation, scopes: Sequence[int]) -> dict[int, int]:
        """Say how far it has followed."""
        return {each: self.positions[each] for each in scopes if each in self.positions}

    async def find_held(self, generation: Generation, scope_id: int, keys: Sequence[RowKey]) -> set[RowKey]:
        """Find which rows are still there."""
        return {*keys} & self.rows.get(scope_id, {}).keys()

    async def walk(self, generation: Generation, scope_id: int) -> AsyncIterator[Sequence[MirroredRow]]:
        """Read all of a scope."""
        yield [*self.rows.get(scope_id, {}).values()]

    async def search_mirror(self, generation: Generation, question: MirrorQuestion) -> MirrorHits:
        """Propose nothing."""
        return MirrorHits((), self.positions.get(question.scope_id, 0))

    async def store_write_count(self, generation: Generation, beats: int) -> None:
        """Note how many times it was written to."""
        self.beats = beats

    async def read_beats(self, generation: Generation) -> int:
        """Say how many times it was written to."""
        return self.beats

    async def close_mirror(self) -> None:
        """There are no connections."""
