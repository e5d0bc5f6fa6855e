"""A process's own copy of the catalog's map: read at the start, followed by notifications, kept on disk.

A copy may be old. That is found out by the shard, which refuses who goes by an earlier generation; the tenant is read
anew then. So while the catalog is unavailable, everything goes on but changes of placement.
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
from recollect.models.shards import PlacedBuckets, PlacedTenant, Shard, ShardState
from recollect.store.database.pool import Connection
from recollect.store.database.refusals import connect, reach
from recollect.store.shards import catalog

LOG = logging.getLogger("recollect.shards")
CHANNEL = "recollect_map"
PAUSE_SECONDS = 1.0
"""How long a lost catalog is left alone before it is tried again, and how often what has changed is saved."""


class ShardMap:
    """Which shard serves which buckets of which tenant, as far as this process knows."""

    def __init__(self, address: str, file: Path | None = None) -> None:
        self._address = address
        self._file = file
        self._tasks: list[asyncio.Task[None]] = []
        self._saved = True
        self._reading = asyncio.Lock()
        self.shards: dict[int, Shard] = {}
        self.tenants: dict[int, PlacedTenant] = {}

    async def open(self) -> None:
        """Read the map from the catalog, or from disk where the catalog does not answer; then follow it."""
        try:
            async with await connect(self._address) as connection:
                await self._read_all(connection)
        except psycopg.OperationalError as problem:
            if not self._load():
                raise SetupError(
                    "The catalog does not answer at RECOLLECT_CATALOG_URL, and no copy of its map is on this machine."
                ) from problem
            LOG.warning(json.dumps({"event": "catalog_unavailable", "tenants": len(self.tenants)}))
        await self._save_changes()
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._keep())]

    async def close(self) -> None:
        """Stop following, and save what has changed."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._save_changes()

    async def find(self, tenant_id: int) -> PlacedTenant:
        """Return where a tenant lies; one that is not known is asked for."""
        return self.tenants.get(tenant_id) or await self.read_anew(tenant_id)

    async def read_anew(self, tenant_id: int) -> PlacedTenant:
        """Ask the catalog where a tenant lies; many who ask at once wait for each other."""
        async with self._reading:
            try:
                async with await connect(self._address) as connection:
                    await self._read_tenant(connection, tenant_id)
            except psycopg.OperationalError:
                raise UnavailableError("The catalog does not say where the tenant lies now; try again.") from None
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
        # The connection that listens is in the middle of that: what has changed is read over another one.
        async with await connect(self._address) as connection:
            if told.isdigit():
                await self._read_tenant(connection, int(told))
            else:
                await self._read_all(connection)

    async def _read_all(self, connection: Connection) -> None:
        shards, tenants = await catalog.read_shards(connection), await catalog.read_tenants(connection)
        self.shards, self.tenants, self._saved = shards, tenants, False

    async def _read_tenant(self, connection: Connection, tenant_id: int) -> None:
        found = (await catalog.read_tenants(connection, tenant_id)).get(tenant_id)
        if found is None:
            self.tenants.pop(tenant_id, None)
            return
        if any(shard_id not in self.shards for shard_id in found.shards):
            self.shards = await catalog.read_shards(connection)
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
            LOG.warning(json.dumps({"event": "map_not_saved", "error": type(problem).__name__}))

    def _save(self, file: Path) -> None:
        told = {
            "shards": [astuple(each) for each in self.shards.values()],
            "tenants": [[each.tenant_id, *map(astuple, each.placements)] for each in self.tenants.values()],
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        written = file.with_suffix(f".{os.getpid()}")
        # The addresses may hold passwords.
        with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
            json.dump(told, opened)
        written.replace(file)

    def _load(self) -> bool:
        try:
            told: Any = json.loads(self._file.read_text(encoding="utf-8")) if self._file else None
        except (OSError, ValueError):
            return False
        if not told:
            return False
        read = (Shard(*row[:4], *[ShardState(row[4]), tuple(row[5])]) for row in told["shards"])
        self.shards = {each.id: each for each in read}
        placed = (PlacedTenant(row[0], tuple(PlacedBuckets(*each) for each in row[1:])) for row in told["tenants"])
        self.tenants = {each.tenant_id: each for each in placed}
        return True


def default_map_file() -> Path:
    """Say where the copy is kept if nobody says otherwise."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recollect" / "map.json"


async def first_shard(address: str) -> str:
    """Return the address of a catalog's first shard."""
    async with await reach(address, "RECOLLECT_CATALOG_URL") as connection:
        shards = await catalog.read_shards(connection)
    if not shards:
        raise SetupError("The catalog names no shard yet: add one with `recollect shard add`.")
    return next(iter(shards.values())).address
