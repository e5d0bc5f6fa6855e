"""Load many memories fast: COPY into staging tables, then one insert each.

Row-level security refuses COPY into the tables themselves, and that stays so: the insert is checked row by row.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from recollect.models.service import EmbeddingSpace
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories import columns
from recollect.store.memories.columns import COLUMNS, FEATURES, SHARED, Row
from recollect.store.memories.embeddings import vectors_table
from recollect.store.memories.memories import SLOTS, hash_terms

QUERIES = load_queries(__file__, columns=columns.NAMES, features=columns.FEATURE_NAMES)
Vectors = Mapping[UUID, NDArray[np.float32]]
Values = Sequence[Sequence[object]]
TYPES: Mapping[str, Sequence[str]] = {
    "memories": [*SHARED.values(), *(column.type for column in COLUMNS)],
    "features": ["bigint", "text", *(column.type for column in FEATURES)],
    "terms": ["bigint", "uuid", "text", "smallint", "bytea", "bytea", "integer"],
    "vectors": ["bigint", "uuid", "text", "smallint", "boolean", "real", "bytea"],
}
"""How the driver writes each column; what it writes slowly is given to it as ready bytes."""
BIGINT_OID = 20
AT_ONCE = 100
"""So many rows are written before other tasks of the event loop have their turn."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The values of rows for each table; None for no vectors."""

    memories: Values
    features: Values
    terms: Values
    vectors: Values


@dataclass(frozen=True, slots=True)
class Heading:
    """What all rows of a load have in common."""

    scope_id: int
    origin: str
    created_at: datetime
    space: EmbeddingSpace | None


def encode(heading: Heading, rows: Sequence[Row], vectors: Vectors) -> Encoded:
    """Make values of rows for all tables, in the order of the queries' columns."""
    return Encoded(
        encode_memories(heading, rows),
        encode_features(heading, rows),
        encode_terms(heading.scope_id, rows),
        encode_vectors(heading, [row for row in rows if row.id in vectors], vectors),
    )


def encode_memories(heading: Heading, rows: Sequence[Row]) -> Values:
    """Make the wide rows."""
    shared = tuple(getattr(heading, name) for name in SHARED)
    return [(*shared, *[column.value(row) for column in COLUMNS]) for row in rows]


def encode_features(heading: Heading, rows: Sequence[Row]) -> Values:
    """Make the rows that memories are ranked and filtered by."""
    return [(heading.scope_id, heading.origin, *[column.value(row) for column in FEATURES]) for row in rows]


def encode_terms(scope_id: int, rows: Sequence[Row]) -> Values:
    """Make the rows that words are searched in."""
    return [
        (
            scope_id, row.id, row.memory.kind.value, row.trust,
            write_bigints(hashes), write_sparsevec(by_slot, SLOTS), row.draw,
        )
        for row in rows
        for hashes, by_slot in (hash_terms(scope_id, row.weights),)
    ]  # fmt: skip


def encode_vectors(heading: Heading, rows: Sequence[Row], vectors: Vectors) -> Values:
    """Make the rows that vectors are searched in."""
    if not rows or heading.space is None:
        return ()
    embeddings = write_vectors(np.stack([vectors[row.id] for row in rows]), heading.space.precision)
    return [
        (heading.scope_id, row.id, row.memory.kind.value, row.trust, row.idle, row.memory.importance, embedding)
        for row, embedding in zip(rows, embeddings, strict=True)
    ]


def write_bigints(values: Sequence[int]) -> bytes:
    """Write an int8[] in binary: one dimension counted from 1, or none when it is empty."""
    count = len(values)
    head = struct.pack(">iiiii", 1, 0, BIGINT_OID, count, 1) if count else struct.pack(">iii", 0, 0, BIGINT_OID)
    pairs = [part for value in values for part in (8, value)]
    return head + struct.pack(">" + "iq" * count, *pairs)


def write_sparsevec(by_slot: Mapping[int, float], slots: int) -> bytes:
    """Write a sparsevec in binary from weights by slot, counted from 1."""
    filled = sorted(by_slot)
    count = len(filled)
    weights = [by_slot[slot] for slot in filled]
    return struct.pack(f">iii{count}i{count}f", slots, count, 0, *(slot - 1 for slot in filled), *weights)


def write_vectors(rows: NDArray[np.float32], precision: str) -> list[bytes]:
    """Write halfvecs or vectors in binary, all at once."""
    head = struct.pack(">hh", rows.shape[1], 0)
    numbers = rows.astype(">f2" if precision == "half" else ">f4")
    width, data = numbers.itemsize * rows.shape[1], numbers.tobytes()
    return [head + data[start : start + width] for start in range(0, len(data), width)]


async def stage(connection: Connection, space_id: int | None) -> None:
    """Make the staging tables of this transaction."""
    for name in ("stage_memories", "stage_features", "stage_terms"):
        await connection.execute(QUERIES[name])
    if space_id is not None:
        await connection.execute(sql.SQL(QUERIES["stage_vectors"]).format(vectors=vectors_table(space_id)))


async def store(connection: Connection, space_id: int | None, encoded: Encoded) -> None:
    """Send rows to the staging tables and move them where they belong."""
    tables = {field.name: getattr(encoded, field.name) for field in fields(encoded)}
    for name, rows in tables.items():
        if not rows:
            continue
        await send(connection, name, rows)
        places = {"vectors": vectors_table(space_id or 0), "space": sql.Literal(space_id)} if name == "vectors" else {}
        await connection.execute(sql.SQL(QUERIES[f"move_{name}"]).format(**places))
        await connection.execute(QUERIES[f"clear_{name}"])


async def send(connection: Connection, name: str, rows: Values) -> None:
    """Send rows to a staging table, in portions between which the event loop is free."""
    async with connection.cursor() as cursor, cursor.copy(QUERIES[f"copy_{name}"]) as copying:
        copying.set_types(TYPES[name])
        for position, row in enumerate(rows, 1):
            await copying.write_row(row)
            if position % AT_ONCE == 0:
                await asyncio.sleep(0)
