"""Recollect, the memory of AI agents on PostgreSQL: remember, recall with reasons, forget."""

from recollect.errors import RecollectError
from recollect.mind import Mind
from recollect.models import Cue, Hit, Kind, Memory, Mode, NewMemory, Profile, Receipt, Recollection, Triple, Weighing
from recollect.settings import Settings
from recollect.wiring import Recollect
from recollect.wiring import open_recollect as open  # noqa: A004 - `recollect.open()` reads as it is meant

__all__ = [
    "Cue",
    "Hit",
    "Kind",
    "Memory",
    "Mind",
    "Mode",
    "NewMemory",
    "Profile",
    "Receipt",
    "Recollect",
    "RecollectError",
    "Recollection",
    "Settings",
    "Triple",
    "Weighing",
    "open",
]
