"""One scope's items as one object: JSON values under names of the caller's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from recollect.caller_view import CallerView
from recollect.core.item_verbs import ItemVerbs
from recollect.core.items import is_write
from recollect.models import Right
from recollect.models.items import ItemOperation, ItemResult
from recollect.store.scopes import Place
from recollect.verbs.items import batch


@dataclass(frozen=True, slots=True)
class ItemsView(CallerView, ItemVerbs):
    """One caller's view of the items of one scope."""

    located: list[Place] = field(default_factory=list[Place])
    """The mind's own: where the scope lay when the caller was admitted."""

    async def batch(self, operations: Sequence[ItemOperation], *, idempotency_key: str = "") -> list[ItemResult]:
        """Carry operations out in one transaction: all reads on what was before, then the writes in their order."""
        writing = [is_write(operation) for operation in operations]
        if not all(writing):
            self._require(Right.READ)
        async with self._asking(Right.WRITE if any(writing) else Right.READ):
            place = self.located.pop() if self.located else None
            return await batch(self.parts, self.caller, self.scope, operations, idempotency_key, place)
