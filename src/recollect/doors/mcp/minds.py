"""How a call finds its mind: the names that it gives, kept within those that the command was given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from mcp.server.context import ServerRequestContext

from recollect.client import RemoteMind
from recollect.errors import ForbiddenError
from recollect.mind.mind import Mind
from recollect.models.service import Bounds

AnyMind: TypeAlias = Mind | RemoteMind
Asked: TypeAlias = ServerRequestContext[Any, Any]
OpenMind: TypeAlias = Callable[[Asked, str, str], Awaitable[AnyMind]]
"""From a request and the names in it to a mind; asked anew at every call, so that no two callers share one."""
OUT_OF_BOUNDS = "This server was started for other names: leave agent and user empty."


def choose_names(bounds: Bounds, agent: str, user: str) -> tuple[str, str]:
    """Fill in the names that a call leaves out, and refuse any beside those that the command was given."""
    chosen = agent or bounds.agent or "", user or bounds.user or ""
    for own, asked in zip((bounds.agent, bounds.user), chosen, strict=True):
        if own is not None and asked != own:
            raise ForbiddenError(OUT_OF_BOUNDS)
    return chosen
