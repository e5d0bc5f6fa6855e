"""Find due work of all tenants, queue jobs for it, and delete data with a time limit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

from recollect.store.database.pool import Database, load_queries

QUERIES = load_queries(__file__)
PAGE = 2000
"""Maximum number of scopes that one statement finds."""
CHUNK = 1000
"""Maximum number of rows that one statement deletes."""


async def walk_due(database: Database, wanted: str, after: int = 0, page: int = PAGE) -> AsyncIterator[list[int]]:
    """Find the scopes with due work, page by page, in the order of their numbers."""
    while True:
        asked = {"wanted": wanted, "after": after, "limit": page}
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
    """Queue a job of a task for every scope with due work; return how many.

    `wanted` names the due work if it differs from the task, `usual` is the default if an agent's profile sets nothing.
    With minutes of rest, a failed job is left for that time, and then replaced.
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
    """Delete rows older than a time (`keys`, `recalls`, `changes`, ...), and count them."""
    total, gone = 0, CHUNK
    while gone == CHUNK:
        async with database.transaction(None) as connection:
            pruned = await connection.execute(QUERIES["prune"], {"kept": kept, "before": before, "limit": CHUNK})
            row = await pruned.fetchone()
        gone = row["gone"] if row else 0
        total += gone
    return total


async def list_tenants_to_add_up(database: Database) -> list[int]:
    """List the tenants whose costs of past days are not summed up yet."""
    async with database.reading(None) as connection:
        found = await connection.execute(QUERIES["tenants_to_add_up"])
    return [row["tenant_id"] for row in await found.fetchall()]
