"""Shards, as an operator looks after them: enter, list, drain, and move tenants between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from recollect.errors import ConflictError
from recollect.models.shards import ShardState
from recollect.store.shards import catalog, moves
from recollect.store.shards.catalog import ShardLoad
from recollect.verbs.service.moves import KEPT_HOURS, Moves, Report


@dataclass(frozen=True, slots=True)
class Shards:
    """Where an operator looks after the servers of a catalog."""

    owner: str = field(repr=False)
    """The DSN of the owner of the catalog."""

    async def list(self) -> Sequence[ShardLoad]:
        """List the shards, with what each holds."""
        return await catalog.list_loads(self.owner)

    async def move(
        self, tenant: str, target: str, report: Report, buckets: tuple[int, int] | None = None
    ) -> Sequence[tuple[int, int]]:
        """Move a tenant, or some of its buckets, while it is used; or go on with that. Return the buckets."""
        return await Moves(self.owner).move(tenant, target, report, buckets)

    async def stop(self, tenant: str) -> None:
        """Give up a move that is under way; the source stays in charge."""
        await Moves(self.owner).stop(tenant)

    async def open(self, name: str) -> None:
        """Let new tenants be placed on a shard again."""
        await catalog.set_state(self.owner, name, ShardState.OPEN)

    async def drain(self, name: str, report: Report) -> int:
        """Place no more tenants on a shard, and move what it has to the emptiest others; return how many parts."""
        await catalog.set_state(self.owner, name, ShardState.DRAINING)
        parts = await moves.list_parts(self.owner, name)
        for tenant, buckets in parts:
            open_ones = [each for each in await self.list() if each.state is ShardState.OPEN and each.name != name]
            if not open_ones:
                raise ConflictError("No other shard is open: add one with `recollect shard add`.")
            target = min(open_ones, key=lambda each: each.buckets)
            await self.move(tenant, target.name, report, buckets)
        return len(parts)

    async def clean(self, hours: float = KEPT_HOURS) -> int:
        """Remove what has been closed for so long; return how many placements that were."""
        return await Moves(self.owner).clean(hours)
