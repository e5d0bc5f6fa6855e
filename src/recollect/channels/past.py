"""Recall memories outside the indexes: past versions, and memories in a state that the filter names.

They are scored like in the channels `vector` and `text`, and ranked among their candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal, skipped
from recollect.core.recall.columns import Candidates
from recollect.core.recall.cues import ParsedCue
from recollect.core.text.terms import hash_term, slot_of
from recollect.models.filters import Filter
from recollect.store.database.filter import SCOPE_ID, bind, find_allowed, list_featured
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories.embeddings import to_vector, vector_type
from recollect.store.recall.columns import in_columns, read_columns
from recollect.store.service.scopes import ScopeHandle

QUERIES = load_queries(__file__)


class PastChannel:
    """Propose memories outside the indexes, if a cue sets a time or a state."""

    name = "past"

    async def send_query(self, connection: Connection, place: ScopeHandle, reading: ParsedCue, limit: int) -> Answer:
        """Send the searches: by meaning if the cue has a vector, and by words if it has terms."""
        if place.scope_id is None or not reading.filter.left:
            return skipped("the cue names no time")
        bounds = {"scope_id": place.scope_id, "limit": limit, **bind(reading.filter)}
        places = {"allowed": list_featured(reading.filter), "left": find_left(reading.filter)}
        asked: dict[str, AsyncCursor[DictRow]] = {}
        if place.space is not None and reading.vector is not None:
            query = sql.SQL(QUERIES["nearest"]).format(type=vector_type(place.space), **places)
            vector = {"vector": to_vector(place.space, reading.vector), "space_id": place.space.id}
            asked["vector"] = await connection.execute(in_columns(query), bounds | vector, binary=True)
        if reading.terms:
            query = sql.SQL(QUERIES["match"]).format(**places)
            parameters = bounds | words(place.scope_id, place, reading)
            asked["text"] = await connection.execute(in_columns(query), parameters, binary=True)
        return (
            partial(read_past_candidates, asked)
            if asked
            else skipped("the cue has neither a vector nor words to look for")
        )


def find_left(only: Filter) -> sql.Composed:
    """Return the query for the IDs of memories outside the indexes."""
    if only.outside:
        # The state itself decides which versions match.
        return find_allowed(only, SCOPE_ID)
    return sql.SQL(QUERIES["versions"]).format(allowed=list_featured(only))


def words(scope_id: int, place: ScopeHandle, reading: ParsedCue) -> dict[str, object]:
    """Return the parameters of a search by words."""
    hashes = [hash_term(scope_id, term) for term in reading.terms]
    slots = [slot_of(term) for term in reading.terms]
    return {"terms": hashes, "slots": slots, "memory_count": place.memory_count}


async def read_past_candidates(asked: Mapping[str, AsyncCursor[DictRow]]) -> Proposal:
    """Read the candidates, each in the unit of its original channel."""
    lent = {name: (await read_columns(answer))[0] for name, answer in asked.items()}
    return Proposal(Candidates(), "exact", lent=lent)
