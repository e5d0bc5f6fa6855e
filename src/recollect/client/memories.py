"""What is remembered in one scope: write it, read it, forget it, and let it fade: on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from recollect.client.calls import RemoteView
from recollect.loading import load

if TYPE_CHECKING:
    from recollect.models.memories import (
        EvidenceWalk,
        FadedPage,
        Fading,
        FadingRules,
        IfNew,
        Judgement,
        Memory,
        MemoryOrder,
        NewMemory,
        Page,
        Receipt,
        Revised,
        Revision,
    )
    from recollect.models.recall import Filter


class RemoteMemories(RemoteView):
    """What one caller does with the memories of one scope, on a server."""

    __slots__ = ()

    async def remember(
        self,
        memories: str | NewMemory | Sequence[str | NewMemory],
        *,
        idempotency_key: str = "",
        if_new: IfNew = "",
    ) -> list[Receipt]:
        """Store one or many memories in one transaction; or only those that are not known yet."""
        answer: list[Receipt] = await self.call(
            "remember", memories=memories, idempotency_key=idempotency_key, if_new=if_new
        )
        return answer

    async def load(self, memories: Sequence[NewMemory], *, idempotency_key: str = "") -> list[UUID]:
        """Load any number of memories in parts, each in one transaction; vectors that are not given follow by a job.

        It is not one transaction: where a part fails, those before it are stored, and the error says how many memories
        that are. Load the same again under the same key, and they are not stored twice.
        """
        answer: list[UUID] = await load("recollect.client.special").load(
            self, memories, idempotency_key=idempotency_key
        )
        return answer

    async def get(self, memory_id: UUID) -> Memory:
        """Fetch one memory, in the version of this id."""
        answer: Memory = await self.call("get", memory_id=memory_id)
        return answer

    async def get_many(self, ids: Sequence[UUID]) -> list[Memory]:
        """Fetch up to 200 memories in the order of their ids, in the versions of these ids; unknown ones are absent."""
        answer: list[Memory] = await self.call("get_many", ids=ids)
        return answer

    async def evidence(self, memory_id: UUID, depth: int = 3, limit: int = 200) -> EvidenceWalk:
        """Follow the evidence of a memory both ways: what it was made from, and what was made from it."""
        answer: EvidenceWalk = await self.call("evidence", memory_id=memory_id, depth=depth, limit=limit)
        return answer

    async def browse(
        self,
        cursor: UUID | None = None,
        limit: int = 50,
        only: Filter | None = None,
        *,
        order: MemoryOrder | str = "oldest",
        words: str = "",
    ) -> Page:
        """Fetch one page of the memories that a filter admits, oldest or newest first; only with these words."""
        answer: Page = await self.call("browse", cursor=cursor, limit=limit, only=only, order=order, words=words)
        return answer

    async def revise(self, memory_id: UUID, revision: Revision) -> Revised:
        """Add a version of a memory in place of the current one; what was derived from that is derived again."""
        answer: Revised = await self.call("revise", memory_id=memory_id, revision=revision)
        return answer

    async def versions(self, memory_id: UUID) -> list[Memory]:
        """Fetch every version of a memory, oldest first, also contested ones; the id of any of them names it."""
        answer: list[Memory] = await self.call("versions", memory_id=memory_id)
        return answer

    async def pin(self, ids: Sequence[UUID], *, pinned: bool = True) -> list[UUID]:
        """Let every context show these memories, or stop it; return those that exist."""
        answer: list[UUID] = await self.call("pin", ids=ids, pinned=pinned)
        return answer

    async def forget(
        self, ids: Sequence[UUID] = (), only: Filter | None = None, *, dry_run: bool = False
    ) -> list[UUID]:
        """Delete memories, or all that a filter admits, with all that was derived from them; or only list them."""
        answer: list[UUID] = await self.call("forget", ids=ids, only=only, dry_run=dry_run)
        return answer


class RemoteFading(RemoteView):
    """What fades in one scope, on a server."""

    __slots__ = ()

    async def fade(
        self,
        rules: FadingRules | None = None,
        *,
        dry_run: bool = False,
        cursor: UUID | None = None,
    ) -> Fading:
        """Let memories fade that may, or only say which would; if the time is over, the cursor says how to continue."""
        answer: Fading = await self.call("fading.fade", rules=rules, dry_run=dry_run, cursor=cursor)
        return answer

    async def explain(
        self,
        ids: Sequence[UUID],
        rules: FadingRules | None = None,
    ) -> list[Judgement]:
        """Say of memories whether they would fade now, and why; what does not take part in recall is left out."""
        answer: list[Judgement] = await self.call("fading.explain", ids=ids, rules=rules)
        return answer

    async def faded(self, cursor: UUID | None = None, limit: int = 50) -> FadedPage:
        """Fetch one page of what has faded, the oldest memory first, each with its reason."""
        answer: FadedPage = await self.call("fading.faded", cursor=cursor, limit=limit)
        return answer

    async def revive(self, ids: Sequence[UUID]) -> list[UUID]:
        """Restore faded memories, and return which; from now on they may fade again."""
        answer: list[UUID] = await self.call("fading.revive", ids=ids)
        return answer
