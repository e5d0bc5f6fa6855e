"""Read counts of one scope's content in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from uuid import UUID

from recollect.models.agents import DailyCount, KeywordCount, Overview
from recollect.models.memories import Kind
from recollect.models.service import Scope
from recollect.store.agents import agents
from recollect.store.database.pool import Database, load_queries
from recollect.store.service.scopes import names

QUERIES = load_queries(__file__)
MAX_LISTED_KEYWORDS = 20
COUNTED = ("to_rederive", "conversations", "entities", "topics", "items", "faded", "archived")


async def fetch_overview(database: Database, scope: Scope, limit: int | None = MAX_LISTED_KEYWORDS) -> Overview:
    """Read a scope's counters, its strongest keywords and its agent's profile; an unwritten scope is empty."""
    async with database.reading(scope.tenant_id) as connection:
        counted = await connection.execute(QUERIES["counts"], names(scope))
        strongest = await connection.execute(QUERIES["strongest"], {**names(scope), "limit": limit})
        kept = await agents.query_agent(connection, scope)
    counts = await counted.fetchone() or {}
    strengths = [KeywordCount(row["keyword"], Kind(row["kind"]), row["strength"]) for row in await strongest.fetchall()]
    return Overview(
        memories=counts.get("memory_count", 0),
        events=counts.get("event_count", 0),
        thoughts=counts.get("thought_count", 0),
        chats=counts.get("chat_count", 0),
        unreflected_importance=counts.get("unreflected_importance", 0.0),
        unreflected_memories=counts.get("unreflected_memories", 0),
        strengths=tuple(strengths),
        profile=(await agents.read_agent(kept)).profile,
        messages=counts.get("message", 0),
        facts=counts.get("fact", 0),
        summaries=counts.get("summary", 0),
        kinds={kind: counts.get(kind.value, 0) for kind in Kind},
        **{name: counts.get(name, 0) for name in COUNTED},
    )


async def count_others(database: Database, scope: Scope) -> dict[str, int]:
    """Count the content of a scope, without the memories that `browse` lists."""
    async with database.reading(scope.tenant_id) as connection:
        counted = await connection.execute(QUERIES["others"], names(scope))
    return await counted.fetchone() or {}


async def count_days(database: Database, scope: Scope, starts: Sequence[tuple[date, UUID]]) -> list[DailyCount]:
    """Count memories by day and kind from the given days on; each day comes with its first ID."""
    parameters = {**names(scope), "starts": [first for _, first in starts]}
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["activity"], parameters)
    rows = await found.fetchall()
    return [DailyCount(starts[row["place"] - 1][0], Kind(row["kind"]), row["memories"]) for row in rows]
