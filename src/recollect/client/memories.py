"""The memories of one scope: write, read, forget and fade them: on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from recollect.client.calls import RemoteView
from recollect.loading import load

if TYPE_CHECKING:
    from recollect.models.filters import FilterLike
    from recollect.models.memories import (
        JSON,
        Embedding,
        EvidenceWalk,
        FadeReport,
        FadingRules,
        IfNew,
        Memory,
        MemoryOrder,
        MemoryPage,
        NewMemory,
        Receipt,
        UpdateResult,
    )


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

    async def get(self, memory_id: UUID | str, conversation: str = "") -> Memory:
        """Get a memory, in the version of this ID. Accepts short IDs, also those that a conversation was shown."""
        answer: Memory = await self.call("get", memory_id=memory_id, conversation=conversation)
        return answer

    async def evidence(self, memory_id: UUID, depth: int = 3, limit: int = 200) -> EvidenceWalk:
        """Get the sources of a memory, the memories derived from it, and its versions."""
        answer: EvidenceWalk = await self.call("evidence", memory_id=memory_id, depth=depth, limit=limit)
        return answer

    async def update(
        self,
        memory_id: UUID,
        *,
        content: str | None = None,
        importance: float | None = None,
        speaker: str | None = None,
        keywords: Sequence[str] | None = None,
        occurred_at: datetime | None = None,
        expires_at: datetime | None = None,
        embedding: Embedding | None = None,
        embedding_text: str | None = None,
        metadata: Mapping[str, JSON] | None = None,
        topic: str | None = None,
        related_topics: Sequence[str] | None = None,
        pinned: bool | None = None,
    ) -> UpdateResult:
        """Update a memory. The old version is kept unless only `pinned` changes; derived memories are derived again."""
        answer: UpdateResult = await self.call(
            "update",
            memory_id=memory_id,
            content=content,
            importance=importance,
            speaker=speaker,
            keywords=keywords,
            occurred_at=occurred_at,
            expires_at=expires_at,
            embedding=embedding,
            embedding_text=embedding_text,
            metadata=metadata,
            topic=topic,
            related_topics=related_topics,
            pinned=pinned,
        )
        return answer

    async def forget(
        self, ids: Sequence[UUID] = (), filter: FilterLike | None = None, *, dry_run: bool = False
    ) -> list[UUID]:
        """Permanently delete memories by ID or filter, with everything derived from them. `dry_run` only lists them."""
        answer: list[UUID] = await self.call("forget", ids=ids, filter=filter, dry_run=dry_run)
        return answer

    async def fade(
        self,
        rules: FadingRules | None = None,
        *,
        ids: Sequence[UUID] | None = None,
        dry_run: bool = False,
        cursor: UUID | None = None,
    ) -> FadeReport:
        """Fade decayed and expired memories, or only list them. With `ids`, judge these and give each reason."""
        answer: FadeReport = await self.call("fade", rules=rules, ids=ids, dry_run=dry_run, cursor=cursor)
        return answer

    async def restore(self, ids: Sequence[UUID]) -> list[UUID]:
        """Restore faded memories."""
        answer: list[UUID] = await self.call("restore", ids=ids)
        return answer

    async def list(
        self,
        *,
        filter: FilterLike | None = None,
        ids: Sequence[UUID] | None = None,
        words: str = "",
        keyword: str = "",
        order: MemoryOrder | str = "oldest",
        limit: int = 50,
        cursor: UUID | None = None,
    ) -> MemoryPage:
        """List the memories that match a filter, or up to 200 by ID. Unknown IDs are omitted.

        `keyword` restricts it to memories in recall that are filed under it: with `{"kinds": ["chat"]}`, newest first,
        the first one is the last chat with somebody.
        """
        answer: MemoryPage = await self.call(
            "list", filter=filter, ids=ids, words=words, keyword=keyword, order=order, limit=limit, cursor=cursor
        )
        return answer
