"""The embedding space of the benches, by the number that this version gives it."""

from __future__ import annotations

from ground import DIMENSIONS, NoEmbedder
from recollect.core.memories.ids import space_id

SPACE = space_id(NoEmbedder.model, DIMENSIONS)
VECTORS = f"vectors_{SPACE}"
