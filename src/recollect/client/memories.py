"""The memories of one scope: write, read, forget and fade them: on a server.

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
        FadeDecision,
        FadedPage,
        FadeReport,
        FadingRules,
        IfNew,
        Memory,
        MemoryOrder,
        MemoryPage,
        MemoryUpdate,
        NewMemory,
        Receipt,
        UpdateResult,
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
        """Store one or more memories in one transaction, optionally skipping duplicates."""
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

    async def get(self, memory_id: UUID | str) -> Memory:
        """Fetch one memory, in the version of this ID; a short ID, as prompts show it, must be unique in the scope."""
        answer: Memory = await self.call("get", memory_id=memory_id)
        return answer

    async def get_many(self, ids: Sequence[UUID]) -> list[Memory]:
        """Get up to 200 memories by ID. Unknown IDs are omitted."""
        answer: list[Memory] = await self.call("get_many", ids=ids)
        return answer

    async def evidence(self, memory_id: UUID, depth: int = 3, limit: int = 200) -> EvidenceWalk:
        """Get the sources of a memory and the memories derived from it."""
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
    ) -> MemoryPage:
        """List memories that match a filter, oldest or newest first."""
        answer: MemoryPage = await self.call("browse", cursor=cursor, limit=limit, only=only, order=order, words=words)
        return answer

    async def revise(self, memory_id: UUID, revision: MemoryUpdate) -> UpdateResult:
        """Update a memory. The old version is kept; derived memories are derived again."""
        answer: UpdateResult = await self.call("revise", memory_id=memory_id, revision=revision)
        return answer

    async def versions(self, memory_id: UUID) -> list[Memory]:
        """List all versions of a memory, oldest first. Accepts the ID of any version."""
        answer: list[Memory] = await self.call("versions", memory_id=memory_id)
        return answer

    async def pin(self, ids: Sequence[UUID], *, pinned: bool = True) -> list[UUID]:
        """Pin or unpin memories. Returns the IDs that exist."""
        answer: list[UUID] = await self.call("pin", ids=ids, pinned=pinned)
        return answer

    async def forget(
        self, ids: Sequence[UUID] = (), only: Filter | None = None, *, dry_run: bool = False
    ) -> list[UUID]:
        """Permanently delete memories by ID or filter, with everything derived from them. `dry_run` only lists them."""
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
    ) -> FadeReport:
        """Fade decayed and expired memories, or list what would fade. Returns a cursor if time runs out."""
        answer: FadeReport = await self.call("fading.fade", rules=rules, dry_run=dry_run, cursor=cursor)
        return answer

    async def explain(
        self,
        ids: Sequence[UUID],
        rules: FadingRules | None = None,
    ) -> list[FadeDecision]:
        """Explain for each memory whether it would fade now."""
        answer: list[FadeDecision] = await self.call("fading.explain", ids=ids, rules=rules)
        return answer

    async def faded(self, cursor: UUID | None = None, limit: int = 50) -> FadedPage:
        """List faded memories with reasons, oldest first."""
        answer: FadedPage = await self.call("fading.faded", cursor=cursor, limit=limit)
        return answer

    async def revive(self, ids: Sequence[UUID]) -> list[UUID]:
        """Restore faded memories."""
        answer: list[UUID] = await self.call("fading.revive", ids=ids)
        return answer
