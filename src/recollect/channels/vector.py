"""Recall by meaning: the cosine between the vectors of the cue and of every memory in a scope.

A scope is scanned completely through its covering key: this is exact, and rows of other tenants have no effect. If a
scope has its own index, the index is searched, approximately.
"""

from __future__ import annotations

from functools import lru_cache, partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal, skipped
from recollect.core.recall.cues import ParsedCue
from recollect.models.filters import Filter
from recollect.models.service import EmbeddingSpace
from recollect.store.database.filter import MAX_CACHED_STATEMENTS, Columns, bind, restrict
from recollect.store.database.pool import Connection, load_queries, to_sql
from recollect.store.memories.embeddings import to_vector, vector_type, vectors_table
from recollect.store.recall.columns import NOTHING, in_columns, note_first_hits, read_columns, tag_cue
from recollect.store.service.scopes import ScopeHandle

QUERIES = load_queries(__file__)
COLUMNS = Columns("vectors")


class VectorChannel:
    """Propose the memories nearest in the active embedding space."""

    name = "vector"

    async def send_query(self, connection: Connection, place: ScopeHandle, reading: ParsedCue, limit: int) -> Answer:
        """Send the search."""
        if place.space is None:
            return skipped("there is no embedding space")
        if reading.vector is None:
            return skipped(reading.without_vector or "the cue has no vector")
        parameters = {
            "vector": to_vector(place.space, reading.vector),
            "scope_id": place.scope_id,
            "limit": limit,
            "cue": tag_cue(reading),
            **bind(reading.filter),
        }
        # An approximate index would stop before it found the few memories that a filter admits.
        if place.approximate_space != place.space.id or reading.filter.named:
            query = compose(place.space, reading.filter, place.has_names)
            return partial(read_vector_candidates, await connection.execute(query, parameters, binary=True), "exact")
        # The planner assumes that the policy's range is narrow, and would scan the whole scope instead.
        await connection.execute(QUERIES["avoid_sorting"])
        # Not prepared: only a plan with the scope's value uses the index of that scope.
        answer = await connection.execute(
            compose_indexed(place.space, place.has_names), parameters, prepare=False, binary=True
        )
        await connection.execute(QUERIES["allow_sorting"])
        return partial(read_vector_candidates, answer, "approximate")


@lru_cache(maxsize=MAX_CACHED_STATEMENTS)
def compose(space: EmbeddingSpace, only: Filter, noted: bool) -> sql.SQL:  # noqa: FBT001 - of a cache's key
    """Return the query for a whole scope; if it has entities, the query records its first hits."""
    query = sql.SQL(QUERIES["nearest"]).format(
        vectors=vectors_table(space.id),
        type=vector_type(space),
        dimensions=sql.Literal(space.dimensions),
        filter=restrict(only, COLUMNS),
    )
    return to_sql(in_columns(query, note_first_hits("vector") if noted else NOTHING))


@lru_cache(maxsize=MAX_CACHED_STATEMENTS)
def compose_indexed(space: EmbeddingSpace, noted: bool) -> sql.SQL:  # noqa: FBT001 - of a cache's key
    """Return the query for a scope's own index."""
    query = sql.SQL(QUERIES["nearest_indexed"]).format(
        vectors=vectors_table(space.id), type=vector_type(space), dimensions=sql.Literal(space.dimensions + 2)
    )
    return to_sql(in_columns(query, note_first_hits("vector") if noted else NOTHING))


async def read_vector_candidates(answer: AsyncCursor[DictRow], method: str) -> Proposal:
    """Read the candidates, nearest first."""
    candidates, _ = await read_columns(answer)
    return Proposal(candidates, method)
