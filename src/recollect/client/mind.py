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
from recollect.client.memories import RemoteFading, RemoteMemories
from recollect.client.recall import RemoteBlocks, RemoteRecall, RemoteRecalls
from recollect.client.topics import RemoteTopics
from recollect.loading import load

if TYPE_CHECKING:
    from recollect.models.conversations import Conversations, ConversationState
    from recollect.models.service import Change


class RemoteMind(RemoteMemories, RemoteRecall, RemoteAgent):
    """One scope on a server."""

    __slots__ = ()

    async def conversations(
        self, state: ConversationState | None = None, *, cursor: str = "", limit: int = 50
    ) -> Conversations:
        """Fetch one page of conversations, the latest first; active and archived ones unless a state is named."""
        answer: Conversations = await self.call("conversations", state=state, cursor=cursor, limit=limit)
        return answer

    async def changes(self, since: str = "") -> AsyncIterator[Change]:
        """Follow the scope's changes as they are committed, after a cursor or from now on, each once and in order."""
        async for piece in load("recollect.client.special").changes(self, since):
            yield piece

    def conversation(self, conversation: str) -> RemoteConversation:
        """Choose a conversation by your own name for it; nothing is sent, and it begins with the first message."""
        return RemoteConversation(self.client, self.agent, self.user, conversation)

    @property
    def blocks(self) -> RemoteBlocks:
        """Return the view for blocks: what a cue reminds of as text for a prompt, and what its short ids stand for."""
        return RemoteBlocks(self.client, self.agent, self.user)

    @property
    def fading(self) -> RemoteFading:
        """Return the view for fading: what fades in the scope, what has faded, and how to restore it."""
        return RemoteFading(self.client, self.agent, self.user)

    @property
    def items(self) -> RemoteItems:
        """Return the view of the scope's items: JSON values under names of your own."""
        return RemoteItems(self.client, self.agent, self.user)

    @property
    def knowledge(self) -> RemoteKnowledge:
        """Return the view of what is known in the scope: facts and entities."""
        return RemoteKnowledge(self.client, self.agent, self.user)

    @property
    def topics(self) -> RemoteTopics:
        """Return the view of the scope's topics: the tree, and what is filed under it."""
        return RemoteTopics(self.client, self.agent, self.user)

    @property
    def recalls(self) -> RemoteRecalls:
        """Return the view of kept recalls, to be explained and replayed."""
        return RemoteRecalls(self.client, self.agent, self.user)
