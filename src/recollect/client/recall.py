"""Recall in one scope: by query, as text for a prompt, and saved recalls: on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from recollect.client.calls import RemoteView

if TYPE_CHECKING:
    from recollect.models.blocks import MemoryBlock
    from recollect.models.recall import Cue, Explanation, RecallResult, Replay, SavedRecallPage


class RemoteRecall(RemoteView):
    """How one caller recalls in one scope, on a server."""

    __slots__ = ()

    async def recall(self, cue: str | Cue, *, limit: int | None = None) -> RecallResult:
        """Search memories, best match first."""
        answer: RecallResult = await self.call("recall", cue=cue, limit=limit)
        return answer

    async def recall_each(self, cues: Sequence[str | Cue], *, isolated: bool = False) -> list[RecallResult]:
        """Run several recalls. With `isolated`, all use one snapshot."""
        answer: list[RecallResult] = await self.call("recall_each", cues=cues, isolated=isolated)
        return answer


class RemoteBlocks(RemoteView):
    """The texts that one scope has for prompts, on a server."""

    __slots__ = ()

    async def show(
        self,
        cue: str | Cue,
        budget: int = 2_000,
        *,
        conversation: str = "",
        repeat: bool = False,
        tokenizer: str = "",
    ) -> MemoryBlock:
        """Return the memories that match a query as one text within a token budget, each line with its short ID.

        In a conversation, memories that were shown before are left out until they have faded; with `repeat` they are
        shown again, in fewer and fewer words.
        """
        answer: MemoryBlock = await self.call(
            "blocks.show", cue=cue, budget=budget, conversation=conversation, repeat=repeat, tokenizer=tokenizer
        )
        return answer


class RemoteRecalls(RemoteView):
    """The kept recalls of one scope, on a server."""

    __slots__ = ()

    async def list(self, cursor: UUID | None = None, limit: int = 50) -> SavedRecallPage:
        """List saved recalls, newest first."""
        answer: SavedRecallPage = await self.call("recalls.list", cursor=cursor, limit=limit)
        return answer

    async def explain(self, recall_id: UUID) -> Explanation:
        """Explain the ranking of a saved recall."""
        answer: Explanation = await self.call("recalls.explain", recall_id=recall_id)
        return answer

    async def replay(
        self, recall_id: UUID, weights: Mapping[str, float] | None = None, *, as_of: datetime | None = None
    ) -> Replay:
        """Rank a saved recall with other weights, or run it again as of an earlier time."""
        answer: Replay = await self.call("recalls.replay", recall_id=recall_id, weights=weights, as_of=as_of)
        return answer
