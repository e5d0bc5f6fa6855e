"""Recall by keywords: what is filed under the words and names of the cue, the rarer ones first."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal, nothing, skipped
from recollect.core.recall.columns import to_candidates
from recollect.core.recall.cues import Reading
from recollect.core.text.keywords import file_under
from recollect.models.memories import Kind
from recollect.models.recall import Candidate
from recollect.store.database.filter import Columns, bind, restrict
from recollect.store.database.pool import Connection, load_queries
from recollect.store.service.scopes import Place

QUERIES = load_queries(__file__)
COLUMNS = Columns("filed", trust=None)
MOST_KEYWORDS = 512
"""If a cue has more words and names, so many are looked up."""
LONGEST_LIST = 1_000
"""So many memories of one kind and keyword are read, the newest first."""


class KeywordChannel:
    """Propose memories by the rarity of the keywords that they share with the cue, the newest first among equals.

    Each shared keyword adds ln(1 + memories of the scope / memories filed under it). The logarithm lets two distinctive
    keywords win over one that is merely rarer.
    """

    name = "keyword"

    async def ask(self, connection: Connection, place: Place, reading: Reading, limit: int) -> Answer:
        """Send the search."""
        wanted = file_under((*reading.facets.keywords, *reading.facets.names))[:MOST_KEYWORDS]
        if not wanted:
            return skipped("the cue has no keywords")
        if not place.has_keywords:
            return nothing()
        parameters = {
            "scope_id": place.scope_id,
            "keywords": list(wanted),
            "memory_count": place.memory_count,
            "longest": LONGEST_LIST,
            "limit": limit,
            **bind(reading.filter, tuple(Kind)),
        }
        # The statement handles the kinds one by one.
        conditions = restrict(replace(reading.filter, kinds=()), COLUMNS)
        query = sql.SQL(QUERIES["filed"]).format(filter=conditions)
        return partial(read, await connection.execute(query, parameters))


async def read(answer: AsyncCursor[DictRow]) -> Proposal:
    """Read the candidates, best first."""
    rows = await answer.fetchall()
    # What shares two frequent keywords may be further back than either of their lists was read.
    whole = not rows or rows[0]["frequent"] < 2
    return Proposal(
        to_candidates([Candidate(row["id"], row["score"]) for row in rows]), "exact" if whole else "approximate"
    )
