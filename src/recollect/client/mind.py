"""One scope on a server, as one object.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.client.agents import RemoteAgent
from recollect.client.conversations import RemoteConversation
from recollect.client.items import RemoteItems
from recollect.client.knowledge import RemoteKnowledge
from recollect.client.memories import RemoteFading, RemoteMemories
from recollect.client.recall import RemoteBlocks, RemoteRecall, RemoteRecalls
from recollect.client.topics import RemoteTopics

if TYPE_CHECKING:
    from recollect.models.conversations import Conversations, ConversationState


class RemoteMind(RemoteMemories, RemoteRecall, RemoteAgent):
    """One scope on a server."""

    __slots__ = ()

    async def conversations(
        self, state: ConversationState | None = None, *, cursor: str = "", limit: int = 50
    ) -> Conversations:
        """Fetch one page of conversations, the latest first; those in sight unless a state is named."""
        answer: Conversations = await self.call("conversations", state=state, cursor=cursor, limit=limit)
        return answer

    def conversation(self, conversation: str) -> RemoteConversation:
        """Choose a conversation by your own name for it; nothing is sent, and it begins with the first message."""
        return RemoteConversation(self.client, self.agent, self.user, conversation)

    @property
    def blocks(self) -> RemoteBlocks:
        """Give what a cue reminds of as text for a prompt, and what its short ids stand for."""
        return RemoteBlocks(self.client, self.agent, self.user)

    @property
    def fading(self) -> RemoteFading:
        """Give what fades in the scope, what has faded, and the way back."""
        return RemoteFading(self.client, self.agent, self.user)

    @property
    def items(self) -> RemoteItems:
        """Give the scope's items: JSON values under names of your own."""
        return RemoteItems(self.client, self.agent, self.user)

    @property
    def knowledge(self) -> RemoteKnowledge:
        """Give what is known in the scope: facts, and the entities that they speak of."""
        return RemoteKnowledge(self.client, self.agent, self.user)

    @property
    def topics(self) -> RemoteTopics:
        """Give the scope's topics: the tree, and what is filed under it."""
        return RemoteTopics(self.client, self.agent, self.user)

    @property
    def recalls(self) -> RemoteRecalls:
        """Give the recalls that were kept in the scope, to be explained and replayed."""
        return RemoteRecalls(self.client, self.agent, self.user)
