"""Recollect, the memory of AI agents on PostgreSQL: remember, converse within a budget, recall with reasons, forget.

The names below are loaded when they are first asked for: who only calls a server loads neither a database driver nor
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
    from recollect.mind.recall import BlockView, RecallsView, compare_evaluations, evaluate, fit_relevance
    from recollect.mind.service import Recollect
    from recollect.models.agents import Profile
    from recollect.models.conversations import Context, Conversation, History, Message, NewMessage, Shares, Window
    from recollect.models.evaluations import Evaluation, EvaluationQuestion
    from recollect.models.knowledge import Entity, EntityType, Fact, NewFact, Span
    from recollect.models.memories import FadingRules, Kind, Memory, NewMemory, Receipt, Revised, Revision, Role, Triple
    from recollect.models.recall import Cue, Hit, Mode, Recollection, Weighing
    from recollect.settings import Settings
    from recollect.wiring import open_recollect as open  # noqa: A004 - `recollect.open()` reads as it is meant

HOMES = {
    "recollect.errors": ("RecollectError",),
    "recollect.mind.conversations": ("ConversationView",),
    "recollect.mind.knowledge": ("KnowledgeView",),
    "recollect.mind.memories": ("FadingView",),
    "recollect.mind.mind": ("Mind",),
    "recollect.mind.recall": ("BlockView", "RecallsView", "compare_evaluations", "evaluate", "fit_relevance"),
    "recollect.mind.service": ("Recollect",),
    "recollect.models.agents": ("Profile",),
    "recollect.models.conversations": (
        "Context",
        "Conversation",
        "History",
        "Message",
        "NewMessage",
        "Shares",
        "Window",
    ),
    "recollect.models.evaluations": ("Evaluation", "EvaluationQuestion"),
    "recollect.models.knowledge": ("Entity", "EntityType", "Fact", "NewFact", "Span"),
    "recollect.models.memories": (
        "FadingRules",
        "Kind",
        "Memory",
        "NewMemory",
        "Receipt",
        "Revised",
        "Revision",
        "Role",
        "Triple",
    ),
    "recollect.models.recall": ("Cue", "Hit", "Mode", "Recollection", "Weighing"),
    "recollect.settings": ("Settings",),
    "recollect.wiring": ("open_recollect",),
}
"""Which module has which names."""

__all__ = [
    "BlockView",
    "Context",
    "Conversation",
    "ConversationView",
    "Cue",
    "Entity",
    "EntityType",
    "Evaluation",
    "EvaluationQuestion",
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
    "Revised",
    "Revision",
    "Role",
    "Settings",
    "Shares",
    "Span",
    "Triple",
    "Weighing",
    "Window",
    "compare_evaluations",
    "evaluate",
    "fit_relevance",
    "open",
]


def __getattr__(name: str) -> object:
    wanted = "open_recollect" if name == "open" else name
    for home, names in HOMES.items():
        if wanted in names:
            globals()[name] = getattr(load(home, "engine"), wanted)
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
