"""Load many memories fast: COPY into one staging table, then one insert into each table they belong to.

Row-level security refuses COPY into the tables themselves. The insert is checked row by row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import sql
from psycopg.pq import PipelineStatus

from recollect.models.service import EmbeddingSpace
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories import columns, memories
from recollect.store.memories.columns import EVERY, SHARED, Row
from recollect.store.memories.copy_protocol import write_terms, write_vectors
from recollect.store.memories.embeddings import vector_type, vectors_table

QUERIES = load_queries(__file__, fields=columns.FRAGMENTS["fields"])
Vectors = Mapping[UUID, NDArray[np.float32]]
Values = Sequence[Sequence[object]]
TYPES = (*(column.type for column in EVERY), "bytea", "bytea", "integer", "bytea")
"""How the driver writes each column; slow types are passed as encoded bytes."""
AT_ONCE = 100
"""Number of rows to write before other tasks of the event loop run."""


MIN_COPY_ROWS = 100


@dataclass(frozen=True, slots=True)
class BulkHeader:
    """What all rows of a load have in common."""

    scope_id: int
    origin: str
    created_at: datetime
    space: EmbeddingSpace | None


def use_copy(connection: Connection, rows: Sequence[Row]) -> bool:
    """Return whether COPY is worthwhile for these rows and the connection is free for it."""
    return len(rows) >= MIN_COPY_ROWS and connection.pgconn.pipeline_status == PipelineStatus.OFF


def encode(heading: BulkHeader, rows: Sequence[Row], vectors: Vectors) -> Values:
    """Encode rows, in the order of the staging table's columns."""
    terms = write_terms(heading.scope_id, [row.weights for row in rows])
    embedded = encode_vectors(heading, vectors)
    return [
        (*[column.value(row) for column in EVERY], hashes, weights, row.draw, embedded.get(row.id))
        for row, (hashes, weights) in zip(rows, terms, strict=True)
    ]


def encode_vectors(heading: BulkHeader, vectors: Vectors) -> dict[UUID, bytes]:
    """Encode the given vectors."""
    if not vectors or heading.space is None:
        return {}
    written = write_vectors(np.stack(list(vectors.values())), heading.space.precision)
    return dict(zip(vectors, written, strict=True))


async def stage(connection: Connection, space: EmbeddingSpace | None) -> None:
    """Create the staging table of this transaction."""
    kind = vector_type(space) if space else sql.SQL("vector")
    await connection.execute(sql.SQL(QUERIES["stage"]).format(type=kind))


async def store_staged_rows(connection: Connection, heading: BulkHeader, values: Values) -> None:
    """Copy rows to the staging table, then insert them into their tables."""
    await send(connection, values)
    shared = {name: getattr(heading, name) for name in SHARED}
    await connection.execute(memories.STORE_STAGED, shared)
    if heading.space is not None:
        places = {"vectors": vectors_table(heading.space.id), "space": sql.Literal(heading.space.id)}
        move = sql.SQL(QUERIES["move_vectors"]).format(**places)
        await connection.execute(move, {"scope_id": heading.scope_id})
    await connection.execute(QUERIES["clear"])


async def send(connection: Connection, values: Values) -> None:
    """Copy rows to the staging table, in portions between which the event loop is free."""
    async with connection.cursor() as cursor, cursor.copy(QUERIES["copy"]) as copying:
        copying.set_types(TYPES)
        for position, row in enumerate(values, 1):
            await copying.write_row(row)
            if position % AT_ONCE == 0:
                await asyncio.sleep(0)
