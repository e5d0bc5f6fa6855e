"""Back up and restore the embedded server without erased memories; replay the erasure log on any server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from recollect.core.backups.manifest import BackupManifest
from recollect.core.service.erasures import (
    Entries,
    ErasureLog,
    LoggedErasure,
    choose_newer,
    choose_since,
    find_position,
)
from recollect.errors import SetupError
from recollect.loading import package_version
from recollect.models.outside import RestoreReport
from recollect.models.shards import ServerAddresses
from recollect.settings import Settings
from recollect.store.backups import dumps, record
from recollect.store.backups.log import OFF, FileErasureLog, begin_log, build_log, copy_log, read_whole
from recollect.store.embedded.cluster import Cluster
from recollect.verbs.backups.reapply import reapply
from recollect.verbs.dependencies import Dependencies

RESTORING = ".restoring"
MARGIN = timedelta(minutes=5)
"""Maximum time from logging an erasure to its commit: statements and connections have shorter limits."""


@dataclass(frozen=True, slots=True)
class RestoreTarget:
    """The folder of the embedded server that a backup is restored into."""

    folder: Path
    database: str
    role: str
    """The service's role."""
    log: Path | None = None
    """The folder of its erasure log, if no setting names another place."""


async def make_backup(dsn: str, log: ErasureLog | None, folder: Path) -> Path:
    """Dump the database of the embedded server while it is used; return the file."""
    roles, position = await asyncio.to_thread(dumps.dump_roles, dsn), dict[str, int]()
    if log is not None:
        await asyncio.to_thread(begin_log, log)
        position = find_position(await record.read_log(dsn, log))
    manifest = BackupManifest(package_version(), "", roles, log.place if log else "", position)
    return await asyncio.to_thread(dumps.write_dump, dsn, folder, manifest)


@dataclass(frozen=True, slots=True)
class Restores:
    """Restored records, which nobody may use before everything erased since is erased again."""

    settings: Settings
    joining: Callable[[ServerAddresses], AbstractAsyncContextManager[Dependencies]]
    """Updates the schema of a restored record, and opens it for nobody else."""

    async def restore(self, file: Path, home: RestoreTarget, *, logged: bool = True) -> RestoreReport:
        """Load a dump into a new server, which replaces the embedded one only when everything is done."""
        target, staging = Cluster(home.folder), Cluster(home.folder.with_name(home.folder.name + RESTORING))
        target.check_stopped()
        manifest = await asyncio.to_thread(dumps.check_dump, file)
        log = self._find_log(manifest) if logged else None
        entries = await read_newer(manifest, log, home)
        # A restore that was killed leaves its server behind.
        await asyncio.to_thread(staging.clear)
        await asyncio.to_thread(staging.start)
        try:
            await asyncio.to_thread(dumps.load_dump, staging.dsn(), file, manifest)
            server = ServerAddresses(staging.dsn(home.database, home.role), staging.dsn(home.database))
            await record.close_record(server.owner)
            done = await self._settle(server, entries)
        finally:
            await asyncio.to_thread(staging.stop)
        aside = await asyncio.to_thread(target.take_over_files, staging, partial(copy_log, log, home.log))
        await asyncio.to_thread(staging.clear)
        return replace(done, aside=aside)

    async def replay(self, server: ServerAddresses, log: ErasureLog | None, since: datetime) -> RestoreReport:
        """Repeat the erasures since a time, in a database that was restored by other means."""
        if log is None:
            raise SetupError(
                "Set RECOLLECT_OPERATIONS__ERASURE_LOG: the log of the erasures since the backup is needed."
            )
        entries, before = await read_whole(log, {}), since - MARGIN
        begun = await record.close_record(server.owner)
        # Erasures logged before this incarnation began were applied when it began.
        return await self._settle(server, choose_since(entries, max(before, begun or before)))

    def _find_log(self, manifest: BackupManifest) -> ErasureLog | None:
        named = self.settings.operations.erasure_log
        return build_log(manifest.erasure_log if named in {"", OFF} else named, self.settings)

    async def _settle(self, server: ServerAddresses, entries: Sequence[LoggedErasure]) -> RestoreReport:
        """Repeat erasures, and only then open the database for service."""
        async with self.joining(server) as parts:
            done = await reapply(parts, entries)
        return replace(done, incarnation=str(await record.open_record(server.owner)))


async def read_newer(manifest: BackupManifest, log: ErasureLog | None, home: RestoreTarget) -> list[LoggedErasure]:
    """List the erasures after a dump: those of its log, and those of the server that it replaces."""
    own: Entries = await FileErasureLog(home.log).read_erasures() if home.log else {}
    known: Mapping[str, Mapping[int, LoggedErasure]] = await read_whole(log, manifest.position) if log else {}
    return choose_newer({**own, **known}, manifest.position)
