"""Recollect, the memory of AI agents on PostgreSQL: remember, converse within a budget, recall with reasons, forget.

The names below are loaded when they are first asked for: who only calls a server loads neither a database driver nor
a web framework.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from recollect.loading import load

if TYPE_CHECKING:
    from recollect.errors import RecollectError
    from recollect.mind import Mind
    from recollect.mind.conversations import ConversationView
    from recollect.mind.knowledge import KnowledgeView
    from recollect.mind.memories import FadeView
    from recollect.mind.recall import BlockView, RecallsView, compare_evaluations, evaluate, fit_relevance
    from recollect.mind.service import Recollect
    from recollect.models.agents import Profile
    from recollect.models.conversations import (
        BudgetShares,
        Context,
        Conversation,
        History,
        HistoryOptions,
        Message,
        NewMessage,
    )
    from recollect.models.evaluations import Evaluation, EvaluationQuestion
    from recollect.models.knowledge import Entity, EntityType, Fact, NewFact, ValidTime
    from recollect.models.memories import (
        FadingRules,
        Kind,
        Memory,
        MemoryUpdate,
        NewMemory,
        Receipt,
        Role,
        Triple,
        UpdateResult,
    )
    from recollect.models.recall import Cue, Hit, Mode, RecallResult, StreamWeights
    from recollect.settings import Settings
    from recollect.wiring import open_recollect as open  # noqa: A004 - `recollect.open()` reads as it is meant

HOMES = {
    "recollect.errors": ("RecollectError",),
    "recollect.mind.conversations": ("ConversationView",),
    "recollect.mind.knowledge": ("KnowledgeView",),
    "recollect.mind.memories": ("FadeView",),
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
        "BudgetShares",
        "HistoryOptions",
    ),
    "recollect.models.evaluations": ("Evaluation", "EvaluationQuestion"),
    "recollect.models.knowledge": ("Entity", "EntityType", "Fact", "NewFact", "ValidTime"),
    "recollect.models.memories": (
        "FadingRules",
        "Kind",
        "Memory",
        "NewMemory",
        "Receipt",
        "UpdateResult",
        "MemoryUpdate",
        "Role",
        "Triple",
    ),
    "recollect.models.recall": ("Cue", "Hit", "Mode", "RecallResult", "StreamWeights"),
    "recollect.settings": ("Settings",),
    "recollect.wiring": ("open_recollect",),
}
"""Which module has which names."""

__all__ = [
    "BudgetShares",
    "Context",
    "Conversation",
    "Cue",
    "Entity",
    "EntityType",
    "Evaluation",
    "EvaluationQuestion",
    "Fact",
    "FadingRules",
    "History",
    "HistoryOptions",
    "Hit",
    "Kind",
    "Memory",
    "MemoryUpdate",
    "Message",
    "Mode",
    "NewFact",
    "NewMemory",
    "NewMessage",
    "Profile",
    "RecallResult",
    "Receipt",
    "RecollectError",
    "Role",
    "StreamWeights",
    "Triple",
    "UpdateResult",
    "ValidTime",
]

if find_spec("psycopg"):  # the names of the engine, which `import *` must leave out if the SDK alone is installed
    __all__ += [
        "BlockView",
        "ConversationView",
        "FadeView",
        "KnowledgeView",
        "Mind",
        "RecallsView",
        "Recollect",
        "Settings",
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
