"""Recall what is recent: the newest memories by when they happened, independent of the cue."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal
from recollect.core.recall.columns import Candidates, to_ids
from recollect.core.recall.cues import Reading
from recollect.models.memories import Kind
from recollect.models.recall import Filter
from recollect.store.database.filter import AND, FEATURE_ROWS, MEMORIES_BY_TIME, bind, restrict, restrict_rows
from recollect.store.database.pool import Connection, load_queries
from recollect.store.service.scopes import Place

QUERIES = load_queries(__file__)
HALVED_AFTER = 10
"""So many places after the newest memory, one counts half as much."""


class RecentChannel:
    """Propose the newest memories; idle ones are skipped, unless the cue has no text and lists all that there are."""

    name = "recent"

    async def ask(self, connection: Connection, place: Place, reading: Reading, limit: int) -> Answer:
        """Send the search."""
        parameters = {
            "scope_id": place.scope_id,
            "limit": limit,
            **bind(reading.filter, tuple(Kind)),
        }
        query = list_all(reading.filter) if reading.blank else list_active(reading.filter)
        return partial(read, await connection.execute(query, parameters))


def list_active(only: Filter) -> sql.Composed:
    """Write the statement for the newest in which something happens."""
    # It handles the kinds one by one.
    return sql.SQL(QUERIES["newest"]).format(filter=restrict(replace(only, kinds=()), MEMORIES_BY_TIME))


def list_all(only: Filter) -> sql.Composed:
    """Write the statement for all that a filter admits."""
    # A state that is named is among the filter's own conditions.
    among = [] if only.state else [AND, sql.SQL(QUERIES["then" if only.past else "now"])]
    return sql.SQL(QUERIES["admitted"]).format(
        states=sql.Composed(among), filter=restrict_rows(only, columns=FEATURE_ROWS)
    )


async def read(answer: AsyncCursor[DictRow]) -> Proposal:
    """Read the candidates, newest first; the score falls with the place, half at ten, a third at twenty."""
    rows = await answer.fetchall()
    scores = 1 / (1 + np.arange(len(rows)) / HALVED_AFTER)
    return Proposal(Candidates(to_ids(row["id"] for row in rows), scores), "exact")
