"""What is remembered in one scope: write it, read it, forget it, and let it fade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.mind.access import Access
from recollect.models.memories import FadedPage, Fading, FadingRules, Judgement, Memory, NewMemory, Page, Receipt
from recollect.models.recall import Times
from recollect.models.service import Right
from recollect.verbs.memories.fade import explain, fade, list_faded, restore
from recollect.verbs.memories.load import load
from recollect.verbs.memories.read import browse, forget, get
from recollect.verbs.memories.remember import as_new, remember


class MemoryVerbs:
    """What one caller does with the memories of one scope."""

    __slots__ = ()
    access: Access

    async def remember(
        self, memories: str | NewMemory | Sequence[str | NewMemory], *, idempotency_key: str = ""
    ) -> list[Receipt]:
        """Store one or many memories in one transaction."""
        async with self.access.asking(Right.WRITE) as access:
            return await remember(access.parts, access.caller, access.scope, as_new(memories), idempotency_key)

    async def load(self, memories: Sequence[NewMemory], *, idempotency_key: str = "") -> list[UUID]:
        """Load any number of memories in one transaction by COPY; vectors that are not given follow by a job."""
        access = self.access
        access.require(Right.WRITE)
        return await load(access.parts, access.caller, access.scope, memories, idempotency_key)

    async def get(self, memory_id: UUID) -> Memory:
        """Fetch one memory, in whichever version has this id."""
        async with self.access.asking(Right.READ) as access:
            return await get(access.parts, access.scope, memory_id)

    async def browse(
        self, cursor: UUID | None = None, limit: int = 50, *, as_of: datetime | None = None, at: datetime | None = None
    ) -> Page:
        """Fetch one page of memories, oldest first; as they were believed as of a moment, or true at one."""
        async with self.access.asking(Right.READ) as access:
            return await browse(access.parts, access.scope, cursor, limit, Times(as_of, at))

    async def forget(self, ids: Sequence[UUID]) -> list[UUID]:
        """Delete memories and all that was derived from them."""
        async with self.access.asking(Right.WRITE) as access:
            return await forget(access.parts, access.scope, ids)


@dataclass(frozen=True, slots=True)
class FadingView:
    """One caller's view of what fades in one scope."""

    access: Access

    async def fade(
        self,
        rules: FadingRules = FadingRules(),  # noqa: B008 - a frozen value
        *,
        dry_run: bool = False,
        cursor: UUID | None = None,
    ) -> Fading:
        """Let memories fade that may, or only say which would; where the time is over, the cursor says how to go on."""
        async with self.access.asking(Right.READ if dry_run else Right.WRITE) as access:
            return await fade(access.parts, access.scope, rules, dry_run=dry_run, cursor=cursor)

    async def explain(
        self,
        ids: Sequence[UUID],
        rules: FadingRules = FadingRules(),  # noqa: B008 - a frozen value
    ) -> list[Judgement]:
        """Say of memories whether they would fade now, and why; what does not take part in recall is left out."""
        async with self.access.asking(Right.READ) as access:
            return await explain(access.parts, access.scope, ids, rules)

    async def faded(self, cursor: UUID | None = None, limit: int = 50) -> FadedPage:
        """Fetch one page of what has faded, the oldest memory first, each with its reason."""
        async with self.access.asking(Right.READ) as access:
            return await list_faded(access.parts, access.scope, cursor, limit)

    async def restore(self, ids: Sequence[UUID]) -> list[UUID]:
        """Bring faded memories back as they were, and tell which; from now on they may fade anew."""
        async with self.access.asking(Right.WRITE) as access:
            return await restore(access.parts, access.scope, ids)
