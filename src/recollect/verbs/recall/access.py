"""Record which memories a recall has shown, when it fetches its hits."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

from recollect.core.service.numbers import tenant_of
from recollect.models.filters import Filter
from recollect.models.memories import Memory
from recollect.models.recall import Cue
from recollect.models.service import Scope
from recollect.store.database.pool import Connection
from recollect.store.memories import accesses, memories
from recollect.store.memories.accesses import AccessRecord
from recollect.store.service.scopes import ScopeHandle
from recollect.verbs.dependencies import Dependencies

RECORDING_SHARE = 0.25
"""The share of the deadline for recording accesses; an answer without them is better than none."""
LOG = logging.getLogger("recollect.recall")


async def note(parts: Dependencies, scope_id: int, write: Callable[[Connection], Awaitable[object]]) -> None:
    """Write something about an answer in a separate transaction; an error here does not fail the answer."""
    async with try_record_access(parts), parts.database.transaction(tenant_of(scope_id)) as connection:
        await write(connection)


async def record_access(parts: Dependencies, scope_id: int, touched: Mapping[datetime | None, Sequence[UUID]]) -> None:
    """Record accesses of memories by time."""

    async def record_touched(connection: Connection) -> None:
        for moment, ids in touched.items():
            await accesses.record(connection, scope_id, ids, moment)

    if touched:
        await note(parts, scope_id, record_touched)


@asynccontextmanager
async def try_record_access(parts: Dependencies) -> AsyncIterator[None]:
    """Limit the recording of accesses to its share of the deadline, and log an error without raising it."""
    try:
        async with asyncio.timeout(RECORDING_SHARE * parts.database.deadline_seconds):
            yield
    except Exception as problem:
        LOG.warning(json.dumps({"event": "access_not_recorded", "error": type(problem).__name__}))


async def fetch_and_record_access(
    parts: Dependencies,
    scope: Scope,
    place: ScopeHandle,
    ids: Mapping[Filter, Sequence[UUID]],
    touched: Mapping[datetime | None, Sequence[UUID]],
) -> tuple[dict[Filter, dict[UUID, Memory]], dict[datetime | None, AccessRecord]]:
    """Fetch memories and record accesses of some; an error in recording does not fail the answer."""
    if touched:
        async with try_record_access(parts):
            return await memories.fetch_accessed(parts.database, scope, place.scope_id or 0, ids, touched)
    return await memories.fetch_each(parts.database, scope, ids) if ids else {}, {}


async def correct_access(
    parts: Dependencies,
    place: ScopeHandle,
    noted: Mapping[datetime | None, AccessRecord],
    expected: Mapping[datetime | None, Sequence[UUID]],
    touched: Mapping[datetime | None, Sequence[UUID]],
) -> frozenset[UUID]:
    """Correct recorded accesses if the hits differ from the expected ones; return the recorded memories."""
    wrong = {
        recorded: touched.get(moment, ())
        for moment, recorded in noted.items()
        if recorded.id is not None and {*expected[moment]} != {*touched.get(moment, ())}
    }
    right = [recorded for recorded in noted.values() if recorded not in wrong]
    if wrong:
        async with try_record_access(parts):
            right += await accesses.correct(parts.database, place.scope_id or 0, wrong)
    return frozenset(memory_id for each in right for memory_id in each.ids)


async def note_judged(
    parts: Dependencies, scope: Scope, place: ScopeHandle, cue: Cue, ids: Sequence[UUID]
) -> frozenset[UUID]:
    """Record accesses of the hits that a judge kept; return the recorded ones."""
    touched = {cue.now: ids}
    _, noted = await fetch_and_record_access(parts, scope, place, {cue.filter: ids}, touched)
    return await correct_access(parts, place, noted, touched, touched)
