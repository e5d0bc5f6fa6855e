"""Apply erasures from the log to a restored record, and finish its unfinished purges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from recollect.core.service.erasures import LoggedErasure
from recollect.core.service.numbers import tenant_of
from recollect.models.conversations import ConversationState
from recollect.models.imports import UserErasure
from recollect.models.outside import RestoreReport
from recollect.models.service import Scope
from recollect.store.backups import record
from recollect.store.conversations import lifecycle
from recollect.store.conversations.lifecycle import StateChange
from recollect.store.imports import erasures
from recollect.store.memories import memories
from recollect.store.memories.memories import RowQuery
from recollect.store.service import maintenance
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.erase import remove_objects
from recollect.verbs.recovery import recover

ORIGIN = "restore"
"""The origin of a restore's erasures in receipts."""


async def reapply(parts: Dependencies, entries: Sequence[LoggedErasure]) -> RestoreReport:
    """Repeat erasures made after a backup, in their order; data that the backup lacks is skipped."""
    applied, receipts = 0, set[tuple[int, UUID]]()
    for entry in entries:
        scope = await record.find_scope(parts.database, entry.scope_id)
        if scope is not None and await recover(parts.recoveries, scope.tenant_id, partial(erase, parts, scope, entry)):
            applied += 1
            if entry.receipt is not None and not entry.conversation:
                receipts.add((scope.tenant_id, entry.receipt))
    finished = await finish_purges(parts)
    for tenant_id, receipt in receipts:
        await erasures.finish(parts.database, tenant_id, receipt)
    return RestoreReport(len(entries), applied, finished)


async def erase(parts: Dependencies, scope: Scope, entry: LoggedErasure) -> bool:
    """Apply one entry; return whether there was anything to erase."""
    if entry.ids:
        wanted = RowQuery(entry.ids, expired=True, every=True)
        gone, _ = await memories.forget(parts.database, scope, wanted)
        return bool(gone)
    if entry.receipt is None:
        return False
    of_purge = bool(entry.conversation)
    if await record.has_receipt(parts.database, entry.scope_id, entry.receipt, of_purge=of_purge):
        return False
    return await (purge if of_purge else erase_whole)(parts, scope, entry, entry.receipt)


async def purge(parts: Dependencies, scope: Scope, entry: LoggedErasure, receipt: UUID) -> bool:
    """Repeat a purge with its receipt; its memories are erased together with all others."""
    wanted = StateChange(ConversationState.PURGING, ORIGIN, receipt=receipt)
    return await lifecycle.change(parts.database, scope, entry.conversation, wanted) is not None


async def erase_whole(parts: Dependencies, scope: Scope, entry: LoggedErasure, receipt: UUID) -> bool:
    """Erase all data of a scope again, with the receipt of the user's erasure."""
    tenant_id = tenant_of(entry.scope_id)
    # Without a user it was the erasure of one scope: it must never apply to all scopes without a user.
    whole = UserErasure(receipt, scope.user, ORIGIN, 0, {}, agent="" if scope.user else scope.agent)
    await erasures.begin_part(parts.database, tenant_id, whole)
    await erasures.erase_scope(parts.database, tenant_id, entry.scope_id, whole)
    await remove_objects(parts, [entry.scope_id])
    return True


async def finish_purges(parts: Dependencies) -> int:
    """Erase the memories of all purging conversations, and update others; return the number of scopes."""
    finished = 0
    async for scopes in maintenance.walk_due(parts.database, "sync_state"):
        for scope_id in scopes:
            while await lifecycle.sync_chunk(parts.database, scope_id):
                pass
        finished += len(scopes)
    return finished
