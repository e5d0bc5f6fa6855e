"""How far mirrors have followed each scope, and which scopes and receipts wait for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.core.service.numbers import tenant_of
from recollect.store.database.pool import Connection, Cursor, Database, load_queries, show_cold
from recollect.store.mirrors.generations import Generation
from recollect.store.service import maintenance

QUERIES = load_queries(__file__)
HELD, AWAITED = "held", "awaited"
"""How to select scopes: those that a mirror has, and those whose receipts wait for one."""


@dataclass(frozen=True, slots=True)
class PendingScope:
    """A scope with changes that not all mirrors have, and the number of the newest."""

    scope_id: int
    number: int
    present: bool = True
    """Whether this server has it: False if it was erased or another server has it."""


async def list_unmirrored(database: Database, tenant_id: int, after: int, limit: int) -> list[PendingScope]:
    """List scopes of a tenant that wait for a mirror, in the order of their numbers."""
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(QUERIES["unmirrored"], {"after": after, "limit": limit})
    return [PendingScope(row["scope_id"], row["number"], row["present"]) for row in await found.fetchall()]


async def mark_synced(database: Database, tenant_id: int, followed: Sequence[PendingScope]) -> None:
    """Mark scopes as followed by all mirrors up to these changes; later changes still wait."""
    parameters = {
        "scopes": [each.scope_id for each in followed],
        "numbers": [each.number for each in followed],
        "present": [each.present for each in followed],
    }
    async with database.transaction(tenant_id) as connection:
        await show_cold(connection)
        await connection.execute(QUERIES["renew"], parameters)
        await connection.execute(QUERIES["settle"], parameters)


async def read_positions(
    database: Database, tenant_id: int, generation: Generation, scopes: Sequence[int]
) -> dict[int, int]:
    """Read how far a generation has followed scopes; scopes that it lacks are absent."""
    parameters = {"mirror": generation.mirror, "generation": generation.number, "scopes": list(scopes)}
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["positions"], parameters)
    return {row["scope_id"]: row["position"] for row in await found.fetchall()}


async def save(
    database: Database, tenant_id: int, generation: Generation, positions: Mapping[int, int], note: str
) -> None:
    """Save how far a generation has followed scopes, and finish receipts that waited only for it."""
    parameters = {
        "mirror": generation.mirror,
        "generation": generation.number,
        "scopes": list(positions),
        "positions": list(positions.values()),
    }
    async with database.transaction(tenant_id) as connection:
        await connection.execute(QUERIES["save"], parameters)
        await end_waits(connection, parameters | {"note": note, "dropped": False})


async def end_waits(connection: Connection, parameters: Mapping[str, object]) -> Cursor:
    """End waits of receipts for a mirror; finish receipts without further waits."""
    for held in ("hold_purges", "hold_erasures"):
        # From now on no other mirror ends a wait of the same receipts: the last one finishes them.
        await connection.execute(QUERIES[held], parameters)
    return await connection.execute(QUERIES["end"], parameters)


async def forget_generation(database: Database, mirror: str, number: int | None = None) -> None:
    """Delete the positions of a generation, or of all of a mirror, in every scope."""
    async for scopes in maintenance.walk_due(database, HELD):
        for tenant_id, own in by_tenant(scopes).items():
            async with database.transaction(tenant_id) as connection:
                parameters = {"mirror": mirror, "generation": number, "scopes": own}
                await connection.execute(QUERIES["forget"], parameters)


async def end_waiting(database: Database, mirror: str, note: str) -> int:
    """End all waits of receipts for a mirror, with a note; return how many there were."""
    ended = 0
    async for scopes in maintenance.walk_due(database, AWAITED):
        for tenant_id, own in by_tenant(scopes).items():
            parameters = {"mirror": mirror, "scopes": own, "note": note, "dropped": True}
            async with database.transaction(tenant_id) as connection:
                gone = await end_waits(connection, parameters)
            ended += (await gone.fetchone() or {"ended": 0})["ended"]
    return ended


def by_tenant(scopes: Sequence[int]) -> dict[int, list[int]]:
    """Group scopes by their tenant."""
    grouped: dict[int, list[int]] = {}
    for scope_id in scopes:
        grouped.setdefault(tenant_of(scope_id), []).append(scope_id)
    return grouped
