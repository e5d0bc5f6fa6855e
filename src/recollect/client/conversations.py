"""One conversation as one object: append, read, chat, and change its state: on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from recollect.client.calls import ConversationPart
from recollect.loading import load

if TYPE_CHECKING:
    from recollect.core.conversations.messages import Utterance
    from recollect.models.conversations import (
        BudgetShares,
        Context,
        ConversationInfo,
        ConversationState,
        DeletedConversation,
        History,
        HistoryOptions,
        MessagePage,
        MessageReceipt,
        PurgeReceipt,
        Reply,
    )
    from recollect.models.knowledge import SegmentRecord
    from recollect.models.memories import JSON
    from recollect.models.recall import Cue


class RemoteConversation(ConversationPart):
    """One conversation, on a server."""

    __slots__ = ()

    async def append(
        self, messages: Utterance | Sequence[Utterance], *, idempotency_key: str = ""
    ) -> list[MessageReceipt]:
        """Append one or more messages to a conversation in one transaction."""
        answer: list[MessageReceipt] = await self.call(
            "conversation.append", messages=messages, idempotency_key=idempotency_key
        )
        return answer

    async def history(self, window: HistoryOptions | int | None = None) -> History:
        """Get the most recent turns of a thread that fit a token budget."""
        answer: History = await self.call("conversation.history", window=window)
        return answer

    async def context(
        self,
        cue: str | Cue,
        budget: int = 4_000,
        *,
        shares: BudgetShares | None = None,
        window: HistoryOptions | None = None,
        system: str = "",
    ) -> Context:
        """Return one prompt within a budget in tokens: the newest turns, memories that match the query, the summary.

        The window says which thread, which tokenizer and how; its own `max_tokens` is ignored, the budget rules.
        """
        answer: Context = await self.call(
            "conversation.context", cue=cue, budget=budget, shares=shares, window=window, system=system
        )
        return answer

    async def chat(
        self,
        text: str,
        budget: int = 4_000,
        *,
        window: HistoryOptions | None = None,
        system: str = "",
        report: Callable[[Context], None] | None = None,
        timeout_seconds: float | None = None,
    ) -> Reply:
        """Answer with the server's chat model, as long as it takes; append question and answer together, or neither.

        It is asked once: where no answer arrives, the history says whether there was one. The prompt is reported
        together with the answer.
        """
        answer: Reply = await load("recollect.client.special").chat(
            self, text, budget, window=window, system=system, report=report, timeout_seconds=timeout_seconds
        )
        return answer

    async def messages(self, after: int = 0, limit: int = 200) -> MessagePage:
        """List the messages of all branches in order."""
        answer: MessagePage = await self.call("conversation.messages", after=after, limit=limit)
        return answer

    async def segments(self, limit: int = 50, after: int = 0) -> list[SegmentRecord]:
        """List the topic segments of a conversation."""
        answer: list[SegmentRecord] = await self.call("conversation.segments", limit=limit, after=after)
        return answer

    async def get(self, threads: int = 50) -> ConversationInfo:
        """Get a conversation's name, state and times, and the ends of its newest threads."""
        answer: ConversationInfo = await self.call("conversation.get", threads=threads)
        return answer

    async def update(
        self,
        *,
        name: str | None = None,
        metadata: Mapping[str, JSON] | None = None,
        state: ConversationState | str | None = None,
        close_segment: bool = False,
    ) -> ConversationInfo:
        """Update a conversation's name, metadata or state, or close its open segment.

        `archived` excludes it from recall until the next message; `active` restores an archived or deleted one.
        Name, metadata and state change in one transaction. The segment is closed after that.
        """
        answer: ConversationInfo = await self.call(
            "conversation.update", name=name, metadata=metadata, state=state, close_segment=close_segment
        )
        return answer

    async def delete(self, *, dry_run: bool = False) -> DeletedConversation:
        """Delete a conversation and everything derived from it. Can be restored until it is purged."""
        answer: DeletedConversation = await self.call("conversation.delete", dry_run=dry_run)
        return answer

    async def purge(self, *, dry_run: bool = False) -> PurgeReceipt:
        """Permanently erase a conversation. Large ones are finished by a job."""
        answer: PurgeReceipt = await self.call("conversation.purge", dry_run=dry_run)
        return answer
