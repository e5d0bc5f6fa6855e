"""Check whether shards answer and fit this program: one that does not is named, and the others go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeAlias

from recollect.core.text.variants import NEWEST
from recollect.errors import RecollectError, UnavailableError
from recollect.models.service import EmbeddingSpace
from recollect.models.shards import Shard
from recollect.store.database.probe import Probe


class ShardProbe:
    """A probe for each shard; together they say what one would say of one server."""

    def __init__(self, shards: Callable[[], Mapping[int, Shard]]) -> None:
        self._shards = shards
        self._probes: dict[str, Probe] = {}
        self.text_version = NEWEST
        """By which version new scopes fold texts: the oldest of all shards', as of the last check."""
        self.failing: dict[str, str] = {}
        """Shards that did not answer or do not fit, as of the last check, and why."""

    async def close(self) -> None:
        """Close every connection."""
        for probe in self._probes.values():
            await probe.close()

    @property
    def postgresql(self) -> str:
        """Say which versions the servers have."""
        return ", ".join(sorted({probe.postgresql for probe in self._probes.values()}))

    @property
    def schema(self) -> str:
        """Name the newest migration that this program knows."""
        return next((probe.schema for probe in self._probes.values()), "")

    async def check(self) -> None:
        """Look at every shard; raise the error of one of them if none can be used."""
        shards = list(self._shards().values())
        outcomes = await asyncio.gather(*map(self._check, shards))
        problems = {shard.name: each for shard, each in zip(shards, outcomes, strict=True) if each is not None}
        self.failing = {name: str(problem) for name, problem in problems.items()}
        if len(problems) == len(shards):
            raise next(iter(problems.values()), UnavailableError("The catalog names no shard yet; add one."))
        self.text_version = min(probe.text_version for name, probe in self._probes.items() if name not in self.failing)

    async def active_space(self) -> EmbeddingSpace | None:
        """Read which space recall reads, from the first shard that tells it."""
        for name, probe in self._probes.items():
            if name not in self.failing:
                return await probe.active_space()
        return None

    async def _check(self, shard: Shard) -> RecollectError | None:
        try:
            if shard.name in self._probes:
                await self._probes[shard.name].check()
            else:
                self._probes[shard.name] = await Probe.open(shard.address)
        except RecollectError as problem:
            return problem
        return None


AnyProbe: TypeAlias = Probe | ShardProbe
