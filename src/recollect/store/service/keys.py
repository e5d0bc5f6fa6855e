"""Make, list and revoke API keys; only a secret's hash is ever stored."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from uuid import UUID

from psycopg.rows import DictRow

from recollect.core.service.secrets import RANDOM_BYTES, write_secret
from recollect.errors import NotFoundError
from recollect.models.service import ApiKey, Bounds, Right
from recollect.store.database.pool import Database, load_queries

QUERIES = load_queries(__file__)


async def create_key(
    database: Database, tenant_id: int, name: str, rights: Iterable[Right], trust: int, bounds: Bounds
) -> tuple[ApiKey, str]:
    """Make a key and return it with its secret, which cannot be shown again."""
    secret = write_secret(tenant_id, secrets.token_bytes(RANDOM_BYTES))
    parameters = {
        "hash": hashlib.sha256(secret.encode()).hexdigest(),
        "name": name,
        "rights": sorted(set(rights)),
        "trust": trust,
        "agent": bounds.agent,
        "user": bounds.user,
    }
    async with database.transaction(tenant_id) as connection:
        rows = await (await connection.execute(QUERIES["create"], parameters)).fetchall()
        return to_key(rows[0]), secret


async def list_keys(database: Database, tenant_id: int) -> list[ApiKey]:
    """List a tenant's keys, revoked ones included."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["all"])
    return [to_key(row) for row in await found.fetchall()]


async def revoke_key(database: Database, tenant_id: int, key_id: UUID) -> ApiKey:
    """Revoke a key; the next request that shows it is refused."""
    async with database.transaction(tenant_id) as connection:
        row = await (await connection.execute(QUERIES["revoke"], {"id": key_id})).fetchone()
        if row is None:
            raise NotFoundError("There is no such key.")
        return to_key(row)


def to_key(row: DictRow) -> ApiKey:
    """Turn a row into a key."""
    rights = frozenset(Right(right) for right in row["rights"])
    made, revoked = row["created_at"], row["revoked_at"]
    return ApiKey(row["id"], row["name"], rights, row["trust"], made, revoked, row["agent"], row["user"])
