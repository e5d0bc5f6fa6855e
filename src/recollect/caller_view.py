"""What every view of a scope begins with: one caller, one scope, a right to check and a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from recollect.core.bounds import check_all_users, check_right
from recollect.errors import UnavailableError
from recollect.models import Caller, Cue, Right, Scope
from recollect.verbs.parts import Parts


@dataclass(frozen=True, slots=True)
class CallerView:
    """One caller's view of something in one scope."""

    parts: Parts
    caller: Caller
    scope: Scope
    deadline_seconds: float

    @asynccontextmanager
    async def _asking(self, right: Right, *, all_users: bool = False) -> AsyncIterator[None]:
        self._require(right, all_users=all_users)
        async with within(self.deadline_seconds):
            yield

    def _require(self, right: Right, *, all_users: bool = False) -> None:
        if all_users:
            check_all_users(self.caller)
        check_right(self.caller, right)


@asynccontextmanager
async def within(seconds: float | None) -> AsyncIterator[None]:
    """End work that takes too long, with an error that a caller can act on; None is as long as it takes."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise UnavailableError(f"No answer within {seconds:g} seconds; try again.") from None


def right_for(cues: Sequence[Cue]) -> Right:
    """Tell which right a recall needs: to date an access is to write, for it stays recent until then; so is keeping."""
    return Right.WRITE if any(cue.keep or (cue.now is not None and cue.touch) for cue in cues) else Right.READ
