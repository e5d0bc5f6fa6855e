"""Embed memories and entities that have no vector yet, and fill a new embedding space."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.service.numbers import tenant_of
from recollect.core.text.terms import embedded_text
from recollect.errors import EmbedderError
from recollect.llm.embedder import Embedder, serves, shares_vector
from recollect.models.service import EmbeddingSpace
from recollect.store.database.pool import Database
from recollect.store.knowledge import entity_vectors
from recollect.store.memories import embeddings
from recollect.store.memories.embeddings import PendingEmbedding
from recollect.store.service import maintenance
from recollect.store.service.scopes import BEGINNING, prevent_archiving

PLAIN_WORD = "memory"
Embedded: TypeAlias = tuple[Sequence[PendingEmbedding], NDArray[np.float32]]
ReadVectors: TypeAlias = Callable[
    [Database, EmbeddingSpace, Sequence[PendingEmbedding]], Awaitable[dict[UUID, NDArray[np.float32]]]
]
"""Reads the existing vectors of memories or entities in a space."""


@dataclass(frozen=True, slots=True)
class FillResult:
    """The result of a fill: memories embedded, and memories whose text the model refuses."""

    done: int
    refused: int


NO_REPORT: Callable[[int], None] = lambda _: None  # noqa: E731 - a constant, not a function of ours


async def embed_pending(
    database: Database, embedder: Embedder, batch: int, scope_id: int, report: Callable[[int], None] = NO_REPORT
) -> int:
    """Embed all memories and entities of a scope that wait for a vector; repeating it is harmless."""
    space = await active_space(database)
    if space is None or not serves(embedder, space):
        raise EmbedderError("This worker's embedder does not match the active embedding space.")
    done, refused, after = 0, 0, BEGINNING
    while waiting := await embeddings.list_pending(database, scope_id, after, batch):
        after = waiting[-1].id
        embedded = await embed_parts(embedder, waiting)
        for part, rows in embedded:
            await embeddings.store_pending(database, space, part, rows)
        done += sum(len(part) for part, _ in embedded)
        report(done)
        refused += len(waiting) - sum(len(part) for part, _ in embedded)
    entities = await embed_entities(database, embedder, batch, scope_id, space)
    report(done + entities.done)
    if refused or entities.refused:
        what = f"{refused} memories" if refused else f"{entities.refused} entities"
        raise EmbedderError(f"The embedding model rejected {what} of this scope.", lasting=True)
    return done + entities.done


async def embed_entities(
    database: Database, embedder: Embedder, batch: int, scope_id: int, space: EmbeddingSpace
) -> FillResult:
    """Embed the entities of a scope that wait for a vector."""
    done, refused, after = 0, 0, BEGINNING
    while waiting := await entity_vectors.list_pending(database, scope_id, after, batch):
        after = waiting[-1].id
        count = await store_entities(database, space, await embed_parts(embedder, waiting))
        done, refused = done + count, refused + len(waiting) - count
    return FillResult(done, refused)


async def store_entities(database: Database, space: EmbeddingSpace, embedded: Sequence[Embedded]) -> int:
    """Store vectors of entities; return their number."""
    for part, rows in embedded:
        await entity_vectors.store_entity_vectors(database, space, part, rows)
    return sum(len(part) for part, _ in embedded)


async def embed_parts(embedder: Embedder, batch: Sequence[PendingEmbedding]) -> list[Embedded]:
    """Embed a batch; if the model refuses its texts, halve it until only those are left out."""
    try:
        rows = await embedder.embed([embedded_text(memory, memory.before) for memory in batch])
    except EmbedderError:
        await check_embedder(embedder)
        if len(batch) == 1:
            # The model may refuse the previous message.
            alone = replace(batch[0], before="")
            return [] if alone == batch[0] else await embed_parts(embedder, [alone])
        middle = len(batch) // 2
        return [*await embed_parts(embedder, batch[:middle]), *await embed_parts(embedder, batch[middle:])]
    return [(batch, rows)]


async def check_embedder(embedder: Embedder) -> None:
    """Check that the model is available and does not refuse all texts; raise EmbedderError if not."""
    try:
        await embedder.embed([PLAIN_WORD])
    except EmbedderError as problem:
        # An operator can fix it, so the work waits instead of being given up.
        raise EmbedderError(str(problem)) from None


@dataclass(frozen=True, slots=True)
class VectorSource:
    """The sources of vectors for a fill: an embedder, and the active space if it has the same vectors."""

    database: Database
    embedder: Embedder
    active: EmbeddingSpace | None

    async def embed(self, read: ReadVectors, missing: Sequence[PendingEmbedding]) -> list[Embedded]:
        """Copy existing vectors, and embed the rest."""
        shared = [each for each in missing if self._is_shared(each)]
        if self.active is None or not shared:
            return await embed_parts(self.embedder, missing)
        known = await read(self.database, self.active, shared)
        rest = [each for each in missing if each.id not in known]
        for part, rows in await embed_parts(self.embedder, rest) if rest else ():
            known |= {each.id: row for each, row in zip(part, rows, strict=True)}
        # All together and in order: an interrupted fill continues after the last one.
        done = [each for each in missing if each.id in known]
        return [(done, np.stack([known[each.id] for each in done]))] if done else []

    def _is_shared(self, each: PendingEmbedding) -> bool:
        if self.active is None or self.active.dimensions != self.embedder.dimensions:
            return False
        return shares_vector(self.embedder.model, self.active.model, embedded_text(each, each.before))


async def fill_space(
    database: Database, embedder: Embedder, batch: int, space: EmbeddingSpace, report: Callable[[int], None] = NO_REPORT
) -> FillResult:
    """Fill a space with all vectors that it lacks; an interrupted fill continues where it stopped."""
    active = await active_space(database)
    source = VectorSource(database, embedder, None if active is None or active.id == space.id else active)
    after = await embeddings.read_fill_cursor(database, space.id) if space.state == "filling" else (0, BEGINNING)
    filled = FillResult(0, 0)
    async for scope_ids in maintenance.walk_due(database, "fill", after[0] - 1):
        for tenant_id in dict.fromkeys(map(tenant_of, scope_ids)):
            while missing := await embeddings.list_unfilled(database, tenant_id, space.id, after, batch):
                embedded = await source.embed(embeddings.read_held, missing)
                for part, rows in embedded:
                    await prevent_archiving(database, partial(embeddings.fill, database, space, part, rows))
                count = sum(len(part) for part, _ in embedded)
                filled = FillResult(filled.done + count, filled.refused + len(missing) - count)
                after = (missing[-1].scope_id, missing[-1].id)
                report(filled.done)
            filled = await fill_entities(source, batch, space, tenant_id, filled)
            report(filled.done)
    return filled


async def fill_entities(
    source: VectorSource, batch: int, space: EmbeddingSpace, tenant_id: int, filled: FillResult
) -> FillResult:
    """Fill a space with the missing vectors of a tenant's entities."""
    after = (0, BEGINNING)
    while missing := await entity_vectors.list_unfilled(source.database, tenant_id, space.id, after, batch):
        after = (missing[-1].scope_id, missing[-1].id)
        embedded = await source.embed(entity_vectors.read_held, missing)
        storing = partial(store_entities, source.database, space, embedded)
        count = await prevent_archiving(source.database, storing)
        filled = FillResult(filled.done + count, filled.refused + len(missing) - count)
    return filled


async def active_space(database: Database) -> EmbeddingSpace | None:
    """Find the embedding space that recall reads."""
    listed = await embeddings.list_spaces(database)
    return next((space for space, _ in listed if space.state == "active"), None)
