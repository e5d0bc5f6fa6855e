"""The values of Recollect: frozen, one per glossary word, without behavior.

Each room has its own module; this package has all of their names, and loads a module on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.loading import load

if TYPE_CHECKING:
    from recollect.models.agents import *
    from recollect.models.blocks import *
    from recollect.models.conversations import *
    from recollect.models.evaluations import *
    from recollect.models.filters import *
    from recollect.models.imports import *
    from recollect.models.items import *
    from recollect.models.knowledge import *
    from recollect.models.memories import *
    from recollect.models.recall import *
    from recollect.models.service import *
    from recollect.models.topics import *

ROOMS = (
    *("memories", "filters", "recall", "conversations", "knowledge", "topics", "agents", "items", "blocks"),
    *("evaluations", "imports", "service"),
)


def __getattr__(name: str) -> object:
    for room in () if name.startswith("__") else ROOMS:
        known = vars(load(f"{__name__}.{room}"))
        if name in known:
            globals()[name] = known[name]
            return known[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
