"""Read what ranking knows of candidates beside their scores, all of them at once and in columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow

from recollect.core.recall.columns import ID, KINDS, EvidencePairs, FeatureTable, Ids, Numbers, number
from recollect.core.recall.cues import Reading
from recollect.core.recall.features import Tells
from recollect.core.service.numbers import tenant_of
from recollect.core.text.terms import hash_term
from recollect.models.memories import Kind
from recollect.models.recall import Filter
from recollect.models.service import EmbeddingSpace
from recollect.store.database.filter import FEATURE_ROWS, MOST_WRITTEN, bind, restrict_rows
from recollect.store.database.pool import Database, load_queries, write_out
from recollect.store.memories.embeddings import to_vector, vector_type, vectors_table
from recollect.store.recall.columns import IdArray
from recollect.store.service.scopes import Place

QUERIES = load_queries(__file__)
GIVEN = {"ids": sql.SQL("%(ids)b::uuid[]"), "distant": sql.SQL("%(distant)b::uuid[]"), "current": sql.SQL("")}
"""What a statement looks over: the candidates."""
WITH_EVIDENCE = {
    "ids": sql.SQL(QUERIES["with_evidence"]),
    "distant": sql.SQL(QUERIES["distant_with_evidence"]),
    "current": sql.SQL("\n      ") + sql.SQL(QUERIES["current"]),
}
"""The same, and what the candidates rest on."""


def find_terms_in(table: str, looked_over: Mapping[str, sql.Composable]) -> sql.SQL:
    """Write the query for the terms of the cue that memories have."""
    return write_out(sql.SQL(QUERIES["terms"]).format(indexed=sql.Identifier(table), ids=looked_over["ids"]))


TERMS = tuple(find_terms_in(table, GIVEN) for table in ("memory_terms", "withheld_memories"))
"""Where the terms of a memory stand; those of past versions in the second."""
TERMS_WITH_EVIDENCE = (find_terms_in("memory_terms", WITH_EVIDENCE),)
EVIDENCE = sql.SQL(QUERIES["evidence"])
MOST_PAIRS, MOST_OF_ONE = 400, 40
"""So much evidence is looked over, and so much of one memory: what rests on more says little of each."""
ACCESSES = sql.SQL(QUERIES["accesses"])
SIDE_BY_SIDE = 30 * 60 * 1_000_000
"""Events so many microseconds apart stand as near to each other as a message does to the next."""
SERVER_EPOCH = 946_684_800_000_000
"""The server counts microseconds from 2000."""
DAY = 86_400 * 1_000_000
FIRST_DAY = date(1970, 1, 1).toordinal()
CODES = {kind.value: code for code, kind in enumerate(KINDS)}
MESSAGE = CODES[Kind.MESSAGE]


@dataclass(frozen=True, slots=True)
class Look:
    """Which candidates are looked at, and what of."""

    ids: Ids
    distant: Ids
    """How near they come to the cue is asked for these alone: of others the channel `vector` told it."""
    accesses: bool = False
    """Whether it matters when they were last accessed."""
    evidence: bool = False
    """Whether what they rest on is looked over, too."""


async def load_features(
    database: Database, place: Place, look: Look, reading: Reading, seconds: float
) -> tuple[FeatureTable, EvidencePairs]:
    """Read what is known of candidates, and what they rest on; what was forgotten meanwhile is absent."""
    parameters: dict[str, object] = {
        "scope_id": place.scope_id,
        "ids": IdArray(look.ids),
        "distant": IdArray(look.distant),
        "terms": [hash_term(place.scope_id or 0, term) for term in reading.terms],
        **bind(reading.filter),
    }
    cosines: AsyncCursor[DictRow] | None = None
    accesses: AsyncCursor[DictRow] | None = None
    pairs: AsyncCursor[DictRow] | None = None
    async with database.reading(tenant_of(place.scope_id or 0), seconds=seconds) as connection:
        if look.evidence:
            bounds = {"most_pairs": MOST_PAIRS, "most_of_one": MOST_OF_ONE}
            pairs = await connection.execute(EVIDENCE, parameters | bounds, binary=True)
        rows = await connection.execute(compose(reading.filter, look.evidence), parameters, binary=True)
        asked = TERMS_WITH_EVIDENCE if look.evidence else TERMS[: 1 + reading.filter.left]
        terms = [await connection.execute(query, parameters, binary=True) for query in asked]
        if look.accesses:
            accesses = await connection.execute(ACCESSES, parameters, binary=True)
        if place.space is not None and reading.vector is not None and (look.evidence or len(look.distant)):
            parameters["vector"] = to_vector(place.space, reading.vector)
            cosines = await connection.execute(measure_in(place.space, look.evidence), parameters, binary=True)
    table = to_table(await rows.fetchone() or {}, len(reading.terms))
    for each in terms:
        mark_terms(table, await each.fetchone() or {})
    if cosines is not None:
        place_cosines(table, await cosines.fetchone() or {})
    if accesses is not None:
        place_accesses(table, await accesses.fetchone() or {})
    return table, EvidencePairs() if pairs is None else read_evidence(table, await pairs.fetchone() or {})


@lru_cache(maxsize=MOST_WRITTEN)
def compose(only: Filter, evidence: bool = False) -> sql.SQL:  # noqa: FBT001, FBT002 - a key of the cache
    """Write the query for what is known of candidates, and of what they rest on."""
    looked_over = WITH_EVIDENCE if evidence else GIVEN
    conditions = restrict_rows(only, columns=FEATURE_ROWS)
    return write_out(sql.SQL(QUERIES["features"]).format(filter=conditions, **looked_over))


@lru_cache(maxsize=MOST_WRITTEN)
def measure_in(space: EmbeddingSpace, evidence: bool = False) -> sql.SQL:  # noqa: FBT001, FBT002 - a key of the cache
    """Write the query for how near candidates, and what they rest on, come to the cue."""
    query = sql.SQL(QUERIES["cosines"]).format(
        vectors=vectors_table(space.id),
        type=vector_type(space),
        dimensions=sql.Literal(space.dimensions),
        distant=(WITH_EVIDENCE if evidence else GIVEN)["distant"],
    )
    return write_out(query)


def to_table(row: DictRow, width: int) -> FeatureTable:
    """Read the columns of candidates; nothing is known yet of their terms, their cosines and whom the cue names."""
    ids: Ids = read(row, "ids", ID)
    count = len(ids)
    moments: Numbers = read(row, "moments", ">i8").astype(np.int64) + SERVER_EPOCH
    kinds = np.array([CODES[kind] for kind in row.get("kinds") or ()], dtype=np.int64)
    said = kinds == MESSAGE
    conversations = row.get("conversations") or ()
    days = (moments // DAY).tolist()
    sessions, held = number(
        day if conversation is None else conversation for conversation, day in zip(conversations, days, strict=True)
    )
    speakers, speaker_names = number(row.get("speakers") or ())
    tells = read(row, "tells", ">i2")
    return FeatureTable(
        ids=ids,
        occurred_at=moments,
        # What was never accessed was, so to say, when it happened.
        accessed_at=moments.copy(),
        kinds=kinds,
        speakers=speakers,
        speaker_names=speaker_names,
        sessions=sessions,
        session_names=tuple(name_day(each) if isinstance(each, int) else f"conversation {each}" for each in held),
        places=np.where(said, read(row, "numbers", ">i8"), moments / SIDE_BY_SIDE),
        cosines=np.full(count, np.nan),
        terms=np.zeros((count, width), dtype=np.bool_),
        lengths=read(row, "lengths", ">i4").astype(np.int64),
        importances=read(row, "importances", ">f4").astype(np.float64),
        assistant=read(row, "assistant", "?"),
        asks=(tells & Tells.QUESTION) > 0,
        tells_time=(tells & Tells.TIME) > 0,
        tells_number=(tells & Tells.NUMBER) > 0,
        is_instruction=(tells & Tells.INSTRUCTION) > 0,
        named=np.zeros(count, dtype=np.bool_),
    )


def mark_terms(table: FeatureTable, row: DictRow) -> None:
    """Note which terms of the cue the candidates have."""
    ids: Ids = read(row, "ids", ID)
    known = table.knows(ids)
    table.terms[table.find(ids[known]), read(row, "places", ">i2")[known] - 1] = True


def place_cosines(table: FeatureTable, row: DictRow) -> None:
    """Note how near the candidates come to the cue."""
    ids: Ids = read(row, "ids", ID)
    known = table.knows(ids)
    table.cosines[table.find(ids[known])] = read(row, "cosines", ">f8")[known]


def read_evidence(table: FeatureTable, row: DictRow) -> EvidencePairs:
    """Read which candidates rest on which memories, where both are to be seen."""
    pairs = EvidencePairs(read(row, "learned", ID), read(row, "sources", ID))
    return pairs.take(table.knows(pairs.learned) & table.knows(pairs.sources))


def place_accesses(table: FeatureTable, row: DictRow) -> None:
    """Note when the candidates were last accessed."""
    ids: Ids = read(row, "ids", ID)
    known = table.knows(ids)
    found = table.find(ids[known])
    moments = read(row, "moments", ">i8").astype(np.int64)[known] + SERVER_EPOCH
    table.accessed_at[found] = np.maximum(table.accessed_at[found], moments)


def read(row: DictRow, name: str, kind: np.dtype[Any] | str) -> NDArray[Any]:
    """Read a column of bytes as an array; nothing where there was nothing to aggregate."""
    return np.frombuffer(row.get(name) or b"", kind)


@lru_cache(maxsize=4096)
def name_day(day: int) -> str:
    """Name a day by its number since 1970."""
    return date.fromordinal(FIRST_DAY + day).isoformat()
