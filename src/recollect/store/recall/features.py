"""Read the features for ranking candidates in addition to their scores, all at once and in columns."""

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
from recollect.core.recall.cues import ParsedCue
from recollect.core.recall.features import TextTraits
from recollect.core.service.numbers import tenant_of
from recollect.core.text.terms import hash_term
from recollect.models.filters import Filter
from recollect.models.memories import Kind
from recollect.models.service import EmbeddingSpace
from recollect.store.database.filter import FEATURE_ROWS, MAX_CACHED_STATEMENTS, bind, restrict_rows
from recollect.store.database.pool import Database, load_queries, to_sql
from recollect.store.memories.embeddings import to_vector, vector_type, vectors_table
from recollect.store.recall.columns import IdArray
from recollect.store.service.scopes import ScopeHandle

QUERIES = load_queries(__file__)
GIVEN = {"ids": sql.SQL("%(ids)b::uuid[]"), "distant": sql.SQL("%(distant)b::uuid[]"), "current": sql.SQL("")}
"""The memories that a statement reads: the candidates."""
WITH_EVIDENCE = {
    "ids": sql.SQL(QUERIES["with_evidence"]),
    "distant": sql.SQL(QUERIES["distant_with_evidence"]),
    "current": sql.SQL("\n      ") + sql.SQL(QUERIES["current"]),
}
"""The same, with the evidence of the candidates."""


def find_terms_in(table: str, looked_over: Mapping[str, sql.Composable]) -> sql.SQL:
    """Write the query for the terms of the query that memories have."""
    return to_sql(sql.SQL(QUERIES["terms"]).format(indexed=sql.Identifier(table), ids=looked_over["ids"]))


TERMS = tuple(find_terms_in(table, GIVEN) for table in ("memory_terms", "withheld_memories"))
"""Queries for the terms of memories: of current ones, and of past versions."""
TERMS_WITH_EVIDENCE = (find_terms_in("memory_terms", WITH_EVIDENCE),)
EVIDENCE = sql.SQL(QUERIES["evidence"])
MAX_PAIRS, MAX_EVIDENCE_PER_MEMORY = 400, 40
"""Maximum number of pairs of evidence, and of one memory: a memory with more says little about each."""
ACCESSES = sql.SQL(QUERIES["accesses"])
SIDE_BY_SIDE = 30 * 60 * 1_000_000
"""Events this many microseconds apart are as near to each other as consecutive messages."""
SERVER_EPOCH = 946_684_800_000_000
"""The server's epoch, 2000, in microseconds since 1970."""
DAY = 86_400 * 1_000_000
FIRST_DAY = date(1970, 1, 1).toordinal()
CODES = {kind.value: code for code, kind in enumerate(KINDS)}
MESSAGE = CODES[Kind.MESSAGE]


@dataclass(frozen=True, slots=True)
class FeatureRequest:
    """The candidates to read features for, and which features."""

    ids: Ids
    distant: Ids
    """The candidates to compute cosines for; the channel `vector` returned those of the others."""
    accesses: bool = False
    """Whether to read when they were last accessed."""
    evidence: bool = False
    """Whether to read the features of their evidence, too."""


async def load_features(
    database: Database, place: ScopeHandle, look: FeatureRequest, reading: ParsedCue, seconds: float
) -> tuple[FeatureTable, EvidencePairs]:
    """Read features of candidates and of their evidence; forgotten memories are absent."""
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
            bounds = {"most_pairs": MAX_PAIRS, "most_of_one": MAX_EVIDENCE_PER_MEMORY}
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
        fill_cosines(table, await cosines.fetchone() or {})
    if accesses is not None:
        fill_access_times(table, await accesses.fetchone() or {})
    return table, EvidencePairs() if pairs is None else read_evidence(table, await pairs.fetchone() or {})


@lru_cache(maxsize=MAX_CACHED_STATEMENTS)
def compose(only: Filter, evidence: bool = False) -> sql.SQL:  # noqa: FBT001, FBT002 - a key of the cache
    """Write the query for features of candidates and of their evidence."""
    looked_over = WITH_EVIDENCE if evidence else GIVEN
    conditions = restrict_rows(only, columns=FEATURE_ROWS)
    return to_sql(sql.SQL(QUERIES["features"]).format(filter=conditions, **looked_over))


