"""What is remembered in one scope: write it, read it, forget it, and let it fade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.mind.access import Access
from recollect.mind.operations import operation
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
from recollect.models.recall import EVERYTHING, Filter
from recollect.models.service import Right
from recollect.verbs.memories.fade import explain, fade, list_faded, revive
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
        """Store one or many memories in one transaction; or only those that are not known yet."""
        return await remember(
            self.access.parts, self.access.caller, self.access.scope, as_new(memories), idempotency_key, if_new
        )

    @operation("POST /v1/load", Right.WRITE, answer="ids", status=201, timed=False, command="import")
    async def load(self, memories: Sequence[NewMemory], *, idempotency_key: str = "") -> list[UUID]:
        """Load any number of memories in one transaction by COPY; vectors that are not given follow by a job."""
        return await load(self.access.parts, self.access.caller, self.access.scope, memories, idempotency_key)

    @operation("GET /v1/memories/{memory_id}", Right.READ)
    async def get(self, memory_id: UUID) -> Memory:
        """Fetch one memory, in the version of this id."""
        return await get(self.access.parts, self.access.scope, memory_id)

    @operation("POST /v1/memories/read", Right.READ, answer="memories")
    async def get_many(self, ids: Sequence[UUID]) -> list[Memory]:
        """Fetch up to 200 memories in the order of their ids, in the versions of these ids; unknown ones are absent."""
        return await get_many(self.access.parts, self.access.scope, ids)

    @operation("GET /v1/memories/{memory_id}/evidence", Right.READ)
    async def evidence(self, memory_id: UUID, depth: int = 3, limit: int = 200) -> EvidenceWalk:
        """Follow the evidence of a memory both ways: what it was made from, and what was made from it."""
        return await walk_evidence(self.access.parts, self.access.scope, memory_id, depth, limit)

    @operation("GET /v1/memories", Right.READ, command="export")
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
        wanted = Browsing(only or EVERYTHING, order, words)
        return await browse(self.access.parts, self.access.scope, cursor, limit, wanted)

    @operation("POST /v1/memories/{memory_id}/revise", Right.WRITE, command="revise", tool="revise")
    async def revise(self, memory_id: UUID, revision: Revision) -> Revised:
        """Add a version of a memory in place of the current one; what was derived from that is derived again."""
        return await revise(self.access.parts, self.access.caller, self.access.scope, memory_id, revision)

    @operation("GET /v1/memories/{memory_id}/versions", Right.READ, answer="versions", command="revise")
    async def versions(self, memory_id: UUID) -> list[Memory]:
        """Fetch every version of a memory, oldest first, also contested ones; the id of any of them names it."""
        return await list_versions(self.access.parts, self.access.scope, memory_id)

    @operation("POST /v1/pin", Right.WRITE, answer="pinned", command="pin", tool="pin")
    async def pin(self, ids: Sequence[UUID], *, pinned: bool = True) -> list[UUID]:
        """Let every context show these memories, or stop it; return those that exist."""
        return await pin(self.access.parts, self.access.scope, ids, pinned=pinned)

    @operation("POST /v1/forget", Right.WRITE, answer="forgotten", command="forget", tool="forget")
    async def forget(
        self, ids: Sequence[UUID] = (), only: Filter | None = None, *, dry_run: bool = False
    ) -> list[UUID]:
        """Delete memories, or all that a filter admits, with all that was derived from them; or only list them."""
        return await forget(self.access.parts, self.access.scope, ids, only or EVERYTHING, dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class FadingView:
    """One caller's view of what fades in one scope."""

    access: Access

    @operation("POST /v1/fading", "`write`; `read` with `dry_run`", command="fade")
    async def fade(
        self,
        rules: FadingRules | None = None,
        *,
        dry_run: bool = False,
        cursor: UUID | None = None,
    ) -> Fading:
        """Let memories fade that may, or only say which would; if the time is over, the cursor says how to continue."""
        async with self.access.asking(Right.READ if dry_run else Right.WRITE) as access:
            return await fade(access.parts, access.scope, rules or FadingRules(), dry_run=dry_run, cursor=cursor)

    @operation("POST /v1/fading/explain", Right.READ, answer="judgements", command="fade")
    async def explain(
        self,
        ids: Sequence[UUID],
        rules: FadingRules | None = None,
    ) -> list[Judgement]:
        """Say of memories whether they would fade now, and why; what does not take part in recall is left out."""
        return await explain(self.access.parts, self.access.scope, ids, rules or FadingRules())

    @operation("GET /v1/faded", Right.READ, command="fade")
    async def faded(self, cursor: UUID | None = None, limit: int = 50) -> FadedPage:
        """Fetch one page of what has faded, the oldest memory first, each with its reason."""
        return await list_faded(self.access.parts, self.access.scope, cursor, limit)

    @operation("POST /v1/faded/revive", Right.WRITE, answer="revived", command="fade")
    async def revive(self, ids: Sequence[UUID]) -> list[UUID]:
        """Restore faded memories, and return which; from now on they may fade again."""
        return await revive(self.access.parts, self.access.scope, ids)
