"""Overview: say what a scope holds, in numbers."""

from __future__ import annotations

from recollect.models.agents import Overview
from recollect.models.service import Scope
from recollect.store.agents import overview as counters
from recollect.verbs.parts import Parts


async def overview(parts: Parts, scope: Scope) -> Overview:
    """Count a scope's memories, name its strongest keywords, and show its agent's profile."""
    return await counters.read(parts.database, scope)
