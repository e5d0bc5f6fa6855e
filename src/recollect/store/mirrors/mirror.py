"""The interface of all mirrors: apply changes, propose IDs, list their rows, be rebuilt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from recollect.core.mirrors.questions import MirrorHits, MirrorQuestion
from recollect.core.mirrors.rows import MirrorBatch, MirroredRow, MirroredTable, RowKey
from recollect.errors import MirrorError
from recollect.store.mirrors.generations import Generation


class Mirror(Protocol):
    """A copy of a part of the record in another engine, which only returns IDs."""

    name: str
    tables: Collection[MirroredTable]
    """The mirrored tables."""

    async def create(self, generation: Generation) -> None:
        """Create an empty place for a generation; an existing one is not changed."""
        ...

    async def switch(self, generation: Generation) -> None:
        """Show other readers of the engine this generation, and no other of its server."""
        ...

    async def remove(self, generation: Generation) -> None:
        """Remove a generation with all its data."""
        ...

    async def apply(self, generation: Generation, batches: Sequence[MirrorBatch]) -> None:
        """Store present rows and delete gone ones, unless a newer state is stored; searches see it afterwards."""
        ...

    async def read_positions(self, generation: Generation, scopes: Sequence[int]) -> dict[int, int]:
        """Return how far the engine has followed scopes; unknown scopes are absent."""
        ...

    async def find_held(self, generation: Generation, scope_id: int, keys: Sequence[RowKey]) -> set[RowKey]:
        """Find which of these rows a search could still return."""
        ...

    def walk(self, generation: Generation, scope_id: int) -> AsyncIterator[Sequence[MirroredRow]]:
        """Read all rows of a scope, page by page; a missing part is an error."""
        ...

    async def search_mirror(self, generation: Generation, question: MirrorQuestion) -> MirrorHits:
        """Propose IDs; a partial answer is an error."""
        ...

    async def store_write_count(self, generation: Generation, beats: int) -> None:
        """Store how many times it was written to."""
        ...

    async def read_beats(self, generation: Generation) -> int:
        """Return how many times the engine says it was written to; 0 if unknown."""
        ...

    async def close_mirror(self) -> None:
        """Close the connections."""
        ...


@contextmanager
def translate_engine_errors(name: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn an engine's errors into ours, without their texts, which may quote content."""
    try:
        yield
    except kinds as problem:
        raise MirrorError(f"The mirror {name} is not available ({describe_mirror_error(problem)}).") from None


def describe_mirror_error(problem: Exception) -> str:
    """Describe an error by its class, its code, and the class of its cause, if it has them."""
    code = getattr(problem, "status_code", None) or getattr(problem, "code", None)
    cause = getattr(problem, "info", None)
    told = [type(problem).__name__, "" if code == "N/A" else str(code or "")]
    return " ".join(filter(None, [*told, type(cause).__name__ if isinstance(cause, Exception) else ""]))
