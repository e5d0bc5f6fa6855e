"""Move one scope: rows leave when their object was stored and read back, an object goes when its rows are back."""

from __future__ import annotations

from contextlib import suppress

from recollect.core.imports.sections import KEPT_HOT
from recollect.core.service.numbers import tenant_of
from recollect.errors import ColdStorageError
from recollect.models.outside import Tier
from recollect.store.cold import tiers
from recollect.store.cold.sealing import DAMAGED
from recollect.store.cold.storage import ColdStorage, require_storage
from recollect.store.cold.tiers import ColdObject, ScopeMark
from recollect.store.database.pool import Connection
from recollect.store.imports import exports
from recollect.verbs.imports.packed import pack, temporary, unpacked
from recollect.verbs.imports.progress import keep_quiet
from recollect.verbs.imports.restore import Restoring, restore_rows
from recollect.verbs.parts import Parts


async def send_out(parts: Parts, scope_id: int) -> ColdObject | None:
    """Send a marked scope out; None, and nothing changed, if somebody asked for it or it is busy.

    It must have been marked for longer than any call takes: whoever began before that has ended, and whoever began
    since has taken the mark away.
    """
    storage, database = require_storage(parts.cold), parts.database
    made = await tiers.begin_object(database, scope_id)
    try:
        async with temporary() as file:
            async with database.snapshot(tenant_of(scope_id)) as connection:
                seen = await read_shown(connection, scope_id)
                if seen is None or seen.tier is not Tier.LEAVING or await tiers.is_busy(connection, scope_id):
                    return None
                written = await pack(parts, connection, storage, made, file)
            file.seek(0)
            await storage.put(made.name, file)
        await check_stored(storage, written)
        left = await tiers.leave(database, written, seen)
    finally:
        # What the scope leaves for is held by now, and stays.
        await forget_attempt(parts, storage, made)
    return written if left else None


async def read_shown(connection: Connection, scope_id: int) -> ScopeMark | None:
    """Look at a scope within a snapshot, wherever its rows are."""
    await exports.settle(connection)
    return await tiers.read_mark(connection, scope_id)


async def check_stored(storage: ColdStorage, written: ColdObject) -> None:
    """Read an object back, and compare it with what was written."""
    async with temporary() as file:
        if await storage.fetch(written.name, file) != written.sha256:
            raise ColdStorageError(DAMAGED.format("its checksum is another"))


async def forget_attempt(parts: Parts, storage: ColdStorage, made: ColdObject) -> None:
    """Remove the object of an attempt that came to nothing; if that is not possible now, upkeep does it."""
    with suppress(ColdStorageError):
        if await tiers.give_up(parts.database, made):
            await tiers.remove(parts.database, storage, made)


async def bring_back(parts: Parts, scope_id: int) -> bool:
    """Bring a scope back in one transaction; tell whether it was cold."""
    storage, database, tenant_id = require_storage(parts.cold), parts.database, tenant_of(scope_id)
    async with database.reading(tenant_id) as connection:
        held = await tiers.read_held(connection, scope_id)
    if held is None:
        return False
    async with (
        unpacked(parts, storage, held) as reader,
        database.transaction(tenant_id, pipelined=False) as connection,
    ):
        await tiers.begin_moving(connection)
        seen = await tiers.read_mark(connection, scope_id, lock=True)
        # Others bring it back, too: who is first does it.
        if seen is None or seen.tier is not Tier.COLD or not await tiers.release(connection, held):
            return False
        [scope] = reader.manifest.scopes
        spaces = {space.id: space for space in await exports.list_spaces(connection)}
        work = Restoring(reader, keep_quiet, parts.channel_names)
        await restore_rows(connection, work, scope_id, scope, spaces, KEPT_HOT)
        await tiers.become(connection, scope_id, Tier.HOT)
    with suppress(ColdStorageError):
        await tiers.remove(database, storage, held)
    return True
