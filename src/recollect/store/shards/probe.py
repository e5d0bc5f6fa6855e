"""Check whether shards answer and fit this program; report failing shards and use the others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from recollect.errors import RecollectError, UnavailableError
from recollect.models.service import EmbeddingSpace
from recollect.models.shards import Shard
from recollect.store.database.probe import Probe
from recollect.store.shards.map import ShardMap


class ShardProbe:
    """A probe for each shard; together they have the interface of one server's probe."""

    def __init__(self, shards: Callable[[], Mapping[int, Shard]]) -> None:
        self._shards = shards
        self._probes: dict[str, Probe] = {}
        self.failing: dict[str, str] = {}
        """Shards that failed the last check, and why."""

    async def disconnect(self) -> None:
        """Close every connection."""
        for probe in self._probes.values():
            await probe.disconnect()

    @property
    def postgresql(self) -> str:
        """Return the versions of all servers."""
        return ", ".join(sorted({probe.postgresql for probe in self._probes.values()}))

    def version_of(self, name: str) -> str:
        """Return the version of one shard's server; empty if it did not answer."""
        return f"PostgreSQL {self._probes[name].postgresql}" if name in self._probes else ""

    @property
    def schema(self) -> str:
        """Return the name of the newest migration that this program knows."""
        return next((probe.schema for probe in self._probes.values()), "")

    async def check(self) -> None:
        """Check every shard; raise the error of one of them if none can be used."""
        shards = list(self._shards().values())
        outcomes = await asyncio.gather(*map(self._check, shards))
        problems = {shard.name: each for shard, each in zip(shards, outcomes, strict=True) if each is not None}
        self.failing = {name: str(problem) for name, problem in problems.items()}
        if len(problems) == len(shards):
            raise next(iter(problems.values()), UnavailableError("The catalog names no shard yet; add one."))

    async def active_space(self) -> EmbeddingSpace | None:
        """Read the active embedding space from the first working shard."""
        for name, probe in self._probes.items():
            if name not in self.failing:
                return await probe.active_space()
        return None

    async def _check(self, shard: Shard) -> RecollectError | None:
        known, place = self._probes.get(shard.name), (shard.address, shard.identity)
        try:
            if known is not None and known.place == place:
                await known.check()
                return None
            self._probes[shard.name] = await Probe.open(shard.address, expected=shard.identity)
            if known is not None:
                await known.disconnect()
        except RecollectError as problem:
            return problem
        return None


async def probe_shards(address: str, map_file: Path) -> list[tuple[str, str, str]]:
    """Check every shard of a catalog; return name, version, number of tenants, and the problem, if any."""
    shard_map = ShardMap(address, map_file)
    await shard_map.open()
    probe = ShardProbe(lambda: shard_map.shards)
    try:
        with suppress(RecollectError):
            await probe.check()
        placed = Counter(shard_id for each in shard_map.tenants.values() for shard_id in each.shards)
        return [
            (each.name, f"{probe.version_of(each.name)}, {placed[each.id]:,} tenants", probe.failing.get(each.name, ""))
            for each in shard_map.shards.values()
        ]
    finally:
        await probe.disconnect()
        await shard_map.stop_following()


AnyProbe: TypeAlias = Probe | ShardProbe
