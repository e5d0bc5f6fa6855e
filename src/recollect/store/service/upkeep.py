"""Find what is due over all tenants, queue jobs for it, and delete what is kept for a time only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

from recollect.store.database.pool import Database, load_queries

QUERIES = load_queries(__file__)
PAGE = 2000
"""How many scopes one statement finds."""
CHUNK = 1000
"""How many rows one statement deletes."""


async def walk_due(
    database: Database, wanted: str, after: int = 0, page: int = PAGE, *, usual: float = 0.0
) -> AsyncIterator[list[int]]:
    """Find the scopes in which something is due, a page at a time, in the order of their numbers."""
    while True:
        asked = {"wanted": wanted, "usual": usual, "after": after, "limit": page}
        async with database.reading(None) as connection:
            found = await connection.execute(QUERIES["due"], asked)
        scopes = [row["scope_id"] for row in await found.fetchall()]
        if not scopes:
            return
        yield scopes
        after = scopes[-1]


async def defer_due(
    database: Database, task: str, *, wanted: str = "", usual: float = 0.0, rest_minutes: float = 0.0
) -> int:
    """Queue a job of a task for every scope in which something is due; return how many.

    `wanted` names what is due where that is not the task itself, `usual` what holds where an agent's profile says
    nothing. With minutes of rest, a job that has failed is left for so long, and then replaced.
    """
    asked = {"task": task, "wanted": wanted or task, "usual": usual, "rest_minutes": rest_minutes, "limit": PAGE}
    deferred, after = 0, 0
    while True:
        async with database.transaction(None) as connection:
            found = await connection.execute(QUERIES["defer_due"], asked | {"after": after})
            row = await found.fetchone()
        if row is None or not row["scopes"]:
            return deferred
        deferred, after = deferred + (row["jobs"] or 0), row["last"]


async def prune(database: Database, kept: str, before: datetime) -> int:
    """Delete what is older than a moment (`keys`, `recalls`, `changes`, ...), and count it."""
    total, gone = 0, CHUNK
    while gone == CHUNK:
        async with database.transaction(None) as connection:
            pruned = await connection.execute(QUERIES["prune"], {"kept": kept, "before": before, "limit": CHUNK})
            row = await pruned.fetchone()
        gone = row["gone"] if row else 0
        total += gone
    return total


async def list_tenants_to_add_up(database: Database) -> list[int]:
    """List the tenants whose costs of past days are not added up yet."""
    async with database.reading(None) as connection:
        found = await connection.execute(QUERIES["tenants_to_add_up"])
    return [row["tenant_id"] for row in await found.fetchall()]
