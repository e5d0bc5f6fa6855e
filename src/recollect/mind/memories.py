"""The memories of one scope: write, read, forget and fade them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.mind.access import Access
from recollect.mind.operations import operation
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
from recollect.models.recall import NO_FILTER, Filter
from recollect.models.service import Right
from recollect.verbs.conversations.block import resolve
from recollect.verbs.memories.fade import explain_fading, fade, list_faded, revive
from recollect.verbs.memories.load import load
from recollect.verbs.memories.read import Browsing, browse, forget, get, get_many, pin, walk_evidence
from recollect.verbs.memories.remember import as_new, remember
from recollect.verbs.memories.revise import list_versions, revise


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
    async def get(self, memory_id: UUID | str) -> Memory:
        """Fetch one memory, in the version of this ID; a short ID, as prompts show it, must be unique in the scope."""
        try:
            known = memory_id if isinstance(memory_id, UUID) else UUID(memory_id)
        except ValueError:
            return (await resolve(self.access.parts, self.access.scope, str(memory_id), "")).memory
        return await get(self.access.parts, self.access.scope, known)

    @operation("POST /v1/memories/read", Right.READ, answer="memories")
    async def get_many(self, ids: Sequence[UUID]) -> list[Memory]:
        """Get up to 200 memories by ID. Unknown IDs are omitted."""
        return await get_many(self.access.parts, self.access.scope, ids)

    @operation("GET /v1/memories/{memory_id}/evidence", Right.READ)
    async def evidence(self, memory_id: UUID, depth: int = 3, limit: int = 200) -> EvidenceWalk:
        """Get the sources of a memory and the memories derived from it."""
        return await walk_evidence(self.access.parts, self.access.scope, memory_id, depth, limit)

    @operation("GET /v1/memories", Right.READ, command="mind export")
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
        wanted = Browsing(only or NO_FILTER, order, words)
        return await browse(self.access.parts, self.access.scope, cursor, limit, wanted)

    @operation("POST /v1/memories/{memory_id}/revise", Right.WRITE, command="update", tool="revise")
    async def revise(self, memory_id: UUID, revision: MemoryUpdate) -> UpdateResult:
        """Update a memory. The old version is kept; derived memories are derived again."""
        return await revise(self.access.parts, self.access.caller, self.access.scope, memory_id, revision)

    @operation("GET /v1/memories/{memory_id}/versions", Right.READ, answer="versions", command="update")
    async def versions(self, memory_id: UUID) -> list[Memory]:
        """List all versions of a memory, oldest first. Accepts the ID of any version."""
        return await list_versions(self.access.parts, self.access.scope, memory_id)

    @operation("POST /v1/pin", Right.WRITE, answer="pinned", command="update", tool="pin")
    async def pin(self, ids: Sequence[UUID], *, pinned: bool = True) -> list[UUID]:
        """Pin or unpin memories. Returns the IDs that exist."""
        return await pin(self.access.parts, self.access.scope, ids, pinned=pinned)

    @operation("POST /v1/forget", Right.WRITE, answer="forgotten", command="forget", tool="forget")
    async def forget(
        self, ids: Sequence[UUID] = (), only: Filter | None = None, *, dry_run: bool = False
    ) -> list[UUID]:
        """Permanently delete memories by ID or filter, with everything derived from them. `dry_run` only lists them."""
        return await forget(self.access.parts, self.access.scope, ids, only or NO_FILTER, dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class FadeView:
    """One caller's view of what fades in one scope."""

    access: Access

    @operation("POST /v1/fading", "`write`; `read` with `dry_run`", command="mind fade")
    async def fade(
        self,
        rules: FadingRules | None = None,
        *,
        dry_run: bool = False,
        cursor: UUID | None = None,
    ) -> FadeReport:
        """Fade decayed and expired memories, or list what would fade. Returns a cursor if time runs out."""
        access = self.access
        access.require(Right.READ if dry_run else Right.WRITE)
        return await fade(access.parts, access.scope, rules or FadingRules(), dry_run=dry_run, cursor=cursor)

    @operation("POST /v1/fading/explain", Right.READ, answer="judgements", command="mind fade")
    async def explain(
        self,
        ids: Sequence[UUID],
        rules: FadingRules | None = None,
    ) -> list[FadeDecision]:
        """Explain for each memory whether it would fade now."""
        return await explain_fading(self.access.parts, self.access.scope, ids, rules or FadingRules())

    @operation("GET /v1/faded", Right.READ, command="mind fade")
    async def faded(self, cursor: UUID | None = None, limit: int = 50) -> FadedPage:
        """List faded memories with reasons, oldest first."""
        return await list_faded(self.access.parts, self.access.scope, cursor, limit)

    @operation("POST /v1/faded/revive", Right.WRITE, answer="revived", command="mind fade")
    async def revive(self, ids: Sequence[UUID]) -> list[UUID]:
        """Restore faded memories."""
        return await revive(self.access.parts, self.access.scope, ids)
