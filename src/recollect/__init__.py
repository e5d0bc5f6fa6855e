"""Recollect, the memory of AI agents on PostgreSQL: remember, converse within a budget, recall with reasons, forget.

The names below are loaded when they are first asked for: who only talks to a server loads neither a database driver nor
a web framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.loading import load

if TYPE_CHECKING:
    from recollect.errors import RecollectError
    from recollect.mind import Mind
    from recollect.mind.conversations import ConversationView
    from recollect.mind.knowledge import KnowledgeView
    from recollect.mind.memories import FadingView
    from recollect.mind.recall import BlockView, RecallsView
    from recollect.mind.service import Recollect
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
    from recollect.settings import Settings
    from recollect.wiring import open_recollect as open  # noqa: A004 - `recollect.open()` reads as it is meant

HOMES = {
    "BlockView": "recollect.mind.recall",
    "ConversationView": "recollect.mind.conversations",
    "FadingView": "recollect.mind.memories",
    "KnowledgeView": "recollect.mind.knowledge",
    "Mind": "recollect.mind.mind",
    "RecallsView": "recollect.mind.recall",
    "Recollect": "recollect.mind.service",
    "RecollectError": "recollect.errors",
    "Settings": "recollect.settings",
    "open": "recollect.wiring",
}
"""Where the names live that are no nouns of `recollect.models`."""

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


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(
        load(HOMES.get(name, "recollect.models"), "engine"), "open_recollect" if name == "open" else name
    )
    globals()[name] = value
    return value
