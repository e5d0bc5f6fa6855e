"""Recall in one scope: by cues, as text for a prompt, and what was kept of recalls: on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from recollect.client.calls import RemoteView

if TYPE_CHECKING:
    from recollect.models.blocks import Block, Resolved
    from recollect.models.kept import KeptRecalls, Replay
    from recollect.models.recall import Cue, Explanation, Recollection


class RemoteRecall(RemoteView):
    """How one caller recalls in one scope, on a server."""

    __slots__ = ()

    async def recall(self, cue: str | Cue, *, limit: int | None = None) -> Recollection:
        """Return what a cue reminds of, best first."""
        answer: Recollection = await self.call("recall", cue=cue, limit=limit)
        return answer

    async def recall_each(self, cues: Sequence[str | Cue], *, isolated: bool = False) -> list[Recollection]:
        """Recall by several cues in turn, each seeing the accesses before it; or all of them isolated."""
        answer: list[Recollection] = await self.call("recall_each", cues=cues, isolated=isolated)
        return answer


class RemoteBlocks(RemoteView):
    """What can be shown of one scope, on a server."""

    __slots__ = ()

    async def show(
        self,
        cue: str | Cue,
        budget: int = 2_000,
        *,
        conversation: str = "",
        repeat: bool = False,
        tokenizer: str = "",
    ) -> Block:
        """Return what a cue reminds of as one text within a budget in tokens, each line with its short id.

        In a conversation, what was shown before is left out until it has faded; with `repeat` it is shown again, in
        fewer and fewer words.
        """
        answer: Block = await self.call(
            "blocks.show", cue=cue, budget=budget, conversation=conversation, repeat=repeat, tokenizer=tokenizer
        )
        return answer

    async def resolve(self, short_id: str, conversation: str = "") -> Resolved:
        """Return the memory of a short id in a conversation, or in the scope, and its evidence."""
        answer: Resolved = await self.call("blocks.resolve", short_id=short_id, conversation=conversation)
        return answer


class RemoteRecalls(RemoteView):
    """The kept recalls of one scope, on a server."""

    __slots__ = ()

    async def list(self, cursor: UUID | None = None, limit: int = 50) -> KeptRecalls:
        """Fetch one page of kept recalls, the latest first."""
        answer: KeptRecalls = await self.call("recalls.list", cursor=cursor, limit=limit)
        return answer

    async def explain(self, recall_id: UUID) -> Explanation:
        """Return the input of a recall's ranking, what each channel proposed, and the place of each candidate."""
        answer: Explanation = await self.call("recalls.explain", recall_id=recall_id)
        return answer

    async def replay(
        self, recall_id: UUID, weights: Mapping[str, float] | None = None, *, as_of: datetime | None = None
    ) -> Replay:
        """Rank what a recall found by other weights; or ask it again as of a moment, noting no access."""
        answer: Replay = await self.call("recalls.replay", recall_id=recall_id, weights=weights, as_of=as_of)
        return answer
