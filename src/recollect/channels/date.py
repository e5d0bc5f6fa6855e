"""Recall by time: what happened in a period that the cue names, narrow periods first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal, skipped
from recollect.core.dates.periods import choose, rate
from recollect.core.recall.cues import Reading
from recollect.core.text.terms import slot_of
from recollect.models.memories import Kind
from recollect.store.database.filter import MEMORIES_BY_TIME, bind, restrict
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories.copied import SLOTS
from recollect.store.recall.columns import in_columns, read_columns
from recollect.store.service.scopes import Place

QUERIES = load_queries(__file__)
MOST_WITHIN = 1_000
"""So many of a kind and period are read, the newest."""


class DateChannel:
    """Propose what happened in the periods of the cue, the narrowest first, of each what shares most words with it."""

    name = "date"

    async def ask(self, connection: Connection, place: Place, reading: Reading, limit: int) -> Answer:
        """Send the search."""
        periods = choose(reading.facets.periods)
        if not periods:
            return skipped("the cue names no time")
        parameters = {
            "scope_id": place.scope_id,
            "starts": [period.start for period in periods],
            "ends": [period.end for period in periods],
            "scores": [rate(period) for period in periods],
            "words": join_words(reading.terms),
            "most": max(limit, MOST_WITHIN),
            "limit": limit,
            **bind(reading.filter, tuple(Kind)),
        }
        # The statement handles the kinds one by one.
        conditions = restrict(replace(reading.filter, kinds=()), MEMORIES_BY_TIME)
        query = sql.SQL(QUERIES["within"]).format(filter=conditions)
        return partial(read, await connection.execute(in_columns(query), parameters, binary=True))


def join_words(terms: Sequence[str]) -> str | None:
    """Write the terms of a cue as one sparse vector in which all weigh the same; None if there are none."""
    slots = sorted({slot_of(term) for term in terms})
    return "{" + ",".join(f"{each}:1" for each in slots) + f"}}/{SLOTS}" if slots else None


async def read(answer: AsyncCursor[DictRow]) -> Proposal:
    """Read the candidates, those of the narrowest period first."""
    return Proposal((await read_columns(answer))[0], "exact")
