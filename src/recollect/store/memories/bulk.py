"""Load many memories fast: COPY into staging tables, then one insert each.

Row-level security refuses COPY into the tables themselves, and that stays so: the insert is checked row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from recollect.models.service import EmbeddingSpace
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories import copy_format
from recollect.store.memories.embeddings import vectors_table
from recollect.store.memories.memories import SLOTS, Row, hash_terms

QUERIES = load_queries(__file__)
Vectors = Mapping[UUID, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Rows for each table as COPY streams; no vectors means that there are none."""

    memories: bytes
    terms: bytes
    vectors: bytes


@dataclass(frozen=True, slots=True)
class Heading:
    """What all rows of a load share."""

    scope_id: int
    origin: str
    created_at: datetime
    space: EmbeddingSpace | None


def encode(heading: Heading, rows: Sequence[Row], vectors: Vectors) -> Encoded:
    """Encode rows for all tables."""
    return Encoded(
        encode_memories(heading, rows),
        encode_terms(heading.scope_id, rows),
        encode_vectors(heading, [row for row in rows if row.id in vectors], vectors),
    )


def encode_memories(heading: Heading, rows: Sequence[Row]) -> bytes:
    """Encode the wide rows, in the order of the query's columns."""
    scope, created = copy_format.bigint(heading.scope_id), copy_format.timestamp(heading.created_at)
    source = heading.origin.encode()
    return copy_format.stream(
        (
            scope, row.id.bytes, row.memory.kind.encode(), row.memory.content.encode(), row.memory.speaker.encode(),
            copy_format.real(row.memory.importance), row.memory.triple.subject.encode(),
            row.memory.triple.predicate.encode(), row.memory.triple.object.encode(), copy_format.boolean(row.idle),
            copy_format.smallint(row.depth), copy_format.texts(row.keywords), source,
            copy_format.smallint(row.trust), copy_format.timestamp(row.occurred_at), created,
            row.memory.embedding_text.encode(), copy_format.jsonb(row.memory.metadata),
            copy_format.timestamp(row.memory.expires_at) if row.memory.expires_at else None,
        )
        for row in rows
    )  # fmt: skip


def encode_terms(scope_id: int, rows: Sequence[Row]) -> bytes:
    """Encode the rows that words are searched in."""
    scope = copy_format.bigint(scope_id)
    return copy_format.stream(
        (
            scope, row.id.bytes, row.memory.kind.encode(), copy_format.smallint(row.trust),
            copy_format.bigints(hashes), copy_format.sparsevec(by_slot, SLOTS), copy_format.integer(row.draw),
        )
        for row in rows
        for hashes, by_slot in (hash_terms(scope_id, row.weights),)
    )  # fmt: skip


def encode_vectors(heading: Heading, rows: Sequence[Row], vectors: Vectors) -> bytes:
    """Encode the rows that vectors are searched in."""
    if not rows or heading.space is None:
        return b""
    scope = copy_format.bigint(heading.scope_id)
    embeddings = copy_format.vectors(np.stack([vectors[row.id] for row in rows]), heading.space.precision)
    return copy_format.stream(
        (
            scope, row.id.bytes, row.memory.kind.encode(), copy_format.smallint(row.trust),
            copy_format.boolean(row.idle), copy_format.real(row.memory.importance), embedding,
        )
        for row, embedding in zip(rows, embeddings, strict=True)
    )  # fmt: skip


async def stage(connection: Connection, space_id: int | None) -> None:
    """Make the staging tables of this transaction."""
    for name in ("stage_memories", "stage_terms"):
        await connection.execute(QUERIES[name])
    if space_id is not None:
        await connection.execute(sql.SQL(QUERIES["stage_vectors"]).format(vectors=vectors_table(space_id)))


async def store(connection: Connection, space_id: int | None, encoded: Encoded) -> None:
    """Send rows to the staging tables and move them where they belong."""
    streams = {"memories": encoded.memories, "terms": encoded.terms, "vectors": encoded.vectors}
    for name, data in streams.items():
        if not data:
            continue
        async with connection.cursor() as cursor, cursor.copy(QUERIES[f"copy_{name}"]) as copying:
            await copying.write(data)
        move = sql.SQL(QUERIES[f"move_{name}"])
        await connection.execute(move.format(vectors=vectors_table(space_id or 0)) if name == "vectors" else move)
        await connection.execute(QUERIES[f"clear_{name}"])
