"""The numbers that rows of tests have on every server."""

from __future__ import annotations

from recollect.core.memories.ids import space_id
from recollect.core.service.numbers import bucket_of, number_scope

SPACE = space_id("fake-64@1", 64)
VECTORS = f"vectors_{SPACE}"
"""Of the fake embedder, as most tests open it."""


def first_number(mind):
    """The number of a mind's scope, if it is the first of its bucket."""
    scope = mind.access.scope
    return number_scope(scope.tenant_id, bucket_of(scope.agent, scope.user), 1)
