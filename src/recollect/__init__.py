"""Recollect, the memory of AI agents on PostgreSQL: remember, converse within a budget, recall with reasons, forget."""

from recollect.errors import RecollectError
from recollect.mind import ConversationView, Mind
from recollect.models import (
    Context,
    Conversation,
    Cue,
    History,
    Hit,
    Kind,
    Memory,
    Message,
    Mode,
    NewMemory,
    NewMessage,
    Profile,
    Receipt,
    Recollection,
    Role,
    Shares,
    Triple,
    Weighing,
    Window,
)
from recollect.settings import Settings
from recollect.wiring import Recollect
from recollect.wiring import open_recollect as open  # noqa: A004 - `recollect.open()` reads as it is meant

__all__ = [
    "Context",
    "Conversation",
    "ConversationView",
    "Cue",
    "History",
    "Hit",
    "Kind",
    "Memory",
    "Message",
    "Mind",
    "Mode",
    "NewMemory",
    "NewMessage",
    "Profile",
    "Receipt",
    "Recollect",
    "RecollectError",
    "Recollection",
    "Role",
    "Settings",
    "Shares",
    "Triple",
    "Weighing",
    "Window",
    "open",
]
