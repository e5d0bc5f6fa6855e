"""Create IDs that sort in the order of writing, IDs of embedding spaces, and hashes of requests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import MISSING, Field, asdict, fields
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any
from uuid import UUID

from recollect.models.memories import NewMemory

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
MAX_BATCH_BYTES = 4096
RANDOM_BYTES = 8


def memory_id(written_at: datetime, position: int, entropy: bytes) -> UUID:
    """Build a UUIDv7 from the time of the write, the position within it, and random bytes."""
    if not 0 <= position < MAX_BATCH_BYTES:
        raise ValueError("a batch holds at most 4,096 memories")
    milliseconds = (written_at - EPOCH) // MILLISECOND
    low = int.from_bytes(entropy[:RANDOM_BYTES], "big") & (2**62 - 1)
    return UUID(int=milliseconds << 80 | 0x7 << 76 | position << 64 | 0b10 << 62 | low)


def space_id(model: str, dimensions: int) -> int:
    """Compute the 31 bits that identify an embedding space on every server; its table is `vectors_<id>`."""
    digest = hashlib.sha256(f"{model}\0{dimensions}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def first_id_after(moment: datetime) -> UUID:
    """Return the smallest ID of memories written after a time: `id < it` means `as of then`."""
    milliseconds = (moment - EPOCH) // MILLISECOND + 1
    return UUID(int=max(milliseconds, 0) << 80)


def first_ids_of_days(last: date, days: int, zone: tzinfo) -> list[tuple[date, UUID]]:
    """Return `days` days up to the last, each with the smallest ID of memories written on it, in a zone."""
    listed = [last - timedelta(days=back) for back in reversed(range(days))]
    return [(day, first_id_after(datetime.combine(day, time.min, zone) - MILLISECOND)) for day in listed]


def fingerprint(memories: Sequence[NewMemory]) -> bytes:
    """Hash the memories of a request, to detect an idempotency key that is reused with another body.

    Fields with default values are left out: a new field does not change the hash of a body without it.
    """
    digest = hashlib.sha256()
    for memory in memories:
        given = {each.name: getattr(memory, each.name) for each in fields(memory) if _is_given(memory, each)}
        if memory.embedding is not None:
            given["embedding"] = [float(number) for number in memory.embedding]
        line = json.dumps(given, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=_write)
        digest.update(line.encode() + b"\n")
    return digest.digest()


def _is_given(memory: NewMemory, field: Field[Any]) -> bool:
    """Return whether a field differs from its default."""
    default = field.default if field.default_factory is MISSING else field.default_factory()
    value = getattr(memory, field.name)
    # Vectors can be arrays, which have no single truth value.
    return value is not None if default is None else bool(value != default)


def _write(value: object) -> object:
    """Convert values that JSON does not support: times (in UTC), IDs, and the parts of a memory."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value) if isinstance(value, UUID) else asdict(value)  # type: ignore[call-overload]
