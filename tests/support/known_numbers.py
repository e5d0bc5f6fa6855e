"""The numbers that rows of tests have on every server."""

from __future__ import annotations

from recollect.core.memories.ids import space_id

SPACE = space_id("fake-64@1", 64)
VECTORS = f"vectors_{SPACE}"
"""Of the fake embedder, as most tests open it."""
