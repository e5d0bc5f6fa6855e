"""Recollect, the memory of AI agents on PostgreSQL: remember, chat within a budget, recall with reasons, forget.

Each name below is loaded on first use, so a program that only calls a server loads neither a database driver nor a
web framework. All other values are in `recollect.models`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from recollect.loading import load

if TYPE_CHECKING:
    from recollect.client.client import Client as connect  # noqa: N813 - `recollect.connect()` is a call for users
    from recollect.errors import RecollectError
    from recollect.mind import Mind
    from recollect.mind.conversations import Conversation
    from recollect.mind.service import Recollect
    from recollect.models.conversations import Context, Message, NewMessage
    from recollect.models.filters import Filter
    from recollect.models.memories import Memory, NewMemory
    from recollect.models.recall import Hit, RecallResult
    from recollect.settings import Settings
    from recollect.wiring import open_recollect as open  # noqa: A004 - `recollect.open()` is the public name

HOMES = {
    "Context": "recollect.models.conversations.Context",
    "Filter": "recollect.models.filters.Filter",
    "Hit": "recollect.models.recall.Hit",
    "Memory": "recollect.models.memories.Memory",
    "Message": "recollect.models.conversations.Message",
    "NewMemory": "recollect.models.memories.NewMemory",
    "NewMessage": "recollect.models.conversations.NewMessage",
    "RecallResult": "recollect.models.recall.RecallResult",
    "RecollectError": "recollect.errors.RecollectError",
    "connect": "recollect.client.client.Client",
    "Conversation": "recollect.mind.conversations.Conversation",
    "Mind": "recollect.mind.mind.Mind",
    "Recollect": "recollect.mind.service.Recollect",
    "Settings": "recollect.settings.Settings",
    "open": "recollect.wiring.open_recollect",
}
"""The definition of each name."""

__all__ = [
    "Context",
    "Filter",
    "Hit",
    "Memory",
    "Message",
    "NewMemory",
    "NewMessage",
    "RecallResult",
    "RecollectError",
    "connect",
]

if find_spec("psycopg"):  # the names of the engine, which `import *` must leave out if the SDK alone is installed
    __all__ += ["Conversation", "Mind", "Recollect", "Settings", "open"]


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, defined = HOMES[name].rpartition(".")
    globals()[name] = getattr(load(module, "engine"), defined)
    return globals()[name]
