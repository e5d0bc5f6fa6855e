"""Feed mirrors from the change log: changed rows are read from the record and applied, repeatable at any time.

A position moves only after the mirror has acknowledged. If the log does not continue at a position, or a mirror has
less than it had acknowledged, the whole scope is compared with the record, and repaired.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from recollect.core.mirrors.rows import (
    Checksums,
    MirrorBatch,
    MirrorDiff,
    MirroredRow,
    RowKey,
    checksum,
    coalesce,
    compare,
)
from recollect.core.service.numbers import tenant_of
from recollect.errors import MirrorError
from recollect.jobs.embed import NO_REPORT
from recollect.store.database.pool import Database
from recollect.store.mirrors import generations, positions
from recollect.store.mirrors.generations import Generation
from recollect.store.mirrors.mirror import Mirror
from recollect.store.mirrors.positions import PendingScope
from recollect.store.mirrors.source import RecordReader, ScopeLog, reading_record
from recollect.store.service import jobs, maintenance

TOGETHER = 200
"""Maximum number of scopes to follow at a time."""
FORMER = 5
"""Number of generations before a new one to remove: there is usually one, or none."""
CHECK = "check_mirrors"
MAX_RUN_SECONDS, REST_SECONDS = 20.0, 0.2
"""Maximum duration of a run while a tenant is written to, and the pause that collects more changes."""
DROPPED = "dropped, with all its data"
DROPPED_UNSEEN = "dropped while unreachable: its data may still exist"
LOG = logging.getLogger("recollect.mirror")
STALE = "Mirror {} was built from another database and is being rebuilt."
STILL_HELD = "Mirror {} still contains rows that were deleted."
UNKNOWN = "This worker has no address of the mirror {}; another worker may have it."


@dataclass(frozen=True, slots=True)
class MirrorFeed:
    """A generation of a mirror, and the record that it follows."""

    database: Database
    mirror: Mirror
    generation: Generation

    async def apply_log(self, waiting: Sequence[PendingScope]) -> None:
        """Follow the log of scopes of one tenant to its end, and remove scopes that are no longer here."""
        if not self.generation.current:
            await defer_check(self.database)
            raise MirrorError(STALE.format(self.mirror.name))
        for each in waiting:
            if not each.present:
                await self.remove_scope(each)
        behind = [each.scope_id for each in waiting if each.present]
        while behind:
            tenant_id = tenant_of(behind[0])
            known = await positions.read_positions(self.database, tenant_id, self.generation, behind)
            held = await self.mirror.read_positions(self.generation, [each for each in behind if known.get(each)])
            lost = [scope for scope, position in known.items() if held.get(scope, 0) < position]
            async with reading_record(self.database, tenant_id, self.generation.space) as record:
                logs = await record.read_log({each: known.get(each, 0) for each in behind if each not in lost})
                broken = [scope for scope, log in logs.items() if log.broken]
                followed = {scope: log for scope, log in logs.items() if not log.broken and log.rows}
                batches = await read_batches(record, self.mirror, followed)
            await self.apply(batches)
            for scope_id in (*lost, *broken):
                await self.repair_scope(scope_id)
            behind = [scope for scope, log in followed.items() if log.rows[-1].number < log.change_number]

    async def remove_scope(self, left: PendingScope) -> None:
        """Remove all rows of a scope from the mirror, after an erasure or a move to another server."""
        gone = sorted(await self.read_held(left.scope_id), key=lambda key: key.id)
        await self.apply([MirrorBatch(left.scope_id, version=left.number, position=left.number, gone=gone)])

    async def apply(self, batches: Sequence[MirrorBatch]) -> None:
        """Apply batches of one tenant, check that deleted rows are gone, and save the positions."""
        if not batches:
            return
        await self.mirror.apply(self.generation, batches)
        for batch in batches:
            if batch.gone and await self.mirror.find_held(self.generation, batch.scope_id, batch.gone):
                raise MirrorError(STILL_HELD.format(self.mirror.name))
        reached = {batch.scope_id: batch.position for batch in batches}
        note = f"seen without it {datetime.now(UTC).isoformat(timespec='seconds')}"
        await positions.save(self.database, tenant_of(batches[0].scope_id), self.generation, reached, note)
        await self.increment_write_count()

    async def increment_write_count(self) -> None:
        """Count a write: the mirror stores the number before the record, so that a lower one shows a loss."""
        beats = await self.mirror.read_beats(self.generation)
        if beats < self.generation.beats:
            # The mark of the loss stays until every scope was checked.
            await defer_check(self.database)
            return
        await self.count(beats + 1)

    async def count(self, beats: int) -> None:
        """Store the number of writes, in the mirror and then in the record."""
        await self.mirror.store_write_count(self.generation, beats)
        await generations.store_write_count(self.database, self.generation, beats)

    async def restore(self, report: Callable[[int], None] = NO_REPORT) -> int:
        """Repair all scopes of which the mirror has less than it had acknowledged, if it lost data."""
        if await self.mirror.read_beats(self.generation) >= self.generation.beats:
            return 0
        mended = 0
        async for scopes in maintenance.walk_due(self.database, positions.HELD):
            held = await self.mirror.read_positions(self.generation, scopes)
            for tenant_id, own in positions.by_tenant(scopes).items():
                known = await positions.read_positions(self.database, tenant_id, self.generation, own)
                for scope_id in [each for each, position in known.items() if held.get(each, 0) < position]:
                    await self.repair_scope(scope_id)
                    mended += 1
                    report(mended)
        await self.count(self.generation.beats + 1)
        return mended

    async def fill(self, report: Callable[[int], None] = NO_REPORT) -> int:
        """Copy all scopes that the generation lacks; return the number of all scopes."""
        seen = 0
        async for scopes in maintenance.walk_due(self.database, "fill"):
            for tenant_id, own in positions.by_tenant(scopes).items():
                known = await positions.read_positions(self.database, tenant_id, self.generation, own)
                for scope_id in own:
                    if scope_id not in known:
                        await self.repair_scope(scope_id)
                    seen += 1
                    report(seen)
        return seen

    async def repair_scope(self, scope_id: int) -> MirrorDiff:
        """Compare a scope's rows in the mirror with the record, and apply the differences."""
        held = await self.read_held(scope_id)
        tenant_id = tenant_of(scope_id)
        async with reading_record(self.database, tenant_id, self.generation.space) as record:
            if await record.read_incarnation() != self.generation.incarnation:
                raise MirrorError(STALE.format(self.mirror.name))
            version = (await record.read_log({scope_id: 0})).get(scope_id, ScopeLog(0, (), broken=False)).change_number
            differing: list[MirroredRow] = []
            checksums: dict[RowKey, str] = {}
            batch = MirrorBatch(scope_id, version, 0)
            for table in self.mirror.tables:
                async for page in record.walk(scope_id, table):
                    own = {row.key: checksum(row) for row in page}
                    differing = [row for row in page if held.get(row.key) != own[row.key]]
                    checksums |= own
                    if differing:
                        # Without a position yet: it is known at the end.
                        await self.mirror.apply(self.generation, [replace(batch, present=differing)])
        found = compare(checksums, held)
        await self.apply([replace(batch, position=version, gone=sorted(found.extra, key=lambda key: key.id))])
        return found

    async def read_held(self, scope_id: int) -> Checksums:
        """Read the checksums of all rows of a scope in the mirror."""
        held: dict[RowKey, str] = {}
        async for page in self.mirror.walk(self.generation, scope_id):
            held |= {row.key: checksum(row) for row in page}
        return held

    async def verify(self, scope_id: int) -> MirrorDiff:
        """Compare a scope's rows in the mirror with the record, without changes."""
        held = await self.read_held(scope_id)
        checksums: dict[RowKey, str] = {}
        async with reading_record(self.database, tenant_of(scope_id), self.generation.space) as record:
            for table in self.mirror.tables:
                async for page in record.walk(scope_id, table):
                    checksums |= {row.key: checksum(row) for row in page}
        return compare(checksums, held)


