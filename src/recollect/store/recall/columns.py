"""Send ids and read proposals as columns: without an object for each id and each row."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import psycopg
from psycopg import AsyncCursor, sql
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.rows import DictRow

from recollect.core.recall.columns import ID, Candidates, Ids
from recollect.store.database.pool import load_queries

QUERIES = load_queries(__file__)
NOTHING = sql.SQL("")
BIG_ENDIAN = np.dtype(">f8")
"""How the server writes a float."""
UUID_TYPE, UUID_ARRAY_TYPE = 2950, 2951
ENTRY = np.dtype([("length", ">i4"), ("id", ID)])


@dataclass(frozen=True, slots=True, eq=False)
class IdArray:
    """Ids to be sent as `uuid[]`."""

    ids: Ids


class IdArrayDumper(Dumper):
    """Write ids as the server reads an array of them."""

    format = Format.BINARY
    oid = UUID_ARRAY_TYPE

    def dump(self, obj: IdArray) -> bytes:
        """Write one dimension, which begins at 1, without nulls."""
        entries = np.empty(len(obj.ids), ENTRY)
        entries["length"], entries["id"] = ID.itemsize, obj.ids
        dimensions = struct.pack(">ii", len(entries), 1) if len(entries) else b""
        return struct.pack(">iiI", bool(dimensions), 0, UUID_TYPE) + dimensions + entries.tobytes()


psycopg.adapters.register_dumper(IdArray, IdArrayDumper)


def in_columns(query: sql.Composable, more: sql.Composable = NOTHING) -> sql.Composed:
    """Let a query for ids and scores answer with one row: a column of each, in the order of the query."""
    return sql.SQL(QUERIES["proposed"]).format(query=query, more=more)


def tag_cue(reading: object) -> str:
    """Name a parsed cue, so that what one channel found for it is not taken for another cue's."""
    return str(id(reading))


def note_first_hits(channel: str) -> sql.Composed:
    """Write the column that keeps a channel's first hits for later statements of the same transaction.

    So one channel can start from what another found, without a round trip between them.
    """
    return sql.SQL(QUERIES["note_first_hits"]).format(channel=sql.Literal(channel))


def read_first_hits() -> sql.SQL:
    """Write the ids that earlier statements of this transaction found first for the same cue."""
    return sql.SQL(QUERIES["read_first_hits"])


async def read_columns(answer: AsyncCursor[DictRow]) -> tuple[Candidates, DictRow]:
    """Read what such a query found, and the row with whatever else was asked for."""
    row = await answer.fetchone()
    assert row is not None  # noqa: S101 - an aggregate gives one row
    return Candidates(np.frombuffer(row["ids"], ID), np.frombuffer(row["scores"], BIG_ENDIAN).astype(np.float64)), row
