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
from recollect.store.database.filter import MEMORIES, bind, restrict
from recollect.store.database.pool import Connection, load_queries
from recollect.store.service.scopes import Place

QUERIES = load_queries(__file__)
HALVED_AFTER = 10
"""So many places after the newest memory, one counts half as much."""


class RecentChannel:
    """Propose the newest memories; idle memories are skipped."""

    name = "recent"

    async def ask(self, connection: Connection, place: Place, reading: Reading, limit: int) -> Answer:
        """Send the search."""
        parameters = {
            "scope_id": place.scope_id,
            "limit": limit,
            **bind(reading.filter, tuple(Kind)),
        }
        # The statement handles the kinds one by one.
        conditions = restrict(replace(reading.filter, kinds=()), MEMORIES)
        query = sql.SQL(QUERIES["newest"]).format(filter=conditions)
        return partial(read, await connection.execute(query, parameters))


async def read(answer: AsyncCursor[DictRow]) -> Proposal:
    """Read the candidates, newest first; the score falls with the place, half at ten, a third at twenty."""
    rows = await answer.fetchall()
    scores = 1 / (1 + np.arange(len(rows)) / HALVED_AFTER)
    return Proposal(Candidates(to_ids(row["id"] for row in rows), scores), "exact")
