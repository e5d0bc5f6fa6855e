"""Shards, as an operator looks after them: add, list, and place new tenants on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from recollect.core.service.placements import RepairPlan, ShardDifference, list_differences
from recollect.models.shards import ShardState
from recollect.store.database.ownership import owning
from recollect.store.shards import catalog
from recollect.store.shards.catalog import ShardLoad
from recollect.store.shards.repair import repair, take_survey


@dataclass(frozen=True, slots=True)
class Shards:
    """Where an operator looks after the servers of a catalog."""

    owner: str = field(repr=False)
    """The DSN of the owner of the catalog."""

    async def list(self) -> Sequence[ShardLoad]:
        """List the shards, with the number of tenants and buckets of each."""
        return await catalog.list_loads(self.owner)

    async def check(self) -> Sequence[ShardDifference]:
        """Compare the catalog with every server."""
        async with owning(self.owner) as connection:
            return list_differences(await take_survey(connection))

    async def repair(self, start: str = "", without: Sequence[str] = ()) -> RepairPlan:
        """Make a lost or older catalog again from the servers."""
        return await repair(self.owner, start, without)

    async def open(self, name: str) -> None:
        """Place new tenants on a shard again."""
        await catalog.set_state(self.owner, name, ShardState.OPEN)

    async def drain(self, name: str) -> None:
        """Place no more tenants on a shard; the tenants that it serves stay."""
        await catalog.set_state(self.owner, name, ShardState.DRAINING)
