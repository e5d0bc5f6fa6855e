"""Recollect for Pydantic AI: a conversation store whose messages are remembered."""

from recollect_pydantic_ai.store import RecollectConversationStore

__all__ = ["RecollectConversationStore"]
