"""Apply erasures from the log to a restored record, and finish the purges that it had begun."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from recollect.core.service.erasures import LoggedErasure
from recollect.core.service.numbers import tenant_of
from recollect.models.conversations import ConversationState
from recollect.models.imports import UserErasure
from recollect.models.outside import Reapplied
from recollect.models.service import Scope
from recollect.store.backups import record
from recollect.store.conversations import lifecycle
from recollect.store.conversations.lifecycle import StateChange
from recollect.store.imports import erasures
from recollect.store.memories import memories
from recollect.store.memories.memories import RowQuery
from recollect.store.service import upkeep
from recollect.verbs.imports.erase import remove_objects
from recollect.verbs.parts import Parts, awake

ORIGIN = "restore"
"""Who asked for what a restore erases, as its receipts say."""


async def reapply(parts: Parts, entries: Sequence[LoggedErasure], report: Callable[[str, int, int], None]) -> Reapplied:
    """Erase what was erased after a backup was made, one entry after the other; what it has not is left."""
    applied, receipts = 0, set[tuple[int, UUID]]()
    for done, entry in enumerate(entries, 1):
        scope = await record.find_scope(parts.database, entry.scope_id)
        if scope is not None and await awake(parts, partial(erase, parts, scope, entry)):
            applied += 1
            if entry.receipt is not None and not entry.conversation:
                receipts.add((scope.tenant_id, entry.receipt))
        report("erasing", done, len(entries))
    finished = await finish_purges(parts)
    for tenant_id, receipt in receipts:
        await erasures.finish(parts.database, tenant_id, receipt)
    return Reapplied(len(entries), applied, finished)


async def erase(parts: Parts, scope: Scope, entry: LoggedErasure) -> bool:
    """Apply one entry; tell whether there was anything to erase."""
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


async def purge(parts: Parts, scope: Scope, entry: LoggedErasure, receipt: UUID) -> bool:
    """Begin a purge again, with the receipt that it has; its memories are erased with those of all others."""
    wanted = StateChange(ConversationState.PURGING, ORIGIN, receipt=receipt)
    return await lifecycle.change(parts.database, scope, entry.conversation, wanted) is not None


async def erase_whole(parts: Parts, scope: Scope, entry: LoggedErasure, receipt: UUID) -> bool:
    """Erase all of a scope again, with the receipt of the user's erasure."""
    tenant_id = tenant_of(entry.scope_id)
    whole = UserErasure(receipt, scope.user, ORIGIN, 0, {})
    await erasures.begin_part(parts.database, tenant_id, whole)
    await erasures.erase_scope(parts.database, tenant_id, entry.scope_id, whole)
    await remove_objects(parts, [entry.scope_id])
    return True


async def finish_purges(parts: Parts) -> int:
    """Erase the memories of all conversations that are to be purged, and bring others in line; count the scopes."""
    finished = 0
    async for scopes in upkeep.walk_due(parts.database, "sync_state"):
        for scope_id in scopes:
            while await lifecycle.sync_chunk(parts.database, scope_id):
                pass
        finished += len(scopes)
    return finished
