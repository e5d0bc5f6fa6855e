"""Everything remembered in one scope, as one object: a method per verb, a right and a deadline for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from recollect.mind.access import Access
from recollect.mind.agents import AgentVerbs
from recollect.mind.conversations import Conversation
from recollect.mind.items import ItemsView
from recollect.mind.knowledge import KnowledgeView
from recollect.mind.memories import MemoryVerbs
from recollect.mind.operations import list_operations, operation, streaming
from recollect.mind.recall import BlockView, RecallsView, RecallVerbs
from recollect.mind.topics import TopicsView
from recollect.models.conversations import ConversationPage, ConversationState
from recollect.models.imports import UserErasure
from recollect.models.service import Change, Right
from recollect.verbs.conversations.lifecycle import list_conversations
from recollect.verbs.imports.erase import erase_user
from recollect.verbs.service.changes import follow_changes


@dataclass(frozen=True, slots=True)
class Mind(MemoryVerbs, RecallVerbs, AgentVerbs):
    """Everything remembered in one scope: a method for each verb, and the ways to its parts."""

    access: Access

    @operation("GET /v1/conversations", Right.READ, command="mind conversations")
    async def conversations(
        self, state: ConversationState | None = None, *, cursor: str = "", limit: int = 50
    ) -> ConversationPage:
        """List conversations, newest first. By default active and archived ones."""
        return await list_conversations(self.access.parts, self.access.scope, state, cursor, limit)

    @operation("POST /v1/forget/everything", Right.WRITE, timed=False, command="forget")
    async def forget_everything(self, *, dry_run: bool = False) -> UserErasure:
        """Erase everything in this scope for good, in every table and mirror, or only count what would go."""
        parts, scope = self.access.parts, self.access.scope
        return await erase_user(parts, self.access.caller, scope.user, agent=scope.agent, dry_run=dry_run)

    @streaming("GET /v1/changes", Right.READ, command="mind watch")
    async def changes(self, since: str = "") -> AsyncIterator[Change]:
        """Stream changes of a scope as server-sent events."""
        async for change in follow_changes(self.access.parts, self.access.caller, self.access.scope, since):
            yield change

    def conversation(self, conversation: str) -> Conversation:
        """Choose a conversation by your own name for it; nothing is sent, and it begins with the first message."""
        return Conversation(self.access, conversation)

    @property
    def blocks(self) -> BlockView:
        """Return the view for blocks: memories that match a query as text for prompts, and memories by short ID."""
        return BlockView(self.access)

    @property
    def items(self) -> ItemsView:
        """Return the view of the scope's items: JSON values under names of your own."""
        return ItemsView(self.access)

    @property
    def knowledge(self) -> KnowledgeView:
        """Return the view of the facts and entities of the scope."""
        return KnowledgeView(self.access)

    @property
    def topics(self) -> TopicsView:
        """Return the view of the scope's topics: the tree, and the memories filed under it."""
        return TopicsView(self.access)

    @property
    def recalls(self) -> RecallsView:
        """Return the view of kept recalls, to be explained and replayed."""
        return RecallsView(self.access)


OPERATIONS = list_operations(Mind)
"""All operations of a mind, by the names that a program calls them by."""