async def read_batches(record: RecordReader, mirror: Mirror, logs: Mapping[int, ScopeLog]) -> list[MirrorBatch]:
    """Read the current rows of all IDs in the log, once each; IDs without a row are gone."""
    touched: dict[int, list[RowKey]] = {}
    for scope_id, log in logs.items():
        named = coalesce(log.rows, mirror.tables)
        ids = {**named.ids, **({table: await record.find_entities(scope_id, named) for table in named.entities})}
        touched[scope_id] = [RowKey(table, each) for table, some in ids.items() for each in some]
    rows = await record.read_rows((scope_id, key) for scope_id, keys in touched.items() for key in keys)
    return [
        MirrorBatch(
            scope_id=scope_id,
            version=log.change_number,
            position=log.rows[-1].number,
            present=[rows[scope_id, key] for key in touched[scope_id] if (scope_id, key) in rows],
            gone=[key for key in touched[scope_id] if (scope_id, key) not in rows],
        )
        for scope_id, log in logs.items()
    ]


async def feed_tenant(
    database: Database, mirrors: Mapping[str, Mirror], tenant_id: int, only: Generation | None = None
) -> None:
    """Have all mirrors follow the log of a tenant's scopes; a failing mirror does not block the others."""
    after = 0
    while waiting := await positions.list_unmirrored(database, tenant_id, after, TOGETHER):
        after = waiting[-1].scope_id
        if only is not None:
            await feed_waiting(database, mirrors, only, waiting)
            continue
        # Read again for each page: a mirror may have been built or dropped.
        there = await generations.list_generations(database)
        outcomes = await asyncio.gather(
            *(feed_waiting(database, mirrors, each, waiting) for each in there), return_exceptions=True
        )
        problems = [each for each in outcomes if isinstance(each, BaseException)]
        if problems:
            raise problems[0]
        await positions.mark_synced(database, tenant_id, waiting)


