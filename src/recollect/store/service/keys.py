"""Create, list and revoke API keys; only a secret's hash is ever stored."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import fields
from uuid import UUID

from psycopg.rows import DictRow

from recollect.core.service.secrets import RANDOM_BYTES, write_secret
from recollect.errors import NotFoundError
from recollect.models.service import ApiKey, KeyRequest, Limits, Right
from recollect.store.database.pool import Database, load_queries

QUERIES = load_queries(__file__)
MISSING = "No such key."


async def create_key(database: Database, tenant_id: int, wanted: KeyRequest) -> tuple[ApiKey, str]:
    """Create a key and return it with its secret, which cannot be shown again."""
    secret = write_secret(tenant_id, secrets.token_bytes(RANDOM_BYTES))
    parameters = {
        "hash": hashlib.sha256(secret.encode()).hexdigest(),
        "name": wanted.name,
        "rights": sorted(wanted.rights),
        "trust": wanted.trust,
        "agent": wanted.bounds.agent,
        "user": wanted.bounds.user,
        "expires_at": wanted.expires_at,
        "parent": wanted.parent,
    }
    async with database.transaction(tenant_id) as connection:
        rows = await (await connection.execute(QUERIES["create"], parameters)).fetchall()
        return to_key(rows[0]), secret


async def list_keys(database: Database, tenant_id: int) -> list[ApiKey]:
    """List a tenant's keys, including revoked ones, but only valid child keys."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["all"])
    return [to_key(row) for row in await found.fetchall()]


async def read_key(database: Database, tenant_id: int, key_id: UUID) -> ApiKey:
    """Read a key of a tenant."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["one"], {"id": key_id})
    row = await found.fetchone()
    if row is None:
        raise NotFoundError(MISSING)
    return to_key(row)


async def revoke_key(database: Database, tenant_id: int, key_id: UUID, parent: UUID | None = None) -> ApiKey:
    """Revoke a key, or only a child of a key; later requests with it are refused."""
    async with database.transaction(tenant_id) as connection:
        row = await (await connection.execute(QUERIES["revoke"], {"id": key_id, "parent": parent})).fetchone()
        if row is None:
            raise NotFoundError(MISSING)
        return to_key(row)


def to_key(row: DictRow) -> ApiKey:
    """Convert a row to a key."""
    limits = Limits(**{each.name: row.pop(each.name) for each in fields(Limits)})
    return ApiKey(**{**row, "rights": frozenset(Right(right) for right in row["rights"])}, limits=limits)
