"""Recall recent memories: the newest by the time when they happened, independent of the cue."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal
from recollect.core.recall.columns import Candidates, to_ids
from recollect.core.recall.cues import ParsedCue
from recollect.models.filters import Filter
from recollect.models.memories import Kind
from recollect.store.database.filter import AND, FEATURE_ROWS, MEMORIES_BY_TIME, bind, restrict, restrict_rows
from recollect.store.database.pool import Connection, load_queries
from recollect.store.service.scopes import ScopeHandle

QUERIES = load_queries(__file__)
HALVED_AFTER = 10
"""At this rank after the newest memory, the score is half."""


class RecentChannel:
    """Propose the newest memories, without idle ones unless the cue has no text."""

    name = "recent"

    async def send_query(self, connection: Connection, place: ScopeHandle, reading: ParsedCue, limit: int) -> Answer:
        """Send the search."""
        parameters = {
            "scope_id": place.scope_id,
            "limit": limit,
            **bind(reading.filter, tuple(Kind)),
        }
        query = list_all(reading.filter) if reading.blank else list_active(reading.filter)
        return partial(read_recent_candidates, await connection.execute(query, parameters))


def list_active(only: Filter) -> sql.Composed:
    """Return the query for the newest memories that are not idle."""
    # The statement handles the kinds one by one.
    return sql.SQL(QUERIES["newest"]).format(filter=restrict(replace(only, kinds=()), MEMORIES_BY_TIME))


def list_all(only: Filter) -> sql.Composed:
    """Return the query for all memories that a filter admits."""
    # If the filter names a state, its conditions include it.
    among = [] if only.state else [AND, sql.SQL(QUERIES["then" if only.past else "now"])]
    return sql.SQL(QUERIES["admitted"]).format(
        states=sql.Composed(among), filter=restrict_rows(only, columns=FEATURE_ROWS)
    )


async def read_recent_candidates(answer: AsyncCursor[DictRow]) -> Proposal:
    """Read the candidates, newest first.

    The score falls with the rank: half at 10, a third at 20.
    """
    rows = await answer.fetchall()
    scores = 1 / (1 + np.arange(len(rows)) / HALVED_AFTER)
    return Proposal(Candidates(to_ids(row["id"] for row in rows), scores), "exact")