async def feed_waiting(
    database: Database, mirrors: Mapping[str, Mirror], generation: Generation, waiting: Sequence[PendingScope]
) -> None:
    """Have one generation of a mirror follow the log of scopes."""
    if generation.mirror not in mirrors:
        raise MirrorError(UNKNOWN.format(generation.mirror))
    await MirrorFeed(database, mirrors[generation.mirror], generation).apply_log(waiting)


async def build(database: Database, mirror: Mirror, report: Callable[[int], None] = NO_REPORT) -> Generation:
    """Fill a new generation while the current one answers, then activate it; resume an interrupted fill."""
    begun = await begin(database, mirror)
    await mirror.create(begun)
    await MirrorFeed(database, mirror, begun).fill(report)
    async for tenants in maintenance.walk_due(database, "mirror"):
        for first_of_tenant in tenants:
            # Apply changes made during the fill, so that the lag is short; the worker continues.
            await feed_tenant(database, {mirror.name: mirror}, tenant_of(first_of_tenant), only=begun)
    before = [each for each in await generations.list_generations(database, mirror.name) if each.ready]
    ready = await generations.activate_generation(database, begun)
    await mirror.switch(ready)
    left = [replace(ready, number=number) for number in range(max(1, ready.number - FORMER), ready.number)]
    for former in [*before, *left]:
        await mirror.remove(former)
        await positions.forget_generation(database, mirror.name, former.number)
    return ready


async def begin(database: Database, mirror: Mirror) -> Generation:
    """Begin a generation; drop one that was begun from another record."""
    for other in await generations.list_generations(database, mirror.name):
        if not other.ready and not other.current:
            await generations.remove(database, mirror.name, other.number)
            await mirror.remove(other)
            await positions.forget_generation(database, mirror.name, other.number)
    return await generations.begin(database, mirror.name)


async def drop(database: Database, mirror: str, engine: Mirror | None) -> tuple[int, bool]:
    """Drop a mirror: end waits for it with a note, and remove its rows.

    Returns the number of waits, and whether the rows could be removed.
    """
    there = await generations.list_generations(database, mirror)
    # First, so that nothing new waits for it.
    await generations.remove(database, mirror)
    removed = engine is not None
    for generation in there:
        removed = removed and await attempt_removal(engine, generation)
    note = DROPPED if removed else DROPPED_UNSEEN
    ended = await positions.end_waiting(database, mirror, note)
    await positions.forget_generation(database, mirror)
    return ended, removed


async def attempt_removal(engine: Mirror | None, generation: Generation) -> bool:
    """Remove a generation; return whether that was possible."""
    try:
        if engine is not None:
            await engine.remove(generation)
    except MirrorError:
        return False
    return engine is not None


async def check(database: Database, mirrors: Mapping[str, Mirror]) -> None:
    """Queue jobs for waiting scopes, and find mirrors that lost data or follow another record."""
    await maintenance.defer_due(database, "mirror")
    for generation in await generations.list_generations(database):
        mirror = mirrors.get(generation.mirror)
        if mirror is None:
            continue
        try:
            if generation.current:
                await MirrorFeed(database, mirror, generation).restore()
            elif generation.ready:
                await build(database, mirror)
        except MirrorError as problem:
            # The check runs periodically.
            LOG.warning(json.dumps({"event": "mirror_check_failed", "mirror": mirror.name, "error": str(problem)}))


async def defer_check(database: Database) -> None:
    """Queue a job that checks whether mirrors must be repaired or filled again."""
    async with database.transaction(None) as connection:
        await jobs.defer(connection, CHECK, CHECK, {})


@dataclass(frozen=True, slots=True)
class MirrorTasks:
    """The worker's tasks for mirrors."""

    database: Database
    mirrors: Mapping[str, Mirror]

    async def feed_mirrors(self, scope_id: int) -> None:
        """Have the mirrors follow changes in the scopes of a tenant, whose first number this is."""
        tenant_id, until = tenant_of(scope_id), time.monotonic() + MAX_RUN_SECONDS
        await feed_tenant(self.database, self.mirrors, tenant_id)
        while time.monotonic() < until and await positions.list_unmirrored(self.database, tenant_id, 0, 1):
            # Changes of this time are followed together; another job would have to be found first.
            await asyncio.sleep(REST_SECONDS)
            await feed_tenant(self.database, self.mirrors, tenant_id)

    async def check(self, _context: object, timestamp: int = 0) -> None:  # noqa: ARG002 - the engine's call
        """Queue jobs for waiting scopes, and find mirrors that lost data or follow another record."""
        await check(self.database, self.mirrors)
