"""Note which memories a recall has shown: with the fetch of its winners; where a replica reads, behind the answer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

from recollect.core.service.numbers import tenant_of
from recollect.models.memories import Memory
from recollect.models.recall import Cue, Filter
from recollect.models.service import Scope
from recollect.store.database.pool import Connection
from recollect.store.database.replicas import ReplicaDatabase
from recollect.store.memories import accesses, memories
from recollect.store.memories.accesses import Recorded
from recollect.store.service.scopes import Place
from recollect.verbs.parts import Parts

RECORDING_SHARE = 0.25
"""The share of the deadline for noting accesses; an answer without them is better than none."""
LOG = logging.getLogger("recollect.recall")


async def note(parts: Parts, scope_id: int, write: Callable[[Connection], Awaitable[object]]) -> None:
    """Note something of an answer in a transaction of its own; no answer fails by it.

    Where a replica has read, the answer does not wait for it.
    """
    database = parts.database

    async def attempt() -> None:
        async with attempt_note(parts), database.transaction(tenant_of(scope_id)) as connection:
            await write(connection)

    if isinstance(database, ReplicaDatabase):
        database.later(attempt())
    else:
        await attempt()


async def note_access(parts: Parts, scope_id: int, touched: Mapping[datetime | None, Sequence[UUID]]) -> None:
    """Note the access of memories, by moment."""

    async def write(connection: Connection) -> None:
        for moment, ids in touched.items():
            await accesses.record(connection, scope_id, ids, moment)

    if touched:
        await note(parts, scope_id, write)


@asynccontextmanager
async def attempt_note(parts: Parts) -> AsyncIterator[None]:
    """Give the note of an access its share of the deadline, and log a failure: no answer fails by it."""
    try:
        async with asyncio.timeout(RECORDING_SHARE * parts.database.deadline_seconds):
            yield
    except Exception as problem:
        LOG.warning(json.dumps({"event": "access_not_noted", "error": type(problem).__name__}))


async def fetch_and_note(
    parts: Parts,
    scope: Scope,
    place: Place,
    ids: Mapping[Filter, Sequence[UUID]],
    touched: Mapping[datetime | None, Sequence[UUID]],
) -> tuple[dict[Filter, dict[UUID, Memory]], dict[datetime | None, Recorded]]:
    """Fetch memories and note the access of some; where it cannot be written, an answer is still an answer.

    Of what a replica reads nothing is on record yet, and that is answered as what is to be.
    """
    near = isinstance(parts.database, ReplicaDatabase)
    if touched and not near:
        async with attempt_note(parts):
            return await memories.fetch_accessed(parts.database, scope, place.scope_id or 0, ids, touched)
    found = await memories.fetch_each(parts.database, scope, ids) if ids else {}
    return found, {moment: Recorded(None, count(found, some)) for moment, some in touched.items()} if near else {}


def count(found: Mapping[Filter, Mapping[UUID, Memory]], ids: Sequence[UUID]) -> frozenset[UUID]:
    """Leave what counts as accessed: what is there and not idle."""
    there = {memory.id for each in found.values() for memory in each.values() if not memory.idle}
    return frozenset(there.intersection(ids))


async def correct_access(
    parts: Parts,
    place: Place,
    noted: Mapping[datetime | None, Recorded],
    expected: Mapping[datetime | None, Sequence[UUID]],
    touched: Mapping[datetime | None, Sequence[UUID]],
) -> frozenset[UUID]:
    """Note the access of the hits where others were expected to be; tell which memories are on record."""
    if isinstance(parts.database, ReplicaDatabase):
        await note_access(parts, place.scope_id or 0, touched)
        return join_recorded(noted.values())
    wrong = {
        recorded: touched.get(moment, ())
        for moment, recorded in noted.items()
        if recorded.id is not None and {*expected[moment]} != {*touched.get(moment, ())}
    }
    right = [recorded for recorded in noted.values() if recorded not in wrong]
    if wrong:
        async with attempt_note(parts):
            right += await accesses.correct(parts.database, place.scope_id or 0, wrong)
    return join_recorded(right)


async def note_judged(parts: Parts, scope: Scope, place: Place, cue: Cue, ids: Sequence[UUID]) -> frozenset[UUID]:
    """Note the access of what a judge has left, and tell which of it is on record."""
    touched = {cue.now: ids}
    _, noted = await fetch_and_note(parts, scope, place, {cue.filter: ids}, touched)
    return await correct_access(parts, place, noted, touched, touched)


def join_recorded(recorded: Iterable[Recorded]) -> frozenset[UUID]:
    """Join what several recalls on the log count as accessed."""
    return frozenset(memory_id for each in recorded for memory_id in each.ids)
