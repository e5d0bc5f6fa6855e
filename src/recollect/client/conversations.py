"""One conversation as one object: append, read, converse, and change its state: on a server.

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
        Appended,
        Context,
        Conversation,
        DeletedConversation,
        History,
        Leaf,
        MessagePage,
        PurgeReceipt,
        Reply,
        Shares,
        Window,
    )
    from recollect.models.knowledge import StoredSegment
    from recollect.models.memories import JSON
    from recollect.models.recall import Cue


class RemoteConversation(ConversationPart):
    """One conversation, on a server."""

    __slots__ = ()

    async def append(self, messages: Utterance | Sequence[Utterance], *, idempotency_key: str = "") -> list[Appended]:
        """Append one or many messages in one transaction, each following the one before unless it names a parent."""
        answer: list[Appended] = await self.call(
            "conversation.append", messages=messages, idempotency_key=idempotency_key
        )
        return answer

    async def history(self, window: Window | int | None = None) -> History:
        """Return the newest whole turns of a thread that fit a budget; a number is a budget in tokens."""
        answer: History = await self.call("conversation.history", window=window)
        return answer

    async def context(
        self,
        cue: str | Cue,
        budget: int = 4_000,
        *,
        shares: Shares | None = None,
        window: Window | None = None,
        system: str = "",
    ) -> Context:
        """Return one prompt within a budget in tokens: the newest turns, what the cue reminds of, the summary.

        The window says which thread, which tokenizer and how; its own `max_tokens` is ignored, the budget rules.
        """
        answer: Context = await self.call(
            "conversation.context", cue=cue, budget=budget, shares=shares, window=window, system=system
        )
        return answer

    async def converse(
        self,
        text: str,
        budget: int = 4_000,
        *,
        window: Window | None = None,
        system: str = "",
        report: Callable[[Context], None] | None = None,
        timeout_seconds: float | None = None,
    ) -> Reply:
        """Answer with the server's chat model, as long as it takes; append question and answer together, or neither.

        It is asked once: where no answer arrives, the history says whether there was one. The prompt is reported
        together with the answer.
        """
        answer: Reply = await load("recollect.client.special").converse(
            self, text, budget, window=window, system=system, report=report, timeout_seconds=timeout_seconds
        )
        return answer

    async def messages(self, after: int = 0, limit: int = 200) -> MessagePage:
        """Fetch one page of the messages of all branches in the order of their numbers, after the one so numbered."""
        answer: MessagePage = await self.call("conversation.messages", after=after, limit=limit)
        return answer

    async def leaves(self, limit: int = 50) -> list[Leaf]:
        """List the ends of the conversation's threads, newest first; each can be a history's leaf."""
        answer: list[Leaf] = await self.call("conversation.leaves", limit=limit)
        return answer

    async def segments(self, limit: int = 50, after: int = 0) -> list[StoredSegment]:
        """List the conversation's segments in order, each on one topic; `after` is the number of a message."""
        answer: list[StoredSegment] = await self.call("conversation.segments", limit=limit, after=after)
        return answer

    async def close_segment(self) -> list[StoredSegment]:
        """Close the segment that is still running, as if another topic had begun; list all segments."""
        answer: list[StoredSegment] = await self.call("conversation.close_segment")
        return answer

    async def read(self) -> Conversation:
        """Read the conversation's name, state and times."""
        answer: Conversation = await self.call("conversation.read")
        return answer

    async def describe(self, name: str | None = None, metadata: Mapping[str, JSON] | None = None) -> None:
        """Set the conversation's name, or metadata of your own; what is None stays as it is."""
        await self.call("conversation.describe", name=name, metadata=metadata)

    async def archive(self) -> Conversation:
        """Take the conversation out of recall; it stays readable, and the next message brings it back."""
        answer: Conversation = await self.call("conversation.archive")
        return answer

    async def restore(self) -> Conversation:
        """Restore an archived or deleted conversation, with what was derived from it."""
        answer: Conversation = await self.call("conversation.restore")
        return answer

    async def delete(self, *, dry_run: bool = False) -> DeletedConversation:
        """Make the conversation invisible, with all derived from it, until it is restored; or only count that."""
        answer: DeletedConversation = await self.call("conversation.delete", dry_run=dry_run)
        return answer

    async def purge(self, *, dry_run: bool = False) -> PurgeReceipt:
        """Erase the conversation for good, by a job what does not fit into the call; or only count what would go."""
        answer: PurgeReceipt = await self.call("conversation.purge", dry_run=dry_run)
        return answer

    async def receipts(self, limit: int = 50) -> list[PurgeReceipt]:
        """List what purges of conversations of this name removed, the latest first."""
        answer: list[PurgeReceipt] = await self.call("conversation.receipts", limit=limit)
        return answer
