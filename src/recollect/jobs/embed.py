"""Give memories the vectors that were not there in time, and fill a new embedding space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.terms import indexed_text
from recollect.errors import EmbedderError
from recollect.llm.embedder import Embedder
from recollect.models import EmbeddingSpace
from recollect.store import scopes, spaces
from recollect.store.db import Database
from recollect.store.spaces import Unembedded

BEGINNING = UUID(int=0)
PLAIN_WORD = "memory"
Embedded: TypeAlias = tuple[Sequence[Unembedded], NDArray[np.float32]]
NO_REPORT: Callable[[int], None] = lambda _: None  # noqa: E731 - a constant, not a function of ours


async def embed_pending(database: Database, embedder: Embedder, batch: int, scope_id: int) -> int:
    """Embed everything in a scope that waits for a vector; doing it twice does no harm."""
    space = await active_space(database)
    if space is None or space.model != embedder.model:
        raise EmbedderError("This worker's embedder is not the active space's model; another worker's may be.")
    done, refused, after = 0, 0, BEGINNING
    while waiting := await spaces.list_pending(database, scope_id, after, batch):
        after = waiting[-1].id
        for part, rows in await embed_parts(embedder, waiting):
            await spaces.settle_pending(database, space.id, scope_id, [memory.id for memory in part], rows)
            done += len(part)
            refused -= len(part)
        refused += len(waiting)
    if refused:
        raise EmbedderError(f"The embedder refused {refused} memories of this scope.", lasting=True)
    return done


async def embed_parts(embedder: Embedder, batch: Sequence[Unembedded]) -> list[Embedded]:
    """Embed a batch; where its texts are at fault, halve it until only those that cannot be embedded are left out."""
    try:
        rows = await embedder.embed([indexed_text(memory.speaker, memory.content) for memory in batch])
    except EmbedderError as problem:
        if not problem.lasting:
            # Some servers answer a text they cannot take like an outage; an outage refuses a plain word too.
            await embedder.embed([PLAIN_WORD])
        if len(batch) == 1:
            return []
        middle = len(batch) // 2
        return [*await embed_parts(embedder, batch[:middle]), *await embed_parts(embedder, batch[middle:])]
    return [(batch, rows)]


async def fill_space(
    database: Database, embedder: Embedder, batch: int, space: EmbeddingSpace, report: Callable[[int], None] = NO_REPORT
) -> int:
    """Embed every memory that a space lacks; a space still being filled goes on from where it stopped."""
    space_id = space.id
    after = await spaces.read_fill_cursor(database, space_id) if space.state == "filling" else (0, BEGINNING)
    done = 0
    for tenant_id in await scopes.list_tenants(database):
        if tenant_id < spaces.tenant_of(after[0]):
            continue
        while missing := await spaces.list_unfilled(database, tenant_id, space_id, after, batch):
            for part, rows in await embed_parts(embedder, missing):
                await spaces.fill(database, space_id, part, rows)
            after = (missing[-1].scope_id, missing[-1].id)
            done += len(missing)
            report(done)
    return done


async def active_space(database: Database) -> EmbeddingSpace | None:
    """Find the space that recall reads."""
    listed = await spaces.list_spaces(database)
    return next((space for space, _ in listed if space.state == "active"), None)
