"""Everything remembered in one scope, as one object: a method per verb, a right and a deadline for each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from uuid import UUID

from recollect.errors import ForbiddenError, UnavailableError
from recollect.models import Caller, Cue, Memory, NewMemory, Page, Receipt, Recollection, Right, Scope
from recollect.store.scopes import Place, locate
from recollect.verbs.browse import browse, get
from recollect.verbs.forget import forget
from recollect.verbs.load import load
from recollect.verbs.parts import Parts
from recollect.verbs.recall import recall
from recollect.verbs.remember import remember


@dataclass(frozen=True, slots=True)
class Mind:
    """One caller's view of one scope."""

    parts: Parts
    caller: Caller
    scope: Scope
    deadline_seconds: float
    located: list[Place] = field(default_factory=list[Place])
    """Where the scope lay when the caller was admitted: good for one recall, if nothing was written before it."""

    async def remember(
        self, memories: str | NewMemory | Sequence[str | NewMemory], *, idempotency_key: str = ""
    ) -> list[Receipt]:
        """Store one or many memories in one transaction."""
        async with self._asking(Right.WRITE):
            self.located.clear()
            return await remember(self.parts, self.caller, self.scope, as_new(memories), idempotency_key)

    async def load(self, memories: Sequence[NewMemory]) -> list[UUID]:
        """Load any number of memories in one transaction by COPY; vectors that are not given follow by a job."""
        self._require(Right.WRITE)
        self.located.clear()
        return await load(self.parts, self.caller, self.scope, memories)

    async def recall(self, cue: str | Cue, *, limit: int | None = None) -> Recollection:
        """Give back what a cue reminds of, best first."""
        asked = Cue(cue) if isinstance(cue, str) else cue
        asked = asked if limit is None else replace(asked, limit=limit)
        async with self._asking(Right.READ):
            place = self.located.pop() if self.located else await locate(self.parts.database, self.scope)
            return await recall(self.parts, self.scope, asked, place)

    async def get(self, memory_id: UUID) -> Memory:
        """Fetch one memory."""
        async with self._asking(Right.READ):
            return await get(self.parts, self.scope, memory_id)

    async def browse(self, cursor: UUID | None = None, limit: int = 50) -> Page:
        """Fetch one page of memories, oldest first."""
        async with self._asking(Right.READ):
            return await browse(self.parts, self.scope, cursor, limit)

    async def forget(self, ids: Sequence[UUID]) -> list[UUID]:
        """Delete memories and all that was derived from them."""
        async with self._asking(Right.WRITE):
            return await forget(self.parts, self.scope, ids)

    @asynccontextmanager
    async def _asking(self, right: Right) -> AsyncIterator[None]:
        self._require(right)
        async with within(self.deadline_seconds):
            yield

    def _require(self, right: Right) -> None:
        if right not in self.caller.rights:
            raise ForbiddenError(f"This API key lacks the right `{right}`.")


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """End work that takes too long, with an error that a caller can act on."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise UnavailableError(f"No answer within {seconds:g} seconds; try again.") from None


def as_new(memories: str | NewMemory | Sequence[str | NewMemory]) -> list[NewMemory]:
    """Accept a plain text, one memory, or many of either."""
    many = [memories] if isinstance(memories, str | NewMemory) else memories
    return [NewMemory(memory) if isinstance(memory, str) else memory for memory in many]
