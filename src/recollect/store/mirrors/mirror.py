"""What every mirror can do, whichever engine it is: apply changes, propose ids, tell what it holds, be built anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from recollect.core.mirrors.questions import MirrorQuestion, Proposed
from recollect.core.mirrors.rows import Batch, MirroredRow, MirroredTable, RowKey
from recollect.errors import MirrorError
from recollect.store.mirrors.generations import Generation


class Mirror(Protocol):
    """A copy of a part of the record in another engine, which is asked for ids alone."""

    name: str
    tables: Collection[MirroredTable]
    """What it holds."""

    async def create(self, generation: Generation) -> None:
        """Make an empty place for a generation; one that is there stays as it is."""
        ...

    async def switch(self, generation: Generation) -> None:
        """Let others who read the engine see this generation, and no other of its server."""
        ...

    async def remove(self, generation: Generation) -> None:
        """Remove a generation with all that it holds."""
        ...

    async def apply(self, generation: Generation, batches: Sequence[Batch]) -> None:
        """Hold what is present and not what is gone, unless something newer is held; searches see it afterwards."""
        ...

    async def read_positions(self, generation: Generation, scopes: Sequence[int]) -> dict[int, int]:
        """Say how far it has followed scopes by its own account; those that it does not know are absent."""
        ...

    async def find_held(self, generation: Generation, scope_id: int, keys: Sequence[RowKey]) -> set[RowKey]:
        """Find which of these rows a search could still come upon."""
        ...

    def walk(self, generation: Generation, scope_id: int) -> AsyncIterator[Sequence[MirroredRow]]:
        """Read all that it holds of a scope, a page at a time; a part that is not there is an error."""
        ...

    async def ask(self, generation: Generation, question: MirrorQuestion) -> Proposed:
        """Propose ids; a partial answer is an error."""
        ...

    async def note_beat(self, generation: Generation, beats: int) -> None:
        """Note how many times it was written to."""
        ...

    async def read_beats(self, generation: Generation) -> int:
        """Say how many times it was written to, by its own account; 0 if it does not know."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


@contextmanager
def told_as_ours(name: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn an engine's errors into ours, without their texts, which may quote content."""
    try:
        yield
    except kinds as problem:
        raise MirrorError(f"The mirror {name} is not available ({describe(problem)}).") from None


def describe(problem: Exception) -> str:
    """Name an error by its class, its code, and the class of its cause, if it has them."""
    code = getattr(problem, "status_code", None) or getattr(problem, "code", None)
    cause = getattr(problem, "info", None)
    told = [type(problem).__name__, "" if code == "N/A" else str(code or "")]
    return " ".join(filter(None, [*told, type(cause).__name__ if isinstance(cause, Exception) else ""]))
