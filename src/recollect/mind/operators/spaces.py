"""Embedding spaces, as the owner of the tables looks after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from recollect.errors import SetupError
from recollect.jobs.embed import active_space, fill_space
from recollect.llm.build import build_local, choose_local
from recollect.llm.embedder import CREDITS, LOCAL, Embedder
from recollect.models.service import EmbeddingSpace
from recollect.settings import Settings
from recollect.store.database.ownership import require_owner
from recollect.store.memories import embeddings, spaces
from recollect.verbs.dependencies import Dependencies


@dataclass(frozen=True, slots=True)
class EmbeddingSpaces:
    """Where an operator lists, changes, drops, compacts and indexes the vectors of models."""

    parts: Dependencies
    owner: str
    """The DSN of the owner of the tables, which all but a list need."""
    settings: Settings

    async def list(self) -> Sequence[tuple[EmbeddingSpace, int]]:
        """List the spaces with the number of vectors that fills wrote."""
        return await embeddings.list_spaces(self.parts.database)

    def attribution(self, space: EmbeddingSpace) -> str:
        """Return the attribution of a space's model if the license requires one; otherwise an empty text."""
        return CREDITS.get(space.model, "")

    async def change(self, report: Callable[[int], None]) -> tuple[EmbeddingSpace, int]:
        """Fill a space for the configured embedder, switch recall to it, and embed memories written during the change.

        A local embedder is the one that a new database would have: it reads more, if more is installed. Return the
        space, and how many memories it lacks because the model cannot take their text. Open Recollect anew afterwards.
        """
        embedder = self.parts.embedder
        if embedder is None:
            raise SetupError("No embedder is configured: set RECOLLECT_EMBEDDER.")
        wanted = choose_local(self.settings) if embedder.model in LOCAL else None
        if wanted is None or wanted == embedder.model:
            return await self._change_to(embedder, report)
        other = build_local(wanted)
        try:
            return await self._change_to(other, report)
        finally:
            await other.close()

    async def _change_to(self, embedder: Embedder, report: Callable[[int], None]) -> tuple[EmbeddingSpace, int]:
        owner, database, batch = require_owner(self.owner), self.parts.database, self.settings.embedding.max_batch_size
        space = await spaces.ensure_space(owner, embedder.model, embedder.dimensions)
        filled = await fill_space(database, embedder, batch, space, report)
        if space.state == "active":
            return space, filled.refused
        await spaces.switch_space(owner, space.id)
        active = replace(space, state="active")
        return active, (await fill_space(database, embedder, batch, active, report)).refused

    async def ensure(self, model: str, dimensions: int) -> EmbeddingSpace:
        """Return a space that stores foreign vectors exactly; recall does not switch to it automatically."""
        return await spaces.ensure_space(
            require_owner(self.owner), model, dimensions, precision="single", activate=False
        )

    async def drop(self, space_id: int) -> None:
        """Drop a retired space with all its vectors."""
        await spaces.drop_space(require_owner(self.owner), space_id)

    async def compact(self, space_id: int) -> tuple[int, int]:
        """Build the key of a space's vectors anew, which halves it; return its bytes before and after."""
        return await spaces.compact_space(require_owner(self.owner), space_id)

    async def index_large_scopes(self, at_least: int) -> Sequence[int]:
        """Create an approximate index for scopes beyond a size; return the scopes' numbers."""
        space = await active_space(self.parts.database)
        if space is None:
            raise SetupError("There is no active embedding space to index.")
        return await spaces.index_large_scopes(require_owner(self.owner), space, at_least)
