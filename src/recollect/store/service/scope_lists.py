"""List the scopes of a tenant page by page, each order by an index of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import cache

from psycopg.rows import DictRow
from psycopg.sql import SQL

from recollect.models.service import Bounds, ListedScope, ScopeOrder, ScopeQuery
from recollect.store.database.pool import Database, load_queries, write_out

QUERIES = load_queries(__file__)
LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class ScopePlace:
    """A place in a list of scopes: what its order compares, and the scope's number; of names, agent and user."""

    value: str | int
    tie: int | str


FIRST: Mapping[ScopeOrder, ScopePlace] = {
    ScopeOrder.RECENT: ScopePlace("infinity", LARGEST),
    ScopeOrder.SIZE: ScopePlace(LARGEST, LARGEST),
    ScopeOrder.NAME: ScopePlace("", ""),
}
"""Where each order begins."""


async def page(
    database: Database, tenant_id: int, bounds: Bounds, wanted: ScopeQuery, before: ScopePlace | None, limit: int
) -> list[tuple[ScopePlace, ListedScope]]:
    """Fetch scopes of a tenant within bounds, behind a place in their order."""
    place = before or FIRST[wanted.order]
    named = {"agent": bounds.agent, "user": bounds.user, "search": wanted.search or None}
    query = compose(wanted.order, tuple(name for name, given in named.items() if given is not None))
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(query, named | {"before": place.value, "tie": place.tie, "limit": limit})
    return [to_listed(row, wanted.order) for row in await found.fetchall()]


@cache
def compose(order: ScopeOrder, named: tuple[str, ...]) -> SQL:
    """Write the statement of a list with the conditions that are asked for."""
    asked = ("not_erased", *(f"by_{name}" for name in named))
    conditions = SQL("").join(SQL("\n  and ") + SQL(QUERIES[name]) for name in asked)
    return write_out(SQL(QUERIES[order.value]).format(conditions=conditions))


def to_listed(row: DictRow, order: ScopeOrder) -> tuple[ScopePlace, ListedScope]:
    """Turn a row into a scope of a list, with its place there."""
    listed = ListedScope(row["agent"], row["user"], row["memory_count"], row["last_written_at"])
    if order is ScopeOrder.NAME:
        return ScopePlace(listed.agent, listed.user), listed
    moment = listed.last_written_at.astimezone(UTC).isoformat()
    return ScopePlace(listed.memories if order is ScopeOrder.SIZE else moment, row["id"]), listed
