"""Tenants on their servers: an operator suspends and resumes their writes, places them, and exports their keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from recollect.errors import ConflictError, InvalidInputError
from recollect.models.shards import LAST_BUCKET, OWN_BUCKET, BucketPlacement, ServerAddresses, TenantPlacement
from recollect.store.shards import catalog, placing
from recollect.store.shards.tenants import Tenants

SUSPEND_FIRST = "Suspend the writes of this tenant first: run `recollect admin tenants suspend`."
UNFINISHED = "An erasure of this tenant is not finished: resume the tenant, and wait for its receipt."
ONE_SHARD = "A tenant with data is placed on one shard; only a new one is spread."
FIRST = attrgetter("first_bucket")
PLACE = attrgetter("first_bucket", "shard_id")


@dataclass(frozen=True, slots=True)
class TenantPlacements:
    """Where an operator suspends and places tenants."""

    tenants: Tenants

    async def suspend(self, tenant: str) -> None:
        """Refuse the writes of a tenant on every server that has it, after those under way have ended."""
        tenant_id, servers = await self.tenants.find_tenant_number(tenant), await self.tenants.servers_of(tenant)
        for server in servers.values():
            await placing.suspend(server, tenant_id)
        if self.tenants.several:
            placed = await catalog.find_placed(self.tenants.catalog, tenant_id)
            await find_served(placed, servers, tenant_id)

    async def resume(self, tenant: str) -> None:
        """Accept the writes of a tenant again, under the next generation."""
        tenant_id = await self.tenants.find_tenant_number(tenant)
        if not self.tenants.several:
            [server] = (await self.tenants.servers_of(tenant)).values()
            await placing.resume(server, tenant_id)
            return
        async with placing.deciding(self.tenants.catalog) as (connection, servers):
            placed = await catalog.read_placed(connection, tenant_id)
            await find_served(placed, servers, tenant_id)
            for shard_id in placed.shards:
                await placing.resume(servers[shard_id], tenant_id)
            await placing.record(connection, tenant_id, await find_served(placed, servers, tenant_id))

    async def place(self, tenant: str, names: Sequence[str]) -> None:
        """Place a new tenant on one shard or several, or a suspended one on a shard that has no rows of it."""
        owner = catalog.require_owner(self.tenants.catalog)
        chosen = [await catalog.find_shard(owner, name) for name in names]
        if not chosen or len({*chosen}) < len(chosen):
            raise InvalidInputError("name each shard once")
        if await catalog.find_tenant(owner, tenant) is None:
            await catalog.ensure_tenant(owner, tenant, placing.spread_evenly(chosen))
            return
        if len(chosen) > 1:
            raise ConflictError(ONE_SHARD)
        await self._place_again(tenant, chosen[0])

    async def _place_again(self, tenant: str, target: int) -> None:
        """Make a shard wait for a suspended tenant's rows, and suspend it on its old shards. A new call resumes."""
        tenant_id = await self.tenants.find_tenant_number(tenant)
        async with placing.deciding(self.tenants.catalog) as (connection, servers):
            placed = await catalog.read_placed(connection, tenant_id)
            if target in placed.shards:
                raise ConflictError("The tenant is placed on that shard already: choose another one.")
            found = await placing.find_claims(servers, tenant_id)
            if {*found} - {*placed.shards, target}:
                raise ConflictError(placing.UNLIKE)
            if not all(each.fenced for each in found.values()):
                raise ConflictError(SUSPEND_FIRST)
            if any(each.erasing for each in found.values()):
                raise ConflictError(UNFINISHED)
            # What a shard that awaits rows since an earlier attempt has to get is counted where the rows are.
            memories = sum(each.memories for shard_id, each in found.items() if shard_id in placed.shards)
            memories = memories or sum(each.memories for each in found.values())
            # The catalog may be older than the servers: the generation must be above theirs.
            claims = chain.from_iterable(each.placements for each in found.values())
            generation = 1 + max(each.generation for each in (*placed.placements, *claims))
            await placing.await_rows(servers[target], tenant_id, tenant, generation, memories)
            for shard_id in placed.shards:
                await placing.close_tenant(servers[shard_id], tenant_id)
            await placing.record(connection, tenant_id, [BucketPlacement(OWN_BUCKET, LAST_BUCKET, target, generation)])

    async def export(self, tenant: str, write: Callable[[str], object]) -> int:
        """Write what a tenant has outside its scopes as lines of JSON; return how many there are."""
        tenant_id, servers = await self.tenants.find_tenant_number(tenant), await self.tenants.servers_of(tenant)
        home, *_ = servers.values()
        lines = await placing.export_tenant(home, tenant_id)
        for line in lines:
            write(json.dumps(line, ensure_ascii=False) + "\n")
        return len(lines)

    async def import_lines(self, tenant: str, lines: Sequence[str]) -> int:
        """Store the lines of `export` for a tenant. Rows that are stored already stay."""
        tenant_id, servers = await self.tenants.find_tenant_number(tenant), await self.tenants.servers_of(tenant)
        home, *_ = servers.values()
        try:
            read = [json.loads(line) for line in lines]
            await placing.import_tenant(home, tenant_id, read)
        except (ValueError, KeyError, TypeError):
            raise InvalidInputError("This is not a file of `recollect admin tenants export`.") from None
        return len(read)


async def find_served(
    placed: TenantPlacement, servers: Mapping[int, ServerAddresses], tenant_id: int
) -> list[BucketPlacement]:
    """Return the parts of a tenant that its servers serve; raise if the catalog has others."""
    found = await placing.find_claims({each: servers[each] for each in placed.shards}, tenant_id)
    served = sorted(chain.from_iterable(each.placements for each in found.values()), key=FIRST)
    if [*map(PLACE, served)] != [*map(PLACE, placed.placements)]:
        raise ConflictError(placing.UNLIKE)
    return served
