"""Recall by keywords: memories with words and names of the cue as keywords, rare ones first."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal, nothing, skipped
from recollect.core.recall.columns import to_candidates
from recollect.core.recall.cues import ParsedCue
from recollect.core.text.keywords import file_under
from recollect.models.memories import Kind
from recollect.models.recall import Candidate
from recollect.store.database.filter import Columns, bind, restrict
from recollect.store.database.pool import Connection, load_queries
from recollect.store.service.scopes import ScopeHandle

QUERIES = load_queries(__file__)
COLUMNS = Columns("filed", trust=None)
MAX_KEYWORDS = 512
"""Maximum number of keywords to search for."""
MAX_MEMORIES_PER_KEYWORD = 1_000
"""Maximum number of memories to read per kind and keyword, the newest first."""


class KeywordChannel:
    """Propose memories by the rarity of the keywords that they share with the cue; ties come newest first.

    Each shared keyword adds ln(1 + memories of the scope / memories with the keyword). Because of the logarithm, two
    distinctive keywords win over one that is only rarer.
    """

    name = "keyword"

    async def send_query(self, connection: Connection, place: ScopeHandle, reading: ParsedCue, limit: int) -> Answer:
        """Send the search."""
        wanted = file_under((*reading.facets.keywords, *reading.facets.names))[:MAX_KEYWORDS]
        if not wanted:
            return skipped("the cue has no keywords")
        if not place.has_keywords:
            return nothing()
        parameters = {
            "scope_id": place.scope_id,
            "keywords": list(wanted),
            "memory_count": place.memory_count,
            "longest": MAX_MEMORIES_PER_KEYWORD,
            "limit": limit,
            **bind(reading.filter, tuple(Kind)),
        }
        # The statement handles the kinds one by one.
        conditions = restrict(replace(reading.filter, kinds=()), COLUMNS)
        query = sql.SQL(QUERIES["filed"]).format(filter=conditions)
        return partial(read_keyword_candidates, await connection.execute(query, parameters))


async def read_keyword_candidates(answer: AsyncCursor[DictRow]) -> Proposal:
    """Read the candidates, best first."""
    rows = await answer.fetchall()
    # A memory with two frequent keywords may be older than the part of their lists that was read.
    whole = not rows or rows[0]["frequent"] < 2
    return Proposal(
        to_candidates([Candidate(row["id"], row["score"]) for row in rows]), "exact" if whole else "approximate"
    )
