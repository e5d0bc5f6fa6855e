"""Make memories anew that lost some of their evidence, by the verb that a worker is given for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from recollect.errors import ChatModelError

Rederiving: TypeAlias = Callable[[int], Awaitable[int]]
"""Make a scope's stale memories anew; return how many."""


async def rederive_scope(rederiving: Rederiving | None, scope_id: int) -> None:
    """Make a scope's stale memories anew, or leave it to a worker that can."""
    if rederiving is None:
        raise ChatModelError("This worker has no chat model; another worker may have one.")
    await rederiving(scope_id)
