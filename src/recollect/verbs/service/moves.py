"""Move buckets of a tenant from one shard to another while they are used; what was broken off is taken up again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from recollect.errors import ConflictError, RecollectError
from recollect.models.shards import LAST_BUCKET, OWN_BUCKET
from recollect.store.memories import spaces
from recollect.store.shards import catalog, moves
from recollect.store.shards.copies import Copies, list_closed
from recollect.store.shards.handover import Handover
from recollect.store.shards.moves import Move, MoveState
from recollect.store.shards.tenants import Tenants

Report: TypeAlias = Callable[[str, int, int], None]
"""Told of a step how much of it is done, and of how much."""
WHOLE = (OWN_BUCKET, LAST_BUCKET)
NEAR_BYTES = 1_000_000
"""How far the target may be behind when the comparison begins."""
FENCE_SECONDS, FENCES = 5.0, 5
RECEIPT_SECONDS = 30.0
"""How long a move waits for receipts that wait for a mirror or for another shard."""
COMPARISONS = 3
"""What is pruned by the clock does not wait for the lock: a difference must come again to count."""
KEPT_HOURS = 24.0


@dataclass(frozen=True, slots=True)
class Moves:
    """Where an operator moves tenants between shards."""

    owner: str = field(repr=False)
    """The DSN of the owner of the catalog."""

    async def move(
        self, tenant: str, target: str, report: Report, buckets: tuple[int, int] | None = None
    ) -> list[tuple[int, int]]:
        """Move a tenant, or some of its buckets, or go on with that; return what was moved."""
        tenant_id = await self._find_tenant(tenant)
        placed = await catalog.find_placed(self.owner, tenant_id)
        shard_id = await catalog.find_shard(self.owner, target)
        moved = [await self._go_on(each, shard_id, report) for each in await self._under_way(tenant_id)]
        first, last = buckets or WHOLE
        for placement in placed.placements:
            part = max(first, placement.first_bucket), min(last, placement.last_bucket)
            if placement.shard_id != shard_id and part[0] <= part[1] and part not in moved:
                moved.append(await self._run(await moves.begin(self.owner, tenant_id, part, shard_id), report))
        return moved

    async def stop(self, tenant: str) -> None:
        """Give up the move of a tenant that is under way, unless the target is in charge already."""
        for move in await self._under_way(await self._find_tenant(tenant)):
            if move.state is MoveState.SWITCHED:
                raise ConflictError("The target is in charge already: let the move end.")
            await self._give_up(move, await self._reach(move), "stopped")

    async def clean(self, hours: float = KEPT_HOURS) -> int:
        """Remove what was closed so long ago from every shard; return how many placements that were."""
        removed = 0
        for shard_id, shard in (await catalog.list_addresses(self.owner)).items():
            for tenant_id, (first, last) in await list_closed(shard.owner, hours):
                left = Move(0, tenant_id, first, last, shard_id, shard_id, MoveState.DONE)
                await Copies(left, shard.owner, shard.owner).give_up()
                removed += 1
        return removed

    async def _under_way(self, tenant_id: int) -> list[Move]:
        return await moves.list_under_way(self.owner, tenant_id)

    async def _find_tenant(self, name: str) -> int:
        return await Tenants(catalog=self.owner, several=True).find(name)

    async def _reach(self, move: Move) -> Handover:
        shards = await catalog.list_addresses(self.owner)
        return Handover(Copies(move, shards[move.source].owner, shards[move.target].owner))

    async def _go_on(self, move: Move, target: int, report: Report) -> tuple[int, int]:
        if move.target != target:
            raise ConflictError("A move of this tenant to another shard is under way: let it end, or stop it.")
        return await self._run(move, report)

    async def _run(self, move: Move, report: Report) -> tuple[int, int]:
        """Go through the steps that are left; a problem before the switch leaves the source in charge."""
        shards = await self._reach(move)
        if move.state is not MoveState.SWITCHED:
            try:
                await self._bring(move, shards, report)
            except ConflictError as problem:
                await self._give_up(move, shards, str(problem))
                raise
        await self._finish(move, shards, report)
        return move.first_bucket, move.last_bucket

    async def _bring(self, move: Move, shards: Handover, report: Report) -> None:
        """Copy, catch up, compare, fence, and switch."""
        copies = shards.copies
        await copies.check()
        placed = await catalog.find_placed(self.owner, move.tenant_id)
        await copies.align([each for each in placed.placements if each.shard_id == move.source])
        await copies.begin(placed.find(move.first_bucket).generation + 1)
        await copies.follow_copy(lambda done, total: report("tables copied", done, total))
        await copies.catch_up(NEAR_BYTES, lambda behind: report("bytes behind", behind, behind))
        await self._compare(shards, report)
        await self._index(copies)
        await moves.set_state(self.owner, move, MoveState.FENCED)
        await self._close(shards)
        await moves.switch(self.owner, move)
        report("switched", 1, 1)

    async def _close(self, shards: Handover) -> None:
        """Fence the source and close it, when the target has all and no receipt waits for anything."""
        for _ in range(FENCES):
            await shards.await_receipts(RECEIPT_SECONDS)
            try:
                await shards.fence(FENCE_SECONDS)
                if not await shards.compare_numbers():
                    raise ConflictError("The scopes differ in their numbers of changes: nothing was switched.")
                if not await shards.count_unfinished() and await shards.close():
                    return
                await shards.reopen()
            except RecollectError:
                await shards.reopen()
                raise
        raise ConflictError("The fence ended by itself before the switch: nothing was switched.")

    async def _compare(self, shards: Handover, report: Report) -> None:
        """Compare both shards by checksums, and raise what differs each time."""
        differing: list[str] = []
        for _ in range(COMPARISONS):
            differing = await shards.compare(lambda done, total: report("tables compared", done, total))
            if not differing:
                return
        raise ConflictError(f"The shards differ in {', '.join(differing)}: nothing was switched.")

    async def _index(self, copies: Copies) -> None:
        """Give the large scopes on the target the approximate indexes that they have on the source."""
        await spaces.index_again(copies.target, int(copies.named["first"]), int(copies.named["last"]))

    async def _finish(self, move: Move, shards: Handover, report: Report) -> None:
        """Let the target serve, and remove what was only needed to copy."""
        placed = await catalog.find_placed(self.owner, move.tenant_id)
        await shards.open(placed.find(move.first_bucket).generation)
        report("jobs moved", await shards.move_jobs(), 0)
        await shards.copies.end_copying()
        await moves.set_state(self.owner, move, MoveState.DONE)

    async def _give_up(self, move: Move, shards: Handover, reason: str) -> None:
        await shards.reopen()
        await shards.copies.end_copying()
        await shards.copies.give_up()
        await moves.set_state(self.owner, move, MoveState.ENDED, reason)
