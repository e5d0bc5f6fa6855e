"""One scope's items as one object: JSON values under the caller's own names: on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.client.calls import RemoteView
from recollect.core.items.verbs import ItemVerbs
from recollect.loading import load

if TYPE_CHECKING:
    from recollect.models.items import ItemOperation, ItemResult


class RemoteItems(RemoteView, ItemVerbs):
    """The items of one scope, on a server."""

    __slots__ = ()

    async def batch(self, operations: Sequence[ItemOperation], *, idempotency_key: str = "") -> list[ItemResult]:
        """Run operations in one transaction; writes without a key get one, so that retries are safe."""
        answer: list[ItemResult] = await load("recollect.client.special").batch(
            self, operations, idempotency_key=idempotency_key
        )
        return answer
