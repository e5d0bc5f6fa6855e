"""Take facts that have come to their end out of what recall reads."""

from __future__ import annotations

from uuid import UUID

from recollect.store.db import Database
from recollect.store.sql import load_queries

QUERIES = load_queries(__file__)
CHUNK = 500
"""So many facts leave the indexes in one transaction: writers of their scopes wait that long, and no longer."""


async def withhold_ended(database: Database, tenant_id: int) -> int:
    """Withhold a tenant's facts that are over by now, a chunk at a time; return how many."""
    total = 0
    while taken := await withhold_chunk(database, tenant_id):
        total += taken
    return total


async def withhold_chunk(database: Database, tenant_id: int) -> int:
    """Withhold some facts that are over, and say how many."""
    total = 0
    async with database.transaction(tenant_id) as connection:
        found = await (await connection.execute(QUERIES["ended"], {"limit": CHUNK})).fetchall()
        ended: dict[int, list[UUID]] = {}
        for row in found:
            ended.setdefault(row["scope_id"], []).append(row["id"])
        for scope_id, ids in ended.items():
            await connection.execute(QUERIES["lock"], {"scope_id": scope_id})
            withheld = await connection.execute(QUERIES["withhold"], {"scope_id": scope_id, "ids": ids})
            counted = await withheld.fetchone()
            total += counted["withheld"] if counted else 0
    return total
