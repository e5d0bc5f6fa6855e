"""Recollect, the memory of AI agents on PostgreSQL: remember, converse within a budget, recall with reasons, forget."""

from recollect.block_view import BlockView
from recollect.conversation_view import ConversationView
from recollect.errors import RecollectError
from recollect.fading_view import FadingView
from recollect.knowledge_view import KnowledgeView
from recollect.mind import Mind
from recollect.models import (
    Context,
    Conversation,
    Cue,
    Entity,
    EntityType,
    Fact,
    FadingRules,
    History,
    Hit,
    Kind,
    Memory,
    Message,
    Mode,
    NewFact,
    NewMemory,
    NewMessage,
    Profile,
    Receipt,
    Recollection,
    Role,
    Shares,
    Span,
    Triple,
    Weighing,
    Window,
)
from recollect.recalls_view import RecallsView
from recollect.settings import Settings
from recollect.wiring import Recollect
from recollect.wiring import open_recollect as open  # noqa: A004 - `recollect.open()` reads as it is meant

__all__ = [
    "BlockView",
    "Context",
    "Conversation",
    "ConversationView",
    "Cue",
    "Entity",
    "EntityType",
    "Fact",
    "FadingRules",
    "FadingView",
    "History",
    "Hit",
    "Kind",
    "KnowledgeView",
    "Memory",
    "Message",
    "Mind",
    "Mode",
    "NewFact",
    "NewMemory",
    "NewMessage",
    "Profile",
    "RecallsView",
    "Receipt",
    "Recollect",
    "RecollectError",
    "Recollection",
    "Role",
    "Settings",
    "Shares",
    "Span",
    "Triple",
    "Weighing",
    "Window",
    "open",
]
