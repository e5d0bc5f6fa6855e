"""Everything remembered in one scope, as one object: a method per verb, a right and a deadline for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from recollect.mind.access import Access
from recollect.mind.agents import AgentVerbs
from recollect.mind.conversations import ConversationView
from recollect.mind.items import ItemsView
from recollect.mind.knowledge import KnowledgeView
from recollect.mind.memories import FadingView, MemoryVerbs
from recollect.mind.operations import list_operations, operation, streaming
from recollect.mind.recall import BlockView, RecallsView, RecallVerbs
from recollect.mind.topics import TopicsView
from recollect.models.conversations import Conversations, ConversationState
from recollect.models.service import Change, Right
from recollect.verbs.conversations.manage import list_conversations
from recollect.verbs.service.changes import follow


@dataclass(frozen=True, slots=True)
class Mind(MemoryVerbs, RecallVerbs, AgentVerbs):
    """Everything remembered in one scope: a method for each verb, and the ways to its parts."""

    access: Access

    @operation("GET /v1/conversations", Right.READ, command="conversations")
    async def conversations(
        self, state: ConversationState | None = None, *, cursor: str = "", limit: int = 50
    ) -> Conversations:
        """Fetch one page of conversations, the latest first; active and archived ones unless a state is named."""
        return await list_conversations(self.access.parts, self.access.scope, state, cursor, limit)

    @streaming("GET /v1/changes", Right.READ, command="changes")
    async def changes(self, since: str = "") -> AsyncIterator[Change]:
        """Follow the scope's changes as they are committed, after a cursor or from now on, each once and in order."""
        async for change in follow(self.access.parts, self.access.caller, self.access.scope, since):
            yield change

    def conversation(self, conversation: str) -> ConversationView:
        """Choose a conversation by your own name for it; nothing is sent, and it begins with the first message."""
        return ConversationView(self.access, conversation)

    @property
    def blocks(self) -> BlockView:
        """Return the view for blocks: what a cue reminds of as text for a prompt, and what its short ids stand for."""
        return BlockView(self.access)

    @property
    def fading(self) -> FadingView:
        """Return the view for fading: what fades in the scope, what has faded, and how to restore it."""
        return FadingView(self.access)

    @property
    def items(self) -> ItemsView:
        """Return the view of the scope's items: JSON values under names of your own."""
        return ItemsView(self.access)

    @property
    def knowledge(self) -> KnowledgeView:
        """Return the view of what is known in the scope: facts and entities."""
        return KnowledgeView(self.access)

    @property
    def topics(self) -> TopicsView:
        """Return the view of the scope's topics: the tree, and what is filed under it."""
        return TopicsView(self.access)

    @property
    def recalls(self) -> RecallsView:
        """Return the view of kept recalls, to be explained and replayed."""
        return RecallsView(self.access)


OPERATIONS = list_operations(Mind)
"""All operations of a mind, by the names that a program calls them by."""
