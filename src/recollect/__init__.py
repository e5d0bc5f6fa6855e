"""Recollect, the memory of AI agents on PostgreSQL: remember, recall with reasons, forget."""

from recollect.errors import RecollectError
from recollect.mind import Mind
from recollect.models import Cue, Hit, Kind, Memory, NewMemory, Receipt, Recollection
from recollect.settings import Settings
from recollect.wiring import Recollect
from recollect.wiring import open_recollect as open  # noqa: A004 - `recollect.open()` reads as it is meant

__all__ = [
    "Cue",
    "Hit",
    "Kind",
    "Memory",
    "Mind",
    "NewMemory",
    "Receipt",
    "Recollect",
    "RecollectError",
    "Recollection",
    "Settings",
    "open",
]
