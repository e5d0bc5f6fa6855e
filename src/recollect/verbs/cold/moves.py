"""Move one scope: delete its rows after its object was verified, and its object after its rows are restored."""

from __future__ import annotations

from contextlib import suppress

from recollect.core.service.numbers import tenant_of
from recollect.errors import ColdStorageError
from recollect.models.outside import StorageTier
from recollect.store.cold import tiers
from recollect.store.cold.sealing import DAMAGED
from recollect.store.cold.storage import ColdStorage, require_storage
from recollect.store.cold.tiers import ColdObject, ScopeVersion
from recollect.store.database.pool import Connection, Database
from recollect.store.imports import exports
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.archive_object import pack, temporary, unpacked
from recollect.verbs.imports.progress import ignore_progress
from recollect.verbs.imports.restore import RestoreRun, by_section, restore_rows


async def send_out(parts: Dependencies, scope_id: int) -> ColdObject | None:
    """Move a marked scope to object storage; None, without changes, if it was used or is busy.

    It must have been marked for longer than any call takes: earlier calls have ended, and later calls have removed the
    mark.
    """
    storage, database = require_storage(parts.cold), parts.database
    made = await tiers.begin_object(database, scope_id)
    try:
        async with temporary() as file:
            async with database.snapshot(tenant_of(scope_id)) as connection:
                seen = await read_shown(connection, scope_id)
                if seen is None or seen.tier is not StorageTier.LEAVING or await tiers.is_busy(connection, scope_id):
                    return None
                written = await pack(parts, connection, storage, made, file)
            file.seek(0)
            await storage.put(made.name, file)
        await check_stored(storage, written)
        left = await tiers.delete_archived_rows(database, written, seen)
    finally:
        # The scope leaves for this object, so it stays.
        await forget_attempt(parts, storage, made)
    return written if left else None


async def read_shown(connection: Connection, scope_id: int) -> ScopeVersion | None:
    """Read the state of a scope within a snapshot, in any storage tier."""
    await exports.fix_text_format(connection)
    return await tiers.read_mark(connection, scope_id)


async def check_stored(storage: ColdStorage, written: ColdObject) -> None:
    """Read an object from the storage, and compare it with the written one."""
    async with temporary() as file:
        if await storage.fetch(written.name, file) != written.sha256:
            raise ColdStorageError(DAMAGED.format("its checksum differs"))


async def forget_attempt(parts: Dependencies, storage: ColdStorage, made: ColdObject) -> None:
    """Remove the object of a failed attempt; if that is not possible now, maintenance does it."""
    with suppress(ColdStorageError):
        if await tiers.give_up(parts.database, made):
            await tiers.remove(parts.database, storage, made)


async def restore_scope(parts: Dependencies, scope_id: int) -> bool:
    """Restore a scope in one transaction; return whether it was cold."""
    storage, database = require_storage(parts.cold), parts.database
    held = await find_held(database, scope_id)
    if held is None:
        return False
    try:
        restored = await restore_held(parts, storage, held)
    except ColdStorageError:
        # Another process that has restored it has also removed the object.
        if await find_held(database, scope_id) != held:
            return False
        raise
    if restored:
        with suppress(ColdStorageError):
            await tiers.remove(database, storage, held)
    return restored


async def find_held(database: Database, scope_id: int) -> ColdObject | None:
    """Find the object that has a scope's rows; None if they are in the database."""
    async with database.reading(tenant_of(scope_id)) as connection:
        return await tiers.read_held(connection, scope_id)


async def restore_held(parts: Dependencies, storage: ColdStorage, held: ColdObject) -> bool:
    """Restore the rows of an object, unless another process has done it."""
    tenant_id, scope_id = tenant_of(held.scope_id), held.scope_id
    async with (
        unpacked(parts, storage, held) as packed,
        parts.database.transaction(tenant_id, pipelined=False) as connection,
    ):
        await tiers.begin_moving(connection)
        seen = await tiers.read_mark(connection, scope_id, lock=True)
        if seen is None or seen.tier is not StorageTier.COLD or not await tiers.release(connection, held):
            return False
        spaces = by_section(await exports.list_spaces(connection))
        work = RestoreRun(by_section(packed.spaces), ignore_progress, parts.channel_names, {})
        await restore_rows(connection, work, (scope_id, packed.scope.agent), packed.blocks(), spaces)
        await tiers.set_tier(connection, scope_id, StorageTier.HOT)
    return True
