"""Load many memories fast: COPY into staging tables, then one insert each.

Row-level security refuses COPY into the tables themselves, and that stays so: the insert is checked row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from recollect.store.db import Connection
from recollect.store.memories import Row, hash_terms, store_evidence
from recollect.store.spaces import vectors_table
from recollect.store.sql import load_queries

QUERIES = load_queries(__file__)
MEMORY_TYPES = [
    *("int8", "uuid", "text", "text", "text", "float4", "text[]"),
    *("text", "int2", "timestamptz", "timestamptz", "jsonb"),
]
TERM_TYPES = ["int8", "uuid", "text", "int2", "int8[]", "sparsevec"]
VECTOR_TYPES = ["int8", "uuid", "text", "int2", "float4", "halfvec"]


async def copy_memories(
    connection: Connection, scope_id: int, origin: str, created_at: datetime, rows: Sequence[Row]
) -> None:
    """Load memories, their terms and their evidence."""
    wide = (
        (
            scope_id, row.id, row.memory.kind.value, row.memory.content, row.memory.speaker, row.memory.importance,
            list(row.keywords), origin, row.trust, row.occurred_at, created_at, Jsonb(dict(row.memory.metadata)),
        )
        for row in rows
    )  # fmt: skip
    await connection.execute(QUERIES["stage_memories"])
    await copy(connection, QUERIES["copy_memories"], MEMORY_TYPES, wide)
    await connection.execute(QUERIES["move_memories"])
    terms = ((scope_id, row.id, row.memory.kind.value, row.trust, *hash_terms(scope_id, row.weights)) for row in rows)
    await connection.execute(QUERIES["stage_terms"])
    await copy(connection, QUERIES["copy_terms"], TERM_TYPES, terms)
    await connection.execute(QUERIES["move_terms"])
    await store_evidence(connection, scope_id, rows)


async def copy_vectors(
    connection: Connection, scope_id: int, space_id: int, rows: Sequence[Row],
    vectors: Mapping[UUID, NDArray[np.float32]],
) -> None:  # fmt: skip
    """Load the vectors of memories just loaded."""
    table = vectors_table(space_id)
    narrow = (
        (scope_id, row.id, row.memory.kind.value, row.trust, row.memory.importance, HalfVector(vectors[row.id]))
        for row in rows
        if row.id in vectors
    )
    await connection.execute(sql.SQL(QUERIES["stage_vectors"]).format(vectors=table))
    await copy(connection, QUERIES["copy_vectors"], VECTOR_TYPES, narrow)
    await connection.execute(sql.SQL(QUERIES["move_vectors"]).format(vectors=table))


async def copy(
    connection: Connection, query: LiteralString, types: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Send rows by binary COPY."""
    async with connection.cursor() as cursor, cursor.copy(query) as stream:
        stream.set_types(types)
        for row in rows:
            await stream.write_row(row)
