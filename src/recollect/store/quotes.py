"""Read what the sources of memories say, as far as it is in sight."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from recollect.core.text.similar import Quote
from recollect.store.db import Database
from recollect.store.spaces import tenant_of
from recollect.store.sql import load_queries

QUERIES = load_queries(__file__)


async def fetch_quotes(database: Database, scope_id: int, ids: Sequence[UUID]) -> dict[UUID, Quote]:
    """Fetch what sources say by their ids; those that are out of sight are absent."""
    if not ids:
        return {}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["quotes"], {"scope_id": scope_id, "ids": sorted(set(ids))})
    return {row["id"]: Quote(**row) for row in await found.fetchall()}
