"""Compose the number of a scope, a bigint, from tenant, bucket and a number in the bucket.

The number is in every row of the scope, and does not change if the rows move, so two servers must never assign the same
one. A bucket is a part of a tenant's scopes in one range of every key. So a large tenant can be spread over servers,
and a range of buckets can be moved as a whole. The bucket follows from the names: every server computes the same one.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256
from uuid import UUID

from recollect.errors import InvalidInputError

TENANT_BITS = 23
"""Up to 8,388,607 tenants; 0 belongs to none."""
BUCKET_BITS = 12
"""A tenant can be divided into 4,096 parts."""
NUMBER_BITS = 28
"""Up to 268 million scopes in each bucket, counted from 1; no number is assigned twice."""


def bucket_of(agent: str, user: str) -> int:
    """Return the bucket of a scope: the first 12 bits of SHA-256 over agent, a zero byte and user (NFC)."""
    agent, user = unicodedata.normalize("NFC", agent), unicodedata.normalize("NFC", user)
    digest = sha256(agent.encode() + b"\0" + user.encode()).digest()
    return int.from_bytes(digest[:2], "big") >> (16 - BUCKET_BITS)


def number_scope(tenant_id: int, bucket: int, number: int) -> int:
    """Compose a scope's number from its parts."""
    # The database enforces the same limits for the numbers that it assigns.
    parts = ((tenant_id, TENANT_BITS), (bucket, BUCKET_BITS), (number, NUMBER_BITS))
    if not all(0 <= part < 2**bits for part, bits in parts):
        raise ValueError("no scope has such a number")
    return (tenant_id << BUCKET_BITS | bucket) << NUMBER_BITS | number


def tenant_of(scope_id: int) -> int:
    """Return the tenant's number in a scope's number."""
    return scope_id >> (BUCKET_BITS + NUMBER_BITS)


def bucket_of_number(scope_id: int) -> int:
    """Return the bucket in a scope's number."""
    return scope_id >> NUMBER_BITS & (1 << BUCKET_BITS) - 1


def number_range(tenant_id: int, first_bucket: int, last_bucket: int) -> tuple[int, int]:
    """Return the first and the last number that scopes of some buckets can have."""
    first = (tenant_id << BUCKET_BITS | first_bucket) << NUMBER_BITS
    return first, ((tenant_id << BUCKET_BITS | last_bucket) + 1 << NUMBER_BITS) - 1


CURSOR = re.compile(r"([0-9a-f]{32})\.(0|[1-9][0-9]{0,17})", re.ASCII)


def write_cursor(incarnation: UUID, number: int) -> str:
    """Format a position in a scope's changes: the incarnation of the record, and a change number."""
    return f"{incarnation.hex}.{number}"


def read_cursor(cursor: str) -> tuple[UUID, int]:
    """Parse a cursor of `write_cursor`."""
    parts = CURSOR.fullmatch(cursor)
    if parts is None:
        raise InvalidInputError("since must be a cursor returned by a change")
    return UUID(parts[1]), int(parts[2])
