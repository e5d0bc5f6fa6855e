"""Write rows in PostgreSQL's binary COPY format; pure, and several times faster than adapting value by value."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from recollect.models.memories import JSON

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
TEXT_OID, BIGINT_OID = 25, 20
LENGTH = struct.Struct(">i")
LENGTHS = [LENGTH.pack(length) for length in range(1_024)]
NULL = LENGTH.pack(-1)
NO_JSON = b"\x01{}"


def stream(rows: Iterable[Sequence[bytes | None]]) -> bytes:
    """Lay out rows of encoded fields as one COPY stream; None is a null."""
    parts = [HEADER]
    for row in rows:
        parts.append(struct.pack(">h", len(row)))
        for field in row:
            if field is None:
                parts.append(NULL)
                continue
            length = len(field)
            parts += (LENGTHS[length] if length < len(LENGTHS) else LENGTH.pack(length), field)
    parts.append(TRAILER)
    return b"".join(parts)


def bigint(number: int) -> bytes:
    """Encode an int8."""
    return struct.pack(">q", number)


def boolean(value: bool) -> bytes:  # noqa: FBT001 - the one value it encodes
    """Encode a bool."""
    return b"\x01" if value else b"\x00"


def integer(number: int) -> bytes:
    """Encode an int4."""
    return struct.pack(">i", number)


def smallint(number: int) -> bytes:
    """Encode an int2."""
    return struct.pack(">h", number)


def real(number: float) -> bytes:
    """Encode a float4."""
    return struct.pack(">f", number)


def timestamp(moment: datetime) -> bytes:
    """Encode a timestamptz."""
    return struct.pack(">q", (moment - EPOCH) // MICROSECOND)


def jsonb(value: Mapping[str, JSON]) -> bytes:
    """Encode a jsonb."""
    return b"\x01" + json.dumps(value).encode() if value else NO_JSON


def texts(values: Sequence[str]) -> bytes:
    """Encode a text[]."""
    items = [value.encode() for value in values]
    return array_head(len(items), TEXT_OID) + b"".join(LENGTH.pack(len(item)) + item for item in items)


def bigints(values: Sequence[int]) -> bytes:
    """Encode an int8[]."""
    pairs = [part for value in values for part in (8, value)]
    return array_head(len(values), BIGINT_OID) + struct.pack(">" + "iq" * len(values), *pairs)


def array_head(count: int, oid: int) -> bytes:
    """Begin an array: one dimension counted from 1, or none when it is empty."""
    return struct.pack(">iiiii", 1, 0, oid, count, 1) if count else struct.pack(">iii", 0, 0, oid)


def sparsevec(by_slot: Mapping[int, float], slots: int) -> bytes:
    """Encode a sparsevec from weights by slot, counted from 1."""
    filled = sorted(by_slot)
    count = len(filled)
    weights = [by_slot[slot] for slot in filled]
    return struct.pack(f">iii{count}i{count}f", slots, count, 0, *(slot - 1 for slot in filled), *weights)


def vectors(rows: NDArray[np.float32], precision: str) -> list[bytes]:
    """Encode halfvecs or vectors, all at once."""
    head = struct.pack(">hh", rows.shape[1], 0)
    numbers = rows.astype(">f2" if precision == "half" else ">f4")
    width, data = numbers.itemsize * rows.shape[1], numbers.tobytes()
    return [head + data[start : start + width] for start in range(0, len(data), width)]
