"""Store each tenant's encryption key for its objects, wrapped by the operator's master key."""

from __future__ import annotations

import os
from collections.abc import Mapping

from psycopg.rows import DictRow

from recollect.errors import ColdStorageError
from recollect.store.cold.sealing import KEY_BYTES, MasterKeys, SealingKey, fingerprint
from recollect.store.database.pool import Database, load_queries

QUERIES = load_queries(__file__)
NO_SUCH = "Cannot decrypt the object: its key is not in this database. Nothing was changed."


async def find_newest(database: Database, tenant_id: int, masters: MasterKeys) -> SealingKey:
    """Return the key that seals a tenant's objects.

    Creates a key if the tenant has none. Without a master key, the objects are not sealed.
    """
    if not masters.current:
        return SealingKey()
    found = await read_keys(database, tenant_id, "newest")
    if not found:
        made = SealingKey(1, os.urandom(KEY_BYTES))
        wrapped, wrapped_by = masters.wrap(tenant_id, made)
        async with database.transaction(tenant_id) as connection:
            parameters = {"version": made.version, "wrapped": wrapped, "wrapped_by": wrapped_by}
            await connection.execute(QUERIES["add"], parameters)
        # Another process may have created it first.
        found = await read_keys(database, tenant_id, "newest")
    return unwrap(masters, tenant_id, found[0])


async def list_keys(database: Database, tenant_id: int, masters: MasterKeys) -> dict[int, SealingKey]:
    """Return all keys of a tenant by version, including version 0, which does not encrypt."""
    found = await read_keys(database, tenant_id, "all")
    return {0: SealingKey(), **{row["version"]: unwrap(masters, tenant_id, row) for row in found}}


def choose_key(keys: Mapping[int, SealingKey], version: int) -> SealingKey:
    """Return the key that an object names."""
    if version not in keys:
        raise ColdStorageError(NO_SUCH)
    return keys[version]


async def rewrap(database: Database, masters: MasterKeys) -> list[tuple[int, int]]:
    """Wrap all tenants' keys with the current master key; return tenant and version of each changed key."""
    async with database.reading(None) as connection:
        tenants = await connection.execute(QUERIES["tenants"])
    done: list[tuple[int, int]] = []
    for tenant_id in [row["id"] for row in await tenants.fetchall()]:
        for row in await read_keys(database, tenant_id, "all"):
            if row["wrapped_by"] == fingerprint(masters.current):
                continue
            wrapped, wrapped_by = masters.wrap(tenant_id, unwrap(masters, tenant_id, row))
            async with database.transaction(tenant_id) as connection:
                parameters = {"version": row["version"], "before": row["wrapped_by"]}
                await connection.execute(QUERIES["rewrap"], parameters | {"wrapped": wrapped, "wrapped_by": wrapped_by})
            done.append((tenant_id, row["version"]))
    return done


async def read_keys(database: Database, tenant_id: int, query: str) -> list[DictRow]:
    """Read wrapped keys of a tenant."""
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES[query])
    return await found.fetchall()


def unwrap(masters: MasterKeys, tenant_id: int, row: DictRow) -> SealingKey:
    """Unwrap the key in a row."""
    return masters.unwrap(tenant_id, row["version"], bytes(row["wrapped"]), row["wrapped_by"])
