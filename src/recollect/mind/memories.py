"""The memories of one scope: write, read, forget and fade them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from recollect.mind.access import Access
from recollect.mind.operations import operation
from recollect.misspelt import read_filter
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
    MemoryUpdate,
    NewMemory,
    Receipt,
    UpdateResult,
)
from recollect.models.service import Right
from recollect.verbs.conversations.block import resolve_short_id
from recollect.verbs.memories.fade import FadeRequest, fade, restore_faded
from recollect.verbs.memories.load import load
from recollect.verbs.memories.read import ListQuery, forget, get, list_memories, walk_evidence
from recollect.verbs.memories.remember import as_new, remember
from recollect.verbs.memories.revise import update_memory


class MemoryVerbs:
    """What one caller does with the memories of one scope."""

    __slots__ = ()
    access: Access

    @operation("POST /v1/memories", Right.WRITE, answer="memories", status=201, command="remember", tool="remember")
    async def remember(
        self,
        memories: str | NewMemory | Sequence[str | NewMemory],
        *,
        idempotency_key: str = "",
        if_new: IfNew = "",
    ) -> list[Receipt]:
        """Store one or more memories in one transaction, optionally skipping duplicates."""
        return await remember(
            self.access.parts, self.access.caller, self.access.scope, as_new(memories), idempotency_key, if_new
        )

    @operation("POST /v1/load", Right.WRITE, answer="ids", status=201, timed=False, command="mind import")
    async def load(self, memories: Sequence[NewMemory], *, idempotency_key: str = "") -> list[UUID]:
        """Bulk-load memories in one transaction. Missing vectors are added by a job."""
        return await load(self.access.parts, self.access.caller, self.access.scope, memories, idempotency_key)

    @operation("GET /v1/memories/{memory_id}", Right.READ)
    async def get(self, memory_id: UUID | str, conversation: str = "") -> Memory:
        """Get a memory, in the version of this ID. Accepts short IDs, also those that a conversation was shown."""
        try:
            known = memory_id if isinstance(memory_id, UUID) else UUID(memory_id)
        except ValueError:
            known = await resolve_short_id(self.access.parts, self.access.scope, str(memory_id), conversation)
        return await get(self.access.parts, self.access.scope, known)

    @operation("GET /v1/memories/{memory_id}/evidence", Right.READ, command="update")
    async def evidence(self, memory_id: UUID, depth: int = 3, limit: int = 200) -> EvidenceWalk:
        """Get the sources of a memory, the memories derived from it, and its versions."""
        return await walk_evidence(self.access.parts, self.access.scope, memory_id, depth, limit)

    @operation("PATCH /v1/memories/{memory_id}", Right.WRITE, command="update", tool="update_memory")
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
        changes = MemoryUpdate(
            content=content,
            importance=importance,
            speaker=speaker,
            keywords=None if keywords is None else tuple(keywords),
            occurred_at=occurred_at,
            expires_at=expires_at,
            embedding=embedding,
            embedding_text=embedding_text,
            metadata=metadata,
            topic=topic,
            related_topics=None if related_topics is None else tuple(related_topics),
            pinned=pinned,
        )
        return await update_memory(self.access.parts, self.access.caller, self.access.scope, memory_id, changes)

    @operation("POST /v1/forget", Right.WRITE, answer="forgotten", command="forget", tool="forget")
    async def forget(
        self, ids: Sequence[UUID] = (), filter: FilterLike | None = None, *, dry_run: bool = False
    ) -> list[UUID]:
        """Permanently delete memories by ID or filter, with everything derived from them. `dry_run` only lists them."""
        return await forget(self.access.parts, self.access.scope, ids, read_filter(filter), dry_run=dry_run)

    @operation("POST /v1/fade", "`write`; `read` with `dry_run`", command="mind fade")
    async def fade(
        self,
        rules: FadingRules | None = None,
        *,
        ids: Sequence[UUID] | None = None,
        dry_run: bool = False,
        cursor: UUID | None = None,
    ) -> FadeReport:
        """Fade decayed and expired memories, or only list them. With `ids`, judge these and give each reason."""
        access = self.access
        access.require(Right.READ if dry_run else Right.WRITE)
        asked = FadeRequest(rules or FadingRules(), ids, dry_run, cursor)
        return await fade(access.parts, access.scope, asked)

    @operation("POST /v1/fade/restore", Right.WRITE, answer="restored", command="mind fade")
    async def restore(self, ids: Sequence[UUID]) -> list[UUID]:
        """Restore faded memories."""
        return await restore_faded(self.access.parts, self.access.scope, ids)

    @operation("GET /v1/memories", Right.READ, command="list")
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
        wanted = ListQuery(read_filter(filter), ids, words, keyword, order, limit, cursor)
        return await list_memories(self.access.parts, self.access.scope, wanted)
