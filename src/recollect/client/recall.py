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
    from recollect.models.filters import FilterLike
    from recollect.models.recall import Explanation, OptionsLike, RecallResult, Replay, SavedRecallPage


class RemoteRecall(RemoteView):
    """How one caller recalls in one scope, on a server."""

    __slots__ = ()

    async def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        filter: FilterLike | None = None,
        min_relevance: float | None = None,
        explain: bool = False,
        options: OptionsLike | None = None,
    ) -> RecallResult:
        """Search memories, best match first.

        Args:
            query: What to look for, in any language. If it is empty, the newest memories are listed.
            limit: Maximum number of hits. Default: from the agent's profile, or 10.
            filter: What to search only, as a `Filter` or a dict: `{"kinds": ["fact"], "since": when}`.
            min_relevance: Minimum relevance of hits, 0 to 1. Default: all hits.
            explain: Whether the result includes its explanation, without being saved.
            options: How to search, as `RecallOptions` or a dict: `{"timezone": "Asia/Shanghai"}`.
        """
        answer: RecallResult = await self.call(
            "recall",
            query=query,
            limit=limit,
            filter=filter,
            min_relevance=min_relevance,
            explain=explain,
            options=options,
        )
        return answer

    async def recall_many(
        self,
        queries: Sequence[str],
        *,
        limit: int | None = None,
        filter: FilterLike | None = None,
        min_relevance: float | None = None,
        explain: bool = False,
        options: OptionsLike | None = None,
        isolated: bool = False,
    ) -> list[RecallResult]:
        """Run several recalls in the same way. With `isolated`, all use one snapshot."""
        answer: list[RecallResult] = await self.call(
            "recall_many",
            queries=queries,
            limit=limit,
            filter=filter,
            min_relevance=min_relevance,
            explain=explain,
            options=options,
            isolated=isolated,
        )
        return answer

    async def context(
        self,
        query: str,
        budget: int = 2_000,
        *,
        limit: int | None = None,
        filter: FilterLike | None = None,
        min_relevance: float | None = None,
        explain: bool = False,
        options: OptionsLike | None = None,
        conversation: str = "",
        repeat: bool = False,
        tokenizer: str = "",
    ) -> MemoryBlock:
        """Return the memories that match a query as one text within a token budget, each line with its short ID.

        The context of a conversation also has its newest messages: `mind.conversation(id).context`.

        Args:
            query: What to look for, in any language.
            budget: Maximum number of tokens of the text.
            limit: Maximum number of lines. Default: from the agent's profile, or as many as fit.
            filter: What to search only, as a `Filter` or a dict.
            min_relevance: Minimum relevance of a memory, 0 to 1. Default: memories that are unlikely to help are left
                out.
            explain: Whether the result includes the explanation of the recall.
            options: How to search, as `RecallOptions` or a dict.
            conversation: Your ID of the conversation, in which memories that were shown before are left out until they
                have faded.
            repeat: Whether such memories are shown again, in fewer and fewer words.
            tokenizer: Name of a tokenizer or a model. Default: the configured one.
        """
        answer: MemoryBlock = await self.call(
            "context",
            query=query,
            budget=budget,
            limit=limit,
            filter=filter,
            min_relevance=min_relevance,
            explain=explain,
            options=options,
            conversation=conversation,
            repeat=repeat,
            tokenizer=tokenizer,
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
