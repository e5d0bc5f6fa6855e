"""Recall by time: memories in periods that the cue mentions, narrow periods first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal, skipped
from recollect.core.dates.periods import choose_periods, rate
from recollect.core.recall.cues import ParsedCue
from recollect.core.text.terms import slot_of
from recollect.models.memories import Kind
from recollect.store.database.filter import MEMORIES_BY_TIME, bind, restrict
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories.copy_protocol import SLOTS
from recollect.store.recall.columns import in_columns, read_columns
from recollect.store.service.scopes import ScopeHandle

QUERIES = load_queries(__file__)
MAX_PER_PERIOD = 1_000
"""Maximum number of memories to read per kind and period, the newest."""


class DateChannel:
    """Propose memories in the periods of the cue.

    The narrowest period comes first; within a period, memories with most words of the cue.
    """

    name = "date"

    async def send_query(self, connection: Connection, place: ScopeHandle, reading: ParsedCue, limit: int) -> Answer:
        """Send the search."""
        periods = choose_periods(reading.facets.periods)
        if not periods:
            return skipped("the cue names no time")
        parameters = {
            "scope_id": place.scope_id,
            "starts": [period.start for period in periods],
            "ends": [period.end for period in periods],
            "scores": [rate(period) for period in periods],
            "words": join_words(reading.terms),
            "most": max(limit, MAX_PER_PERIOD),
            "limit": limit,
            **bind(reading.filter, tuple(Kind)),
        }
        # The statement handles the kinds one by one.
        conditions = restrict(replace(reading.filter, kinds=()), MEMORIES_BY_TIME)
        query = sql.SQL(QUERIES["within"]).format(filter=conditions)
        return partial(read_date_candidates, await connection.execute(in_columns(query), parameters, binary=True))


def join_words(terms: Sequence[str]) -> str | None:
    """Return the terms of a cue as a sparse vector with equal weights; None if there are none."""
    slots = sorted({slot_of(term) for term in terms})
    return "{" + ",".join(f"{each}:1" for each in slots) + f"}}/{SLOTS}" if slots else None


async def read_date_candidates(answer: AsyncCursor[DictRow]) -> Proposal:
    """Read the candidates, those of the narrowest period first."""
    return Proposal((await read_columns(answer))[0], "exact")
