"""Recall by words: BM25 over the analysed terms of one scope, in any script, without a model."""

from __future__ import annotations

from functools import lru_cache, partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal, skipped
from recollect.core.recall.cues import Reading
from recollect.core.text.terms import hash_term, slot_of
from recollect.models.recall import Filter
from recollect.store.database.filter import MOST_WRITTEN, Columns, bind, list_featured, restrict
from recollect.store.database.pool import Connection, load_queries, write_out
from recollect.store.recall.columns import in_columns, note_first_hits, read_columns, tag_cue
from recollect.store.service.scopes import Place

QUERIES = load_queries(__file__)
RARITIES = sql.SQL(", any_value(rarities) as rarities")
COLUMNS = Columns("matched")


class TextChannel:
    """Propose the memories that share words with the cue, rare words first."""

    name = "text"

    async def ask(self, connection: Connection, place: Place, reading: Reading, limit: int) -> Answer:
        """Send the search."""
        if place.scope_id is None or not reading.terms:
            return skipped("the cue has no words to look for")
        scope_id = place.scope_id
        hashes = [hash_term(scope_id, term) for term in reading.terms]
        parameters = {
            "scope_id": scope_id,
            "terms": hashes,
            "slots": [slot_of(term) for term in reading.terms],
            "memory_count": place.memory_count,
            "limit": limit,
            "cue": tag_cue(reading),
            **bind(reading.filter),
        }
        return partial(
            read, await connection.execute(compose(reading.filter, place.has_names), parameters, binary=True)
        )


@lru_cache(maxsize=MOST_WRITTEN)
def compose(only: Filter, noted: bool) -> sql.SQL:  # noqa: FBT001 - of a cache's key
    """Write the search; where entities are known, its first hits are noted."""
    # What was true then is chosen of all that matched: a term is as frequent as it was.
    then = restrict(Filter(at=only.at), COLUMNS)
    query = sql.SQL(QUERIES["match_then" if only.past else "match"]).format(then=then, allowed=list_featured(only))
    return write_out(in_columns(query, RARITIES + note_first_hits("text") if noted else RARITIES))


async def read(answer: AsyncCursor[DictRow]) -> Proposal:
    """Read the candidates, best first."""
    candidates, row = await read_columns(answer)
    return Proposal(candidates, "exact", rarities=tuple(row["rarities"] or ()))
