"""Recall by words: BM25 over the terms of one scope, in any script, without a model."""

from __future__ import annotations

from functools import lru_cache, partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal, skipped
from recollect.core.recall.cues import ParsedCue
from recollect.core.text.terms import hash_term, slot_of
from recollect.models.filters import Filter
from recollect.store.database.filter import MAX_CACHED_STATEMENTS, Columns, bind, list_featured, restrict
from recollect.store.database.pool import Connection, load_queries, to_sql
from recollect.store.recall.columns import in_columns, note_first_hits, read_columns, tag_cue
from recollect.store.service.scopes import ScopeHandle

QUERIES = load_queries(__file__)
RARITIES = sql.SQL(", any_value(rarities) as rarities")
COLUMNS = Columns("matched")


class TextChannel:
    """Propose memories with words of the cue; rare words count more."""

    name = "text"

    async def send_query(self, connection: Connection, place: ScopeHandle, reading: ParsedCue, limit: int) -> Answer:
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
            read_text_candidates,
            await connection.execute(compose(reading.filter, place.has_names), parameters, binary=True),
        )


@lru_cache(maxsize=MAX_CACHED_STATEMENTS)
def compose(only: Filter, noted: bool) -> sql.SQL:  # noqa: FBT001 - of a cache's key
    """Return the query; if the scope has entities, it records its first hits."""
    # The versions of a past time are chosen from all matches, so that terms keep their past frequencies.
    then = restrict(Filter(at=only.at), COLUMNS)
    query = sql.SQL(QUERIES["match_then" if only.past else "match"]).format(then=then, allowed=list_featured(only))
    return to_sql(in_columns(query, RARITIES + note_first_hits("text") if noted else RARITIES))


async def read_text_candidates(answer: AsyncCursor[DictRow]) -> Proposal:
    """Read the candidates, best first."""
    candidates, row = await read_columns(answer)
    return Proposal(candidates, "exact", rarities=tuple(row["rarities"] or ()))
