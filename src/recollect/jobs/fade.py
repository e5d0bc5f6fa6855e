"""Let a scope's memories fade that may: chunk by chunk, each in a transaction of its own, under the job's lease."""

from __future__ import annotations

from recollect.core.memories.fading import policy_by
from recollect.jobs.progress import telling
from recollect.store.database.pool import Database
from recollect.store.memories import fading
from recollect.store.memories.fading import Walk
from recollect.store.service import scopes
from recollect.store.service.jobs import Lease
from recollect.store.service.scopes import BEGINNING


class Pass:
    """One pass over a scope, and how many memories it has kept so far."""

    def __init__(self, database: Database, scope_id: int) -> None:
        self.database = database
        self.scope_id = scope_id
        self.kept = 0

    async def count_left(self) -> int:
        """Count what is still to be looked at."""
        return max(await fading.count_hot(self.database, self.scope_id) - self.kept, 0)

    async def run(self, usual_days: float, lease: Lease) -> None:
        """Walk from the oldest memory to the newest; a pass that was cut off begins again, and finds less to do."""
        policy = policy_by(await fading.fetch_rules(self.database, self.scope_id, usual_days))
        walk = Walk(self.scope_id, policy, lease=lease)
        async with telling(self.database, lease, self.count_left) as counter:
            chunk = await fading.fade_chunk(self.database, walk, BEGINNING)
            while True:
                self.kept += sum(not each.fades for each in chunk.judgements)
                counter.add(len(chunk.judgements))
                if chunk.next_cursor is None:
                    return
                chunk = await fading.fade_chunk(self.database, walk, chunk.next_cursor)


async def defer_passes(database: Database, usual_days: float) -> None:
    """Put a pass off for every scope whose agent lets memories fade."""
    for tenant_id in await scopes.list_tenants(database):
        await fading.defer_passes(database, tenant_id, usual_days)
