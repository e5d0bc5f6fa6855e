"""One scope's kept recalls as one object: which there are, why each answered as it did, and how it would otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.caller_view import CallerView
from recollect.models import Right
from recollect.models.explanations import Explanation, KeptRecalls, Replay
from recollect.verbs.recalls import list_recalls
from recollect.verbs.replay import explain, replay


@dataclass(frozen=True, slots=True)
class RecallsView(CallerView):
    """One caller's view of the kept recalls of one scope."""

    async def list(self, cursor: UUID | None = None, limit: int = 50) -> KeptRecalls:
        """Fetch one page of kept recalls, the latest first."""
        async with self._asking(Right.READ):
            return await list_recalls(self.parts, self.scope, cursor, limit)

    async def explain(self, recall_id: UUID) -> Explanation:
        """Say what a recall was ranked by, what each channel proposed, and where each candidate came to stand."""
        async with self._asking(Right.READ):
            return await explain(self.parts, self.scope, recall_id)

    async def replay(
        self, recall_id: UUID, weights: Mapping[str, float] | None = None, *, as_of: datetime | None = None
    ) -> Replay:
        """Rank what a recall found by other weights; or ask it anew as of a moment, counting no access."""
        async with self._asking(Right.READ):
            return await replay(self.parts, self.scope, recall_id, weights, as_of)
