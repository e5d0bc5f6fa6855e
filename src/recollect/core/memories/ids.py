"""Make ids that sort in the order of writing, ids of embedding spaces, and recognise a request that is sent again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import MISSING, Field, astuple, fields
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any
from uuid import UUID

from recollect.core.memories.importance import read_importance
from recollect.models.memories import NewMemory

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
LARGEST_BATCH = 4096
RANDOM_BYTES = 8
PLACED = {
    *("content", "kind", "speaker", "importance", "triple", "idle", "keywords", "occurred_at", "evidence"),
    *("embedding", "embedding_text", "metadata", "expires_at", "topic", "related_topics", "reach"),
}
"""The fields that have their own position in a fingerprint; any other is written with its name."""


def memory_id(written_at: datetime, position: int, entropy: bytes) -> UUID:
    """Build a UUIDv7 from the time of the write, the position within it, and random bytes."""
    if not 0 <= position < LARGEST_BATCH:
        raise ValueError("a batch holds at most 4,096 memories")
    milliseconds = (written_at - EPOCH) // MILLISECOND
    low = int.from_bytes(entropy[:RANDOM_BYTES], "big") & (2**62 - 1)
    return UUID(int=milliseconds << 80 | 0x7 << 76 | position << 64 | 0b10 << 62 | low)


def space_id(model: str, dimensions: int) -> int:
    """Compute the 31 bits that identify an embedding space on every server; its table is `vectors_<id>`."""
    digest = hashlib.sha256(f"{model}\0{dimensions}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def first_id_after(moment: datetime) -> UUID:
    """Return the smallest id a memory written after this moment can have: `id < it` means `as of then`."""
    milliseconds = (moment - EPOCH) // MILLISECOND + 1
    return UUID(int=max(milliseconds, 0) << 80)


def first_ids_of_days(last: date, days: int, zone: tzinfo) -> list[tuple[date, UUID]]:
    """Give so many days up to the last, each with the smallest id that a memory written on it can have, in a zone."""
    listed = [last - timedelta(days=back) for back in reversed(range(days))]
    return [(day, first_id_after(datetime.combine(day, time.min, zone) - MILLISECOND)) for day in listed]


def fingerprint(memories: Sequence[NewMemory]) -> bytes:
    """Hash what a caller asked to remember, so that the same key with another body is noticed."""
    digest = hashlib.sha256()
    for memory in memories:
        said = [
            memory.content,
            memory.kind,
            memory.speaker,
            # As in an older version, where 5 stood for one that nobody gave.
            read_importance(memory.importance),
            [memory.triple.subject, memory.triple.predicate, memory.triple.object, memory.idle],
            memory.keywords,
            memory.occurred_at,
            [str(source) for source in memory.evidence],
            None if memory.embedding is None else [float(number) for number in memory.embedding],
            memory.embedding_text,
            memory.metadata,
            # Only if it is set: a body without it has the same fingerprint as in an older version.
            *([memory.expires_at] if memory.expires_at else []),
            *([[memory.topic, *memory.related_topics], astuple(memory.reach)] if memory.topic else []),
            *([field.name, getattr(memory, field.name)] for field in fields(memory) if _is_later(memory, field)),
        ]
        line = json.dumps(said, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=_write)
        digest.update(line.encode() + b"\n")
    return digest.digest()


def _is_later(memory: NewMemory, field: Field[Any]) -> bool:
    """Tell whether a field has no position of its own in a fingerprint, and is set."""
    usual = field.default if field.default_factory is MISSING else field.default_factory()
    return field.name not in PLACED and getattr(memory, field.name) != usual


def _write(moment: datetime) -> str:
    """Write the one kind of value that JSON cannot hold, the same in every zone."""
    return moment.astimezone(UTC).isoformat()
