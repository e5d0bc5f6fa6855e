"""Look candidates over: who said them, where they stand, what of the cue they have, and what they are like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from functools import lru_cache
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.core.cues import Reading
from recollect.core.names import normalise_name
from recollect.core.terms import hash_term
from recollect.core.traits import MOST_READ, QUESTION_MARKS, tells_number, tells_time, wishes
from recollect.models import Asks, EmbeddingSpace, Kind, Role, Trait
from recollect.store.db import Connection, Database
from recollect.store.scopes import Place
from recollect.store.spaces import tenant_of, to_vector, vector_type, vectors_table
from recollect.store.sql import load_queries

QUERIES = load_queries(__file__)
SIDE_BY_SIDE = timedelta(minutes=30)
"""Events so far apart stand as near to each other as a message does to the next."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What candidates are like, and how they begin."""

    traits: Mapping[UUID, Trait]
    beginnings: Mapping[UUID, str]


async def survey(database: Database, place: Place, ids: Sequence[UUID], reading: Reading, seconds: float) -> Survey:
    """Read what ranking knows of candidates; what was forgotten meanwhile is absent."""
    scope_id = place.scope_id or 0
    asked = {"scope_id": scope_id, "ids": list(ids)}
    bounds = {"most_read": MOST_READ, "as_of": reading.times.as_of, "at": reading.times.at}
    terms = [hash_term(scope_id, term) for term in reading.terms]
    async with database.reading(tenant_of(scope_id), seconds=seconds) as connection:
        worded = await connection.execute(QUERIES["worded"], {**asked, **bounds})
        others = [
            await connection.execute(QUERIES["said"], asked),
            await connection.execute(QUERIES["weighed"], {**asked, "terms": terms}),
        ]
        if place.space is not None and reading.vector is not None:
            others.append(await ask_cosines(connection, place.space, reading.vector, asked))
    rows = {row["id"]: row for row in await worded.fetchall()}
    for other in others:
        for row in await other.fetchall():
            if row["id"] in rows:
                rows[row["id"]] |= row
    traits = {memory_id: to_trait(row, reading.facets.asks) for memory_id, row in rows.items()}
    return Survey(traits, {memory_id: row["beginning"] for memory_id, row in rows.items()})


async def ask_cosines(
    connection: Connection, space: EmbeddingSpace, vector: NDArray[np.float32], asked: Mapping[str, object]
) -> AsyncCursor[DictRow]:
    """Ask how near each candidate comes to the cue's vector."""
    query = sql.SQL(QUERIES["placed"]).format(
        vectors=vectors_table(space.id), type=vector_type(space), dimensions=sql.Literal(space.dimensions)
    )
    return await connection.execute(query, {**asked, "vector": to_vector(space, vector)})


def to_trait(row: DictRow, asked: frozenset[Asks]) -> Trait:
    """Turn what was read of one candidate into its trait; what it has no part in is absent from the row."""
    moment, beginning, conversation = row["occurred_at"], row["beginning"], row.get("conversation_id")
    said = conversation is not None
    return Trait(
        occurred_at=moment,
        kind=Kind(row["kind"]),
        speaker=_name(row["speaker"]),
        session=f"talk {conversation}" if said else f"{moment.astimezone(UTC):%F}",
        place=float(row["number"]) if said else moment.timestamp() / SIDE_BY_SIDE.total_seconds(),
        cosine=row.get("cosine"),
        terms=tuple(row.get("terms") or ()),
        length=row.get("length") or 0,
        assistant=row.get("role") == Role.ASSISTANT,
        asks=row["ending"] in QUESTION_MARKS,
        tells_time=Asks.TIME in asked and tells_time(beginning),
        tells_number=Asks.NUMBER in asked and tells_number(beginning),
        wishes=wishes(beginning),
    )


@lru_cache(maxsize=4096)
def _name(speaker: str) -> str:
    """Bring who said it into the form names are compared by; the same few speak again and again."""
    return normalise_name(speaker)
