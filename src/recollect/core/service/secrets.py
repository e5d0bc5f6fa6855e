"""Create and parse the secrets of API keys: tenant, random bytes, and checksum.

A secret is `rec_` and 52 characters of base64url: the tenant's number (3 bytes, the first four characters), 32 random
bytes, and the CRC-32 of everything before it (4 bytes). Proxies can read the tenant, and mistyped or truncated secrets
are detected. Only the random bytes are secret: the checksum proves nothing.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from zlib import crc32

PREFIX = "rec_"
TENANT_BYTES = 3
RANDOM_BYTES = 32
CHECKSUM_BYTES = 4
SHAPE = re.compile(PREFIX + r"([A-Za-z0-9_-]{52})", re.ASCII)


def write_secret(tenant_id: int, entropy: bytes) -> str:
    """Return the secret of a tenant's key, made of 32 random bytes."""
    if len(entropy) != RANDOM_BYTES:
        raise ValueError("a secret has 32 random bytes")
    named = tenant_id.to_bytes(TENANT_BYTES, "big") + entropy
    return PREFIX + urlsafe_b64encode(named + checksum(named)).decode()


def tenant_of_secret(secret: str) -> int | None:
    """Return the tenant's number in a secret; None if it is not a valid secret."""
    shaped = SHAPE.fullmatch(secret)
    if shaped is None:
        return None
    told = urlsafe_b64decode(shaped[1])
    named = told[:-CHECKSUM_BYTES]
    return int.from_bytes(named[:TENANT_BYTES], "big") if checksum(named) == told[-CHECKSUM_BYTES:] else None


def checksum(named: bytes) -> bytes:
    """Return the checksum of the tenant and the random bytes."""
    return crc32(PREFIX.encode() + named).to_bytes(CHECKSUM_BYTES, "big")
