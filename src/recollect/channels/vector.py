"""Recall by meaning: cosine between the cue's vector and every memory's, inside one scope.

A scope is scanned whole through its covering key: exact, and never short of hits because of other
tenants' rows. A scope that was given an index of its own is searched through that, approximately.
"""

from __future__ import annotations

from functools import lru_cache, partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal, skipped
from recollect.core.recall.cues import Reading
from recollect.models.recall import Filter
from recollect.models.service import EmbeddingSpace
from recollect.store.database.filter import MOST_WRITTEN, Columns, bind, restrict
from recollect.store.database.pool import Connection, load_queries, write_out
from recollect.store.memories.embeddings import to_vector, vector_type, vectors_table
from recollect.store.recall.columns import NOTHING, in_columns, note_first_hits, read_columns, tag_cue
from recollect.store.service.scopes import Place

QUERIES = load_queries(__file__)
COLUMNS = Columns("vectors")


class VectorChannel:
    """Propose the memories nearest in the active embedding space."""

    name = "vector"

    async def ask(self, connection: Connection, place: Place, reading: Reading, limit: int) -> Answer:
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
        # An approximate index would stop before it found the few that a filter allows.
        if place.approximate_space != place.space.id or reading.filter.named:
            query = compose(place.space, reading.filter, place.has_names)
            return partial(read, await connection.execute(query, parameters, binary=True), "exact")
        # The planner takes the policy's range for a narrow one and would scan the whole scope instead.
        await connection.execute(QUERIES["avoid_sorting"])
        # Unprepared: only a plan that sees the scope finds the index of that one scope.
        answer = await connection.execute(
            compose_indexed(place.space, place.has_names), parameters, prepare=False, binary=True
        )
        await connection.execute(QUERIES["allow_sorting"])
        return partial(read, answer, "approximate")


@lru_cache(maxsize=MOST_WRITTEN)
def compose(space: EmbeddingSpace, only: Filter, noted: bool) -> sql.SQL:  # noqa: FBT001 - of a cache's key
    """Write the search through a whole scope; where entities are known, its first hits are noted."""
    query = sql.SQL(QUERIES["nearest"]).format(
        vectors=vectors_table(space.id),
        type=vector_type(space),
        dimensions=sql.Literal(space.dimensions),
        filter=restrict(only, COLUMNS),
    )
    return write_out(in_columns(query, note_first_hits("vector") if noted else NOTHING))


@lru_cache(maxsize=MOST_WRITTEN)
def compose_indexed(space: EmbeddingSpace, noted: bool) -> sql.SQL:  # noqa: FBT001 - of a cache's key
    """Write the search through a scope's own index."""
    query = sql.SQL(QUERIES["nearest_indexed"]).format(
        vectors=vectors_table(space.id), type=vector_type(space), dimensions=sql.Literal(space.dimensions + 2)
    )
    return write_out(in_columns(query, note_first_hits("vector") if noted else NOTHING))


async def read(answer: AsyncCursor[DictRow], method: str) -> Proposal:
    """Read the candidates, nearest first."""
    candidates, _ = await read_columns(answer)
    return Proposal(candidates, method)
