"""One scope on a server, as one object.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from recollect.client.agents import RemoteAgent
from recollect.client.conversations import RemoteConversation
from recollect.client.items import RemoteItems
from recollect.client.knowledge import RemoteKnowledge
from recollect.client.memories import RemoteMemories
from recollect.client.recall import RemoteBlocks, RemoteRecall, RemoteRecalls
from recollect.client.topics import RemoteTopics
from recollect.loading import load

if TYPE_CHECKING:
    from recollect.models.conversations import ConversationPage, ConversationState
    from recollect.models.imports import UserErasure
    from recollect.models.service import Change


class RemoteMind(RemoteMemories, RemoteRecall, RemoteAgent):
    """One scope on a server."""

    __slots__ = ()

    async def conversations(
        self, state: ConversationState | None = None, *, cursor: str = "", limit: int = 50
    ) -> ConversationPage:
        """List conversations, newest first. By default active and archived ones."""
        answer: ConversationPage = await self.call("conversations", state=state, cursor=cursor, limit=limit)
        return answer

    async def forget_everything(self, *, dry_run: bool = False) -> UserErasure:
        """Erase everything in this scope for good, in every table and mirror, or only count what would go."""
        answer: UserErasure = await self.call("forget_everything", dry_run=dry_run)
        return answer

    async def changes(self, since: str = "") -> AsyncIterator[Change]:
        """Stream changes of a scope as server-sent events."""
        async for piece in load("recollect.client.special").changes(self, since):
            yield piece

    def conversation(self, conversation: str) -> RemoteConversation:
        """Choose a conversation by your own name for it; nothing is sent, and it begins with the first message."""
        return RemoteConversation(self.client, self.agent, self.user, conversation)

    @property
    def blocks(self) -> RemoteBlocks:
        """Return the view for blocks: memories that match a query as text for prompts, and memories by short ID."""
        return RemoteBlocks(self.client, self.agent, self.user)

    @property
    def items(self) -> RemoteItems:
        """Return the view of the scope's items: JSON values under names of your own."""
        return RemoteItems(self.client, self.agent, self.user)

    @property
    def knowledge(self) -> RemoteKnowledge:
        """Return the view of the facts and entities of the scope."""
        return RemoteKnowledge(self.client, self.agent, self.user)

    @property
    def topics(self) -> RemoteTopics:
        """Return the view of the scope's topics: the tree, and the memories filed under it."""
        return RemoteTopics(self.client, self.agent, self.user)

    @property
    def recalls(self) -> RemoteRecalls:
        """Return the view of kept recalls, to be explained and replayed."""
        return RemoteRecalls(self.client, self.agent, self.user)
