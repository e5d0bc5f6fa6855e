"""List the scopes of a tenant page by page, each order with a separate index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import cache

from psycopg.rows import DictRow
from psycopg.sql import SQL

from recollect.models.service import KeyBinding, ScopeInfo, ScopeOrder, ScopeQuery
from recollect.store.database.pool import Database, load_queries, to_sql

QUERIES = load_queries(__file__)
MAX_INT = 2**62


@dataclass(frozen=True, slots=True)
class ScopePlace:
    """A position in a list of scopes: the value to sort by, and the scope's number; or agent and user."""

    value: str | int
    tie: int | str


FIRST: Mapping[ScopeOrder, ScopePlace] = {
    ScopeOrder.RECENT: ScopePlace("infinity", MAX_INT),
    ScopeOrder.SIZE: ScopePlace(MAX_INT, MAX_INT),
    ScopeOrder.NAME: ScopePlace("", ""),
}
"""The start of each order."""


async def page(
    database: Database, tenant_id: int, bounds: KeyBinding, wanted: ScopeQuery, before: ScopePlace | None, limit: int
) -> list[tuple[ScopePlace, ScopeInfo]]:
    """Fetch scopes of a tenant within bounds, after a position in their order."""
    place = before or FIRST[wanted.order]
    named = {"agent": bounds.agent, "user": bounds.user, "search": wanted.search or None}
    query = compose(wanted.order, tuple(name for name, given in named.items() if given is not None))
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(query, named | {"before": place.value, "tie": place.tie, "limit": limit})
    return [to_listed(row, wanted.order) for row in await found.fetchall()]


@cache
def compose(order: ScopeOrder, named: tuple[str, ...]) -> SQL:
    """Write the statement of a list with the given conditions."""
    asked = ("not_erased", *(f"by_{name}" for name in named))
    conditions = SQL("").join(SQL("\n  and ") + SQL(QUERIES[name]) for name in asked)
    return to_sql(SQL(QUERIES[order.value]).format(conditions=conditions))


def to_listed(row: DictRow, order: ScopeOrder) -> tuple[ScopePlace, ScopeInfo]:
    """Convert a row to a scope of a list, with its position."""
    listed = ScopeInfo(row["agent"], row["user"], row["memory_count"], row["last_written_at"])
    if order is ScopeOrder.NAME:
        return ScopePlace(listed.agent, listed.user), listed
    moment = listed.last_written_at.astimezone(UTC).isoformat()
    return ScopePlace(listed.memories if order is ScopeOrder.SIZE else moment, row["id"]), listed
