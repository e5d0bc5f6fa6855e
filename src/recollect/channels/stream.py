"""Recall like the memory stream: by recency, similarity and importance together, over a whole scope."""

from __future__ import annotations

from functools import partial

from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.channels.channel import Answer, Proposal, skipped
from recollect.core.agents.scoring import STREAM_KINDS, ResolvedWeighing, horizon, resolve_weighing
from recollect.core.recall.columns import Candidates, to_candidates
from recollect.core.recall.cues import ParsedCue
from recollect.models.filters import Filter
from recollect.models.recall import Candidate, ChannelStats, Factors, Mode
from recollect.models.service import EmbeddingSpace
from recollect.store.database.filter import Columns, bind, list_featured, name_features, restrict
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories.embeddings import to_vector, vector_type, vectors_table
from recollect.store.service.scopes import ScopeHandle

QUERIES = load_queries(__file__)
COLUMNS = Columns("ranked")
MAX_RECENCY_RANK = 20_000
"""With a decay so slow that recency matters beyond this rank, the whole scope is scored instead."""
NEAR_HORIZON = 2_000
"""With an index, every memory within the horizon of recency is scored singly; beyond this number a scan is faster."""


class StreamChannel:
    """Propose recent, relevant and important memories; each factor is scaled over all candidates."""

    name = "stream"

    async def send_query(self, connection: Connection, place: ScopeHandle, reading: ParsedCue, limit: int) -> Answer:
        """Send the search."""
        if place.space is None:
            return skipped("there is no embedding space")
        if reading.vector is None:
            return skipped(reading.without_vector or "the cue has no vector")
        resolved = resolve_weighing(reading.weighing, place.profile.weighing)
        method = choose_method(place, reading, resolved)
        query = write_query(method, place.space, list_featured(reading.filter))
        at = reading.filter.at
        parameters = {
            "scope_id": place.scope_id,
            "vector": to_vector(place.space, reading.vector),
            **dict(zip(("recency", "similarity", "importance"), resolved.weights, strict=True)),
            "decay": resolved.decay,
            "mode": resolved.mode.value,
            "horizon": horizon(resolved),
            "limit": limit if at is None else None,
            "most": limit,
            **bind(reading.filter, STREAM_KINDS),
        }
        if at is not None:
            query = sql.SQL(QUERIES["then"]).format(ranking=query, then=restrict(Filter(at=at), COLUMNS))
        if method == "near":
            return partial(
                read_stream_candidates, await connection.execute(query, parameters), "near-exact", place.memory_count
            )
        await connection.execute(QUERIES["plan_once"])
        answer = await connection.execute(query, parameters)
        await connection.execute(QUERIES["plan_as_usual"])
        return partial(read_stream_candidates, answer, "exact", place.memory_count)


def write_query(method: str, space: EmbeddingSpace, allowed: sql.Composable) -> sql.Composed:
    """Write the query that ranks in one way."""
    lowest = sql.SQL("null::double precision" if method == "near" else QUERIES["lowest"])
    return sql.SQL(QUERIES[method]).format(
        vectors=vectors_table(space.id),
        type=vector_type(space),
        space=sql.Literal(space.id),
        allowed=allowed,
        place=sql.SQL(QUERIES["place"]),
        scored=sql.SQL(QUERIES["scored"]).format(lowest=lowest),
    )


def choose_method(place: ScopeHandle, reading: ParsedCue, resolved: ResolvedWeighing) -> str:
    """Choose the method: the scope's index, newest first, or a scan of the whole scope."""
    barred = reading.filter.min_trust > 0 or bool(name_features(reading.filter))
    if resolved.mode is not Mode.NEWEST or barred or horizon(resolved) > MAX_RECENCY_RANK:
        return "whole"
    indexed = place.space is not None and place.approximate_space == place.space.id
    return "near" if indexed and not reading.filter.past and horizon(resolved) <= NEAR_HORIZON else "newest"


async def read_stream_candidates(answer: AsyncCursor[DictRow], method: str, memory_count: int) -> Proposal:
    """Read the candidates with their factors, best first, and the number of ranked memories."""
    rows = await answer.fetchall()
    candidates = [
        Candidate(row["id"], row["score"], Factors(row["recency"], row["similarity"], row["importance"], row["rank"]))
        for row in rows
    ]
    if not rows:
        return Proposal(Candidates(), method, ChannelStats(0, None, None))
    # The index does not return the number of candidates, so the scope's count is used.
    considered = memory_count if rows[0]["candidates"] is None else rows[0]["candidates"]
    return Proposal(to_candidates(candidates), method, ChannelStats(considered, rows[0]["lowest"], rows[0]["score"]))
