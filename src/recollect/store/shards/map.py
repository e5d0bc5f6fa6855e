"""A process's copy of the catalog's map: read at the start, updated by notifications, stored on disk.

A copy may be old. The shard refuses a call with an earlier generation, and the tenant is read again. So while the
catalog is unavailable, everything continues except changes of placement. The catalog may also be older than a copy, if
it was restored from a backup: of two placements the one with the higher generation stays, until a shard refuses it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

import psycopg

from recollect.errors import SetupError, UnauthenticatedError, UnavailableError
from recollect.models.shards import BucketPlacement, Shard, ShardState, TenantPlacement
from recollect.store.database.connect_errors import connect, reach
from recollect.store.database.pool import Connection
from recollect.store.shards import catalog

LOG = logging.getLogger("recollect.shards")
CHANNEL = "recollect_map"
PAUSE_SECONDS = 1.0
"""Seconds between tries to reach a lost catalog, and between saves of changes."""


class ShardMap:
    """Which shard serves which buckets of which tenant, as known to this process."""

    def __init__(self, address: str, file: Path | None = None) -> None:
        self._address = address
        self._file = file
        self._tasks: list[asyncio.Task[None]] = []
        self._saved = True
        self._reading = asyncio.Lock()
        self.shards: dict[int, Shard] = {}
        self.tenants: dict[int, TenantPlacement] = {}

    async def open(self) -> None:
        """Read the map from the catalog, or from disk if the catalog does not answer; then follow it."""
        loaded = self._load()
        try:
            async with await connect(self._address) as connection:
                await self._read_all(connection)
        except psycopg.OperationalError as problem:
            if not loaded:
                raise SetupError(
                    "Cannot reach the catalog (RECOLLECT_SHARDS__CATALOG_URL), and there is no cached map."
                ) from problem
            LOG.warning(json.dumps({"event": "catalog_unavailable", "tenants": len(self.tenants)}))
        await self._save_changes()
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._keep())]

    async def stop_following(self) -> None:
        """Stop following, and save the changes."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._save_changes()

    async def find_tenant_placement(self, tenant_id: int) -> TenantPlacement:
        """Return the placement of a tenant; ask the catalog if it is unknown."""
        return self.tenants.get(tenant_id) or await self.read_anew(tenant_id)

    async def read_anew(self, tenant_id: int) -> TenantPlacement:
        """Ask the catalog for a tenant's placement; concurrent calls wait for each other."""
        async with self._reading:
            try:
                async with await connect(self._address) as connection:
                    await self._read_tenant(connection, tenant_id)
            except psycopg.OperationalError:
                raise UnavailableError(
                    "The catalog does not know the location of the tenant right now. Try again."
                ) from None
        placed = self.tenants.get(tenant_id)
        if placed is None:
            raise UnauthenticatedError("No such tenant.")
        return placed

    async def _follow(self) -> None:
        while True:
            with suppress(psycopg.Error, OSError):
                async with await connect(self._address) as connection:
                    await connection.execute(f"listen {CHANNEL}")
                    await self._read_all(connection)
                    async for told in connection.notifies():
                        await self._learn(told.payload)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _learn(self, told: str) -> None:
        # The listening connection is busy with the notification: the change is read over another one.
        async with await connect(self._address) as connection:
            if told.isdigit():
                await self._read_tenant(connection, int(told), refused=False)
            else:
                await self._read_all(connection)

    async def _read_all(self, connection: Connection) -> None:
        shards, tenants = await catalog.read_shards(connection), await catalog.read_tenants(connection)
        if self._tasks and not shards:
            return  # A lost catalog that was created again is empty until it is repaired.
        if {each.catalog_id for each in shards.values()} != {each.catalog_id for each in self.shards.values()}:
            self.shards, self.tenants = {}, {}
        self.shards, self._saved = self.shards | shards, False
        for tenant_id, found in tenants.items():
            if found.is_as_new_as(self.tenants.get(tenant_id)):
                self.tenants[tenant_id] = found

    async def _read_tenant(self, connection: Connection, tenant_id: int, *, refused: bool = True) -> None:
        found = (await catalog.read_tenants(connection, tenant_id)).get(tenant_id)
        if found is None or not (refused or found.is_as_new_as(self.tenants.get(tenant_id))):
            return
        if any(shard_id not in self.shards for shard_id in found.shards):
            self.shards |= await catalog.read_shards(connection)
        self.tenants[tenant_id], self._saved = found, False

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            await self._save_changes()

    async def _save_changes(self) -> None:
        if self._saved or self._file is None:
            return
        self._saved = True
        try:
            await asyncio.to_thread(self._save, self._file)
        except OSError as problem:
            LOG.warning(json.dumps({"event": "catalog_cache_not_saved", "error": type(problem).__name__}))

    def _save(self, file: Path) -> None:
        told = {
            "shards": [astuple(each) for each in self.shards.values()],
            "tenants": [[each.tenant_id, *map(astuple, each.placements)] for each in self.tenants.values()],
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        written = file.with_suffix(f".{os.getpid()}")
        with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
            json.dump(told, opened)
        written.replace(file)

    def _load(self) -> bool:
        try:
            told: Any = json.loads(self._file.read_text(encoding="utf-8")) if self._file else None
            rows = told["shards"] if told else []
            read = [Shard(*row[:4], *[ShardState(row[4]), row[5]]) for row in rows]
        except (OSError, ValueError, LookupError):
            return False
        if not read:
            return False
        self.shards = {each.id: each for each in read}
        placed = (TenantPlacement(row[0], tuple(BucketPlacement(*each) for each in row[1:])) for row in told["tenants"])
        self.tenants = {each.tenant_id: each for each in placed}
        return True


def default_map_file() -> Path:
    """Return the default path of the copy."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recollect" / "map.json"


async def first_shard(address: str) -> str:
    """Return the address of a catalog's first shard."""
    async with await reach(address, "RECOLLECT_SHARDS__CATALOG_URL") as connection:
        shards = await catalog.read_shards(connection)
    if not shards:
        raise SetupError("The catalog names no shard yet: add one with `recollect admin shard add`.")
    return next(iter(shards.values())).address
