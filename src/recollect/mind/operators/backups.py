"""Backups, as an operator makes them, looks through them, and restores them without what was erased since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from recollect.core.backups.manifest import BackupManifest
from recollect.core.service.erasures import ErasureLog, LoggedErasure, choose_newer, choose_since, find_position
from recollect.errors import ConflictError, SetupError
from recollect.loading import own_version
from recollect.models.outside import BackupKind, BackupReport, RestoreReport
from recollect.models.shards import ServerAddresses
from recollect.settings import Settings
from recollect.store.backups import record
from recollect.store.backups.copies import Progress, copy_database, copy_server, load_dump, revive
from recollect.store.backups.log import OFF, begin_log, build_log, carry_over, read_whole
from recollect.store.backups.places import measure, open_place, temporary_home
from recollect.store.embedded.cluster import Cluster
from recollect.verbs.backups.reapply import reapply
from recollect.verbs.parts import Parts

RESTORING = ".restoring"
NO_LOG = "There is no erasure log: what was erased after the backup is in it again."
BUSY = "The server was written to while it was copied: its rows were counted, and not compared."
NO_AMCHECK = "This PostgreSQL has no amcheck: indexes were not checked."


@dataclass(frozen=True, slots=True)
class Home:
    """Where an embedded server lies that a backup is restored into."""

    folder: Path
    database: str
    role: str
    """The service's role."""
    log: Path | None = None
    """Where its log of erasures goes on, if that lies with it."""
    replace: bool = False
    """Whether a server that is there is moved aside."""


@dataclass(frozen=True, slots=True)
class Backups:
    """Where an operator makes backups, looks through them and restores them."""

    settings: Settings
    database: str
    """What a database is called that a backup is brought to life in."""
    joining: Callable[[ServerAddresses], AbstractAsyncContextManager[Parts]]
    """What brings a restored record to the newest schema, and opens it for nobody else."""

    async def make(
        self, server: ServerAddresses, log: ErasureLog | None, kind: BackupKind, address: str, report: Progress
    ) -> BackupReport:
        """Make a backup of a server, or of its database, below a folder or a bucket, while it is used."""
        begun = datetime.now(UTC)
        place = open_place(f"{address.rstrip('/')}/{begun:%Y%m%dT%H%M%SZ}", self.settings)
        position: dict[str, int] = {}
        if log is not None:
            await asyncio.to_thread(begin_log, log)
            position = find_position(await record.read_log(server.owner, log))
        copy = copy_server if kind is BackupKind.BASE else copy_database
        async with place.drafting() as draft:
            described = await copy(server.owner, draft, report)
            files = await asyncio.to_thread(measure, draft)
            known = log.place if log else ""
            manifest = BackupManifest(begun, kind, own_version(), described, files, known, position)
            await place.keep(draft, manifest)
        return describe(place.address, manifest)

    async def verify(self, address: str, report: Progress) -> BackupReport:
        """Compare the checksums of a backup, bring it to life for a while, count its rows and check its indexes."""
        async with open_place(address, self.settings).reading() as (files, manifest):
            with temporary_home() as home:
                cluster = await revive(files, manifest, home, self.database, report, lasting=False)
                try:
                    counted = await record.count_rows_now(cluster.dsn(self.database))
                    if manifest.record.rows is not None:
                        compare(manifest.record.rows, counted)
                    indexes = await record.check_indexes(cluster.dsn(self.database))
                finally:
                    await asyncio.to_thread(cluster.stop)
        remarks = [NO_AMCHECK] * (indexes is None) + [BUSY] * (manifest.record.rows is None)
        found = describe(address, manifest)
        return replace(found, rows=sum(counted.values()), indexes=indexes or 0, remarks=tuple(remarks))

    async def restore(self, address: str, home: Home, report: Progress, *, logged: bool = True) -> RestoreReport:
        """Restore a backup as an embedded server; nobody finds it before what was erased since is erased again."""
        target, staging = Cluster(home.folder), home.folder.with_name(home.folder.name + RESTORING)
        target.check_free(replace=home.replace)
        async with open_place(address, self.settings).reading() as (files, manifest):
            entries, log = await self._find_newer(manifest, logged=logged)
            # A restore that was killed leaves its server behind.
            await asyncio.to_thread(Cluster(staging).clear)
            cluster = await revive(files, manifest, staging, self.database, report, lasting=True)
            try:
                server = ServerAddresses(cluster.dsn(home.database, home.role), cluster.dsn(home.database))
                done = await self._settle(server, entries, report)
            finally:
                await asyncio.to_thread(cluster.stop)
        aside = f"postgres.replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}" if home.replace else ""
        await asyncio.to_thread(target.adopt, cluster, aside, partial(carry_over, log, home.log))
        await asyncio.to_thread(cluster.clear)
        return replace(done, made_at=manifest.made_at)

    async def restore_dump(
        self, address: str, server: ServerAddresses, loader: str, report: Progress, *, logged: bool = True
    ) -> RestoreReport:
        """Restore a dump into an empty database of any server; until all is done nobody serves it."""
        async with open_place(address, self.settings).reading() as (files, manifest):
            if manifest.kind is not BackupKind.DUMP:
                raise SetupError("This backup holds the files of a server: it is restored as an embedded one.")
            entries, _ = await self._find_newer(manifest, logged=logged)
            await load_dump(loader, files, manifest, report, own=False)
            return replace(await self._settle(server, entries, report), made_at=manifest.made_at)

    async def replay(
        self, server: ServerAddresses, log: ErasureLog | None, since: datetime, report: Progress
    ) -> RestoreReport:
        """Erase again what was erased since a moment, in a record that was restored by other means."""
        if log is None:
            raise SetupError("Set RECOLLECT_ERASURE_LOG: without it nobody knows what was erased since.")
        entries = await read_whole(log, {})
        begun = await record.close_record(server.owner)
        # What was logged before this incarnation began was applied when it began.
        return await self._settle(server, choose_since(entries, max(since, begun or since)), report)

    async def _find_newer(
        self, manifest: BackupManifest, *, logged: bool
    ) -> tuple[list[LoggedErasure], ErasureLog | None]:
        """List what was erased after a backup was begun, and return the log that says so."""
        named = self.settings.erasure_log
        log = build_log(manifest.erasure_log if named in {"", OFF} else named, self.settings)
        if log is None or not logged:
            return [], None
        return choose_newer(await read_whole(log, manifest.position), manifest.position), log

    async def _settle(
        self, server: ServerAddresses, entries: Sequence[LoggedErasure], report: Progress
    ) -> RestoreReport:
        """Erase again what was erased, and only then let the record be served."""
        async with self.joining(server) as parts:
            reapplied = await reapply(parts, entries, report)
        return RestoreReport(None, str(await record.open_record(server.owner)), reapplied)


def describe(address: str, manifest: BackupManifest) -> BackupReport:
    """Report on a backup."""
    size, rows = sum(file.bytes for file in manifest.files.values()), manifest.record.rows
    remarks = () if manifest.erasure_log else (NO_LOG,)
    counted = sum(rows.values()) if rows else 0
    return BackupReport(address, manifest.kind, manifest.made_at, size, counted, remarks=remarks)


def compare(told: Mapping[str, int], counted: Mapping[str, int]) -> None:
    """Raise ConflictError if a table has not as many rows as the server had."""
    differing = [name for name in sorted({*told, *counted}) if told.get(name, 0) != counted.get(name, 0)]
    if differing:
        raise ConflictError(f"The backup has other numbers of rows than the server had: {', '.join(differing)}.")
