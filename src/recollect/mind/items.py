"""One scope's items as one object: JSON values under the caller's own names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.core.items.rules import is_write
from recollect.core.items.verbs import ItemVerbs
from recollect.mind.access import Access
from recollect.mind.operations import operation
from recollect.models.items import ItemOperation, ItemResult
from recollect.models.service import Right
from recollect.verbs.items.items import batch


@dataclass(frozen=True, slots=True)
class ItemsView(ItemVerbs):
    """One caller's view of the items of one scope."""

    access: Access

    @operation("POST /v1/items", "`read` for reads, `write` for writes", answer="results")
    async def batch(self, operations: Sequence[ItemOperation], *, idempotency_key: str = "") -> list[ItemResult]:
        """Run a batch of key-value operations in one transaction. Reads see the state before the writes."""
        access = self.access
        for right in sorted({Right.WRITE if is_write(each) else Right.READ for each in operations} or {Right.READ}):
            access.require(right)
        return await batch(access.parts, access.caller, access.scope, operations, idempotency_key, access.place)
