"""Read counts of one scope's content in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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


async def fetch_overview(
    database: Database,
    scope: Scope,
    *,
    limit: int | None = MAX_LISTED_KEYWORDS,
    starts: Sequence[tuple[date, UUID]] = (),
) -> Overview:
    """Read a scope's counters, its strongest keywords and its agent's profile; an unwritten scope is empty.

    Memories are also counted by day from the given days on; each day comes with its first ID.
    """
    days = {**names(scope), "starts": [first for _, first in starts]}
    async with database.reading(scope.tenant_id) as connection:
        counted = await connection.execute(QUERIES["counts"], names(scope))
        strongest = await connection.execute(QUERIES["strongest"], {**names(scope), "limit": limit})
        kept = await agents.query_agent(connection, scope)
        by_day = await connection.execute(QUERIES["activity"], days) if starts else None
    counts = await counted.fetchone() or {}
    strengths = [KeywordCount(row["keyword"], Kind(row["kind"]), row["strength"]) for row in await strongest.fetchall()]
    daily = await by_day.fetchall() if by_day else ()
    return Overview(
        memories=counts.get("memory_count", 0),
        events=counts.get("event_count", 0),
        thoughts=counts.get("thought_count", 0),
        chats=counts.get("chat_count", 0),
        unreflected_importance=counts.get("unreflected_importance", 0.0),
        unreflected_memories=counts.get("unreflected_memories", 0),
        strengths=tuple(strengths),
        # Keys that are bound to a user may not read the agent's metadata.
        profile=replace(await agents.read_agent(kept), metadata={}),
        messages=counts.get("message", 0),
        facts=counts.get("fact", 0),
        summaries=counts.get("summary", 0),
        kinds={kind: counts.get(kind.value, 0) for kind in Kind},
        activity=tuple(DailyCount(starts[row["place"] - 1][0], Kind(row["kind"]), row["memories"]) for row in daily),
        **{name: counts.get(name, 0) for name in COUNTED},
    )


async def count_others(database: Database, scope: Scope) -> dict[str, int]:
    """Count the content of a scope, without the memories that `list` returns."""
    async with database.reading(scope.tenant_id) as connection:
        counted = await connection.execute(QUERIES["others"], names(scope))
    return await counted.fetchone() or {}