@lru_cache(maxsize=MAX_CACHED_STATEMENTS)
def measure_in(space: EmbeddingSpace, evidence: bool = False) -> sql.SQL:  # noqa: FBT001, FBT002 - a key of the cache
    """Write the query for the cosines of candidates and of their evidence."""
    query = sql.SQL(QUERIES["cosines"]).format(
        vectors=vectors_table(space.id),
        type=vector_type(space),
        dimensions=sql.Literal(space.dimensions),
        distant=(WITH_EVIDENCE if evidence else GIVEN)["distant"],
    )
    return to_sql(query)


def to_table(row: DictRow, width: int) -> FeatureTable:
    """Convert the columns of candidates; terms, cosines and named speakers are not filled in yet."""
    ids: Ids = decode_column(row, "ids", ID)
    count = len(ids)
    moments: Numbers = decode_column(row, "moments", ">i8").astype(np.int64) + SERVER_EPOCH
    kinds = np.array([CODES[kind] for kind in row.get("kinds") or ()], dtype=np.int64)
    said = kinds == MESSAGE
    conversations = row.get("conversations") or ()
    days = (moments // DAY).tolist()
    sessions, held = number(
        day if conversation is None else conversation for conversation, day in zip(conversations, days, strict=True)
    )
    speakers, speaker_names = number(row.get("speakers") or ())
    tells = decode_column(row, "tells", ">i2")
    return FeatureTable(
        ids=ids,
        occurred_at=moments,
        # A memory that was never accessed counts as accessed when it happened.
        accessed_at=moments.copy(),
        kinds=kinds,
        speakers=speakers,
        speaker_names=speaker_names,
        sessions=sessions,
        session_names=tuple(name_day(each) if isinstance(each, int) else f"conversation {each}" for each in held),
        places=np.where(said, decode_column(row, "numbers", ">i8"), moments / SIDE_BY_SIDE),
        cosines=np.full(count, np.nan),
        terms=np.zeros((count, width), dtype=np.bool_),
        lengths=decode_column(row, "lengths", ">i4").astype(np.int64),
        importances=decode_column(row, "importances", ">f4").astype(np.float64),
        assistant=decode_column(row, "assistant", "?"),
        asks=(tells & TextTraits.QUESTION) > 0,
        tells_time=(tells & TextTraits.TIME) > 0,
        tells_number=(tells & TextTraits.NUMBER) > 0,
        is_instruction=(tells & TextTraits.INSTRUCTION) > 0,
        named=np.zeros(count, dtype=np.bool_),
    )


def mark_terms(table: FeatureTable, row: DictRow) -> None:
    """Fill in which terms of the query the candidates have."""
    ids: Ids = decode_column(row, "ids", ID)
    known = table.knows(ids)
    table.terms[table.find_indices(ids[known]), decode_column(row, "places", ">i2")[known] - 1] = True


def fill_cosines(table: FeatureTable, row: DictRow) -> None:
    """Fill in the cosines of the candidates to the query."""
    ids: Ids = decode_column(row, "ids", ID)
    known = table.knows(ids)
    table.cosines[table.find_indices(ids[known])] = decode_column(row, "cosines", ">f8")[known]


def read_evidence(table: FeatureTable, row: DictRow) -> EvidencePairs:
    """Read the pairs of a candidate and its evidence, if both are visible."""
    pairs = EvidencePairs(decode_column(row, "learned", ID), decode_column(row, "sources", ID))
    return pairs.select(table.knows(pairs.learned) & table.knows(pairs.sources))


def fill_access_times(table: FeatureTable, row: DictRow) -> None:
    """Fill in when the candidates were last accessed."""
    ids: Ids = decode_column(row, "ids", ID)
    known = table.knows(ids)
    found = table.find_indices(ids[known])
    moments = decode_column(row, "moments", ">i8").astype(np.int64)[known] + SERVER_EPOCH
    table.accessed_at[found] = np.maximum(table.accessed_at[found], moments)


def decode_column(row: DictRow, name: str, kind: np.dtype[Any] | str) -> NDArray[Any]:
    """Convert a column of bytes to an array; empty if there was nothing to aggregate."""
    return np.frombuffer(row.get(name) or b"", kind)


@lru_cache(maxsize=4096)
def name_day(day: int) -> str:
    """Return the date of a number of days since 1970."""
    return date.fromordinal(FIRST_DAY + day).isoformat()
