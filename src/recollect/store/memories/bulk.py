"""Load many memories fast: COPY into one staging table, then one insert into each table they belong to.

Row-level security refuses COPY into the tables themselves, and that stays so: the insert is checked row by row.
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
from recollect.store.memories.copied import write_terms, write_vectors
from recollect.store.memories.embeddings import vector_type, vectors_table

QUERIES = load_queries(__file__, fields=columns.FRAGMENTS["fields"])
Vectors = Mapping[UUID, NDArray[np.float32]]
Values = Sequence[Sequence[object]]
TYPES = (*(column.type for column in EVERY), "bytea", "bytea", "integer", "bytea")
"""How the driver writes each column; what it writes slowly is given to it as ready bytes."""
AT_ONCE = 100
"""So many rows are written before other tasks of the event loop have their turn."""


WORTH_STAGING = 100


@dataclass(frozen=True, slots=True)
class Heading:
    """What all rows of a load have in common."""

    scope_id: int
    origin: str
    created_at: datetime
    space: EmbeddingSpace | None


def suits(connection: Connection, rows: Sequence[Row]) -> bool:
    """Tell whether rows are so many that COPY is worth a staging table, and whether the connection is free for it."""
    return len(rows) >= WORTH_STAGING and connection.pgconn.pipeline_status == PipelineStatus.OFF


def encode(heading: Heading, rows: Sequence[Row], vectors: Vectors) -> Values:
    """Make the values of rows, in the order of the staging table's columns."""
    terms = write_terms(heading.scope_id, [row.weights for row in rows])
    embedded = encode_vectors(heading, vectors)
    return [
        (*[column.value(row) for column in EVERY], hashes, weights, row.draw, embedded.get(row.id))
        for row, (hashes, weights) in zip(rows, terms, strict=True)
    ]


def encode_vectors(heading: Heading, vectors: Vectors) -> dict[UUID, bytes]:
    """Write the vectors that are given."""
    if not vectors or heading.space is None:
        return {}
    written = write_vectors(np.stack(list(vectors.values())), heading.space.precision)
    return dict(zip(vectors, written, strict=True))


async def stage(connection: Connection, space: EmbeddingSpace | None) -> None:
    """Make the staging table of this transaction."""
    kind = vector_type(space) if space else sql.SQL("vector")
    await connection.execute(sql.SQL(QUERIES["stage"]).format(type=kind))


async def store(connection: Connection, heading: Heading, values: Values) -> None:
    """Send rows to the staging table and move them where they belong."""
    await send(connection, values)
    shared = {name: getattr(heading, name) for name in SHARED}
    await connection.execute(memories.STORE_STAGED, shared)
    if heading.space is not None:
        places = {"vectors": vectors_table(heading.space.id), "space": sql.Literal(heading.space.id)}
        move = sql.SQL(QUERIES["move_vectors"]).format(**places)
        await connection.execute(move, {"scope_id": heading.scope_id})
    await connection.execute(QUERIES["clear"])


async def send(connection: Connection, values: Values) -> None:
    """Send rows to the staging table, in portions between which the event loop is free."""
    async with connection.cursor() as cursor, cursor.copy(QUERIES["copy"]) as copying:
        copying.set_types(TYPES)
        for position, row in enumerate(values, 1):
            await copying.write_row(row)
            if position % AT_ONCE == 0:
                await asyncio.sleep(0)
