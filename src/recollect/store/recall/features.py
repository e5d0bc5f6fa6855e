"""Load ranking features of candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from functools import lru_cache
from uuid import UUID

from psycopg import sql
from psycopg.rows import DictRow

from recollect.core.recall.cues import Reading
from recollect.core.recall.features import MOST_READ, QUESTION_MARKS, is_instruction, tells_number, tells_time
from recollect.core.text.names import normalise_name
from recollect.core.text.terms import hash_term
from recollect.models.memories import Kind, Role
from recollect.models.recall import Asks, Features
from recollect.models.service import EmbeddingSpace
from recollect.store.database.filter import bind, restrict_rows
from recollect.store.database.pool import Database, load_queries
from recollect.store.memories.embeddings import to_vector, vector_type, vectors_table
from recollect.store.service.scopes import Place, tenant_of

QUERIES = load_queries(__file__)
SIDE_BY_SIDE = timedelta(minutes=30)
"""Events so far apart count as neighbours, like a message and the next."""


@dataclass(frozen=True, slots=True)
class CandidateFeatures:
    """Features of candidates, and their beginnings."""

    features: Mapping[UUID, Features]
    beginnings: Mapping[UUID, str]


async def load_features(
    database: Database, place: Place, ids: Sequence[UUID], reading: Reading, seconds: float
) -> CandidateFeatures:
    """Load the features of candidates; what was forgotten meanwhile is absent."""
    parameters: dict[str, object] = {
        "scope_id": place.scope_id,
        "ids": list(ids),
        "terms": [hash_term(place.scope_id or 0, term) for term in reading.terms],
        "most_read": MOST_READ,
        **bind(reading.filter),
    }
    cosine: sql.Composable = sql.SQL("null::double precision")
    placed: sql.Composable = sql.SQL("")
    if place.space is not None and reading.vector is not None:
        parameters["vector"] = to_vector(place.space, reading.vector)
        cosine, placed = sql.SQL("placed.cosine"), place_in(place.space)
    query = sql.SQL(QUERIES["features"]).format(cosine=cosine, placed=placed, filter=restrict_rows(reading.filter))
    async with database.reading(tenant_of(place.scope_id or 0), seconds=seconds) as connection:
        answer = await connection.execute(query, parameters, binary=True)
    rows = await answer.fetchall()
    all_features = {row["id"]: to_features(row, reading.facets.asks) for row in rows}
    return CandidateFeatures(all_features, {row["id"]: row["beginning"] for row in rows})


def place_in(space: EmbeddingSpace) -> sql.Composed:
    """Look up the cosine of each candidate and the cue's vector."""
    return sql.SQL(QUERIES["placed"]).format(
        vectors=vectors_table(space.id), type=vector_type(space), dimensions=sql.Literal(space.dimensions)
    )


def to_features(row: DictRow, asked: frozenset[Asks]) -> Features:
    """Turn what was read of one candidate into its features."""
    moment, beginning, conversation = row["occurred_at"], row["beginning"], row["conversation_id"]
    said = conversation is not None
    return Features(
        occurred_at=moment,
        kind=Kind(row["kind"]),
        speaker=_name(row["speaker"]),
        session=f"conversation {conversation}" if said else f"{moment.astimezone(UTC):%F}",
        place=float(row["number"]) if said else moment.timestamp() / SIDE_BY_SIDE.total_seconds(),
        cosine=row["cosine"],
        terms=tuple(row["places"] or ()),
        length=row["length"] or 0,
        assistant=row["role"] == Role.ASSISTANT,
        asks=row["ending"] in QUESTION_MARKS,
        tells_time=Asks.TIME in asked and tells_time(beginning),
        tells_number=Asks.NUMBER in asked and tells_number(beginning),
        is_instruction=is_instruction(beginning),
    )


@lru_cache(maxsize=4096)
def _name(speaker: str) -> str:
    """Normalise a speaker; the same few occur again and again."""
    return normalise_name(speaker)
