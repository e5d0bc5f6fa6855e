"""Recall as the memory stream does: by recency, similarity and importance together, over all of a scope."""

from __future__ import annotations

from functools import partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal, skipped
from recollect.core.agents.scoring import STREAM_KINDS, ResolvedWeighing, horizon, resolve_weighing
from recollect.core.recall.columns import Candidates, to_candidates
from recollect.core.recall.cues import Reading
from recollect.models.recall import Candidate, Factors, Filter, Mode, Tally
from recollect.store.database.filter import Columns, bind, list_featured, name_features, restrict
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories.embeddings import to_vector, vector_type
from recollect.store.service.scopes import Place

QUERIES = load_queries(__file__)
COLUMNS = Columns("ranked")
FARTHEST_HORIZON = 20_000
"""A decay so slow that recency matters beyond this rank is computed for the whole scope instead."""
NEAR_HORIZON = 2_000
"""Through an index, everything that recency could raise is scored one by one: more would be slower than a scan."""


class StreamChannel:
    """Propose what is recent, relevant and important, each scaled over all candidates of the scope."""

    name = "stream"

    async def ask(self, connection: Connection, place: Place, reading: Reading, limit: int) -> Answer:
        """Send the search."""
        if place.space is None:
            return skipped("there is no embedding space")
        if reading.vector is None:
            return skipped(reading.without_vector or "the cue has no vector")
        resolved = resolve_weighing(reading.weighing, place.profile.weighing)
        method = choose(place, reading, resolved)
        query: sql.Composed = sql.SQL(QUERIES[method]).format(
            rank=sql.Identifier(f"rank_{method}_{place.space.id}"),
            type=vector_type(place.space),
            allowed=list_featured(reading.filter),
        )
        at = reading.filter.at
        parameters = {
            "scope_id": place.scope_id,
            "vector": to_vector(place.space, reading.vector),
            "opposite": to_vector(place.space, -reading.vector),
            "weights": list(resolved.weights),
            "decay": resolved.decay,
            "mode": resolved.mode.value,
            "horizon": horizon(resolved),
            "limit": limit if at is None else None,
            "most": limit,
            **bind(reading.filter, STREAM_KINDS),
        }
        if at is not None:
            query = sql.SQL(QUERIES["then"]).format(ranking=query, then=restrict(Filter(at=at), COLUMNS))
        answer = await connection.execute(query, parameters)
        return partial(read, answer, "near-exact" if method == "near" else "exact", place.memory_count)


def choose(place: Place, reading: Reading, resolved: ResolvedWeighing) -> str:
    """Choose how to rank: through the scope's index, newest first, or candidate by candidate."""
    barred = reading.filter.min_trust > 0 or bool(name_features(reading.filter))
    if resolved.mode is not Mode.NEWEST or barred or horizon(resolved) > FARTHEST_HORIZON:
        return "whole"
    indexed = place.space is not None and place.approximate_space == place.space.id
    return "near" if indexed and not reading.filter.past and horizon(resolved) <= NEAR_HORIZON else "newest"


async def read(answer: AsyncCursor[DictRow], method: str, memory_count: int) -> Proposal:
    """Read the candidates with their factors, best first, and how many they were chosen from."""
    rows = await answer.fetchall()
    candidates = [
        Candidate(row["id"], row["score"], Factors(row["recency"], row["similarity"], row["importance"], row["rank"]))
        for row in rows
    ]
    if not rows:
        return Proposal(Candidates(), method, Tally(0, None, None))
    # The index does not tell how many there are: the scope's own count stands for it.
    considered = memory_count if rows[0]["candidates"] is None else rows[0]["candidates"]
    return Proposal(to_candidates(candidates), method, Tally(considered, rows[0]["lowest"], rows[0]["score"]))
