"""One scope's fading as one object: what would fade and why, what has faded, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.caller_view import CallerView
from recollect.models import Right
from recollect.models.fading import FadedPage, Fading, FadingRules, Judgement
from recollect.verbs.fade import explain, fade, list_faded, restore


@dataclass(frozen=True, slots=True)
class FadingView(CallerView):
    """One caller's view of what fades in one scope."""

    async def fade(
        self,
        rules: FadingRules = FadingRules(),  # noqa: B008 - a frozen value
        *,
        dry_run: bool = False,
        cursor: UUID | None = None,
    ) -> Fading:
        """Let memories fade that may, or only say which would; where the time is over, the cursor says how to go on."""
        async with self._asking(Right.READ if dry_run else Right.WRITE):
            return await fade(self.parts, self.scope, rules, dry_run=dry_run, cursor=cursor)

    async def explain(
        self,
        ids: Sequence[UUID],
        rules: FadingRules = FadingRules(),  # noqa: B008 - a frozen value
    ) -> list[Judgement]:
        """Say of memories whether they would fade now, and why; what does not take part in recall is left out."""
        async with self._asking(Right.READ):
            return await explain(self.parts, self.scope, ids, rules)

    async def faded(self, cursor: UUID | None = None, limit: int = 50) -> FadedPage:
        """Fetch one page of what has faded, the oldest memory first, each with its reason."""
        async with self._asking(Right.READ):
            return await list_faded(self.parts, self.scope, cursor, limit)

    async def restore(self, ids: Sequence[UUID]) -> list[UUID]:
        """Bring faded memories back as they were, and tell which; from now on they may fade anew."""
        async with self._asking(Right.WRITE):
            return await restore(self.parts, self.scope, ids)
