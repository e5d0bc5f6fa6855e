"""Copy a server by pg_basebackup or a database by pg_dump, and bring such a copy back to life."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from recollect.core.backups.manifest import BackupManifest, RecordDescription
from recollect.errors import ConflictError, SetupError
from recollect.models.outside import BackupKind
from recollect.store.backups import record
from recollect.store.backups.programs import find_program, run_program
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.account import choose_account, find_programs
from recollect.store.embedded.cluster import Cluster

Progress: TypeAlias = Callable[[str, int, int], None]
"""Who is told how far a step has come."""
DONE = re.compile(r"(\d+)/(\d+) kB")
DUMPED, LOADED = "dumping contents of table", "processing data for table"
DUMP, BASE, WAL = "database.dump", "base.tar.gz", "pg_wal.tar.gz"
LEFT_OUT = re.compile(r"TABLE DATA public incarnations\b")
"""A record without it is not served until all is done."""
KILO = 1024
INCLUDED = "include 'recollect.conf'"
MAJOR = 10_000


async def copy_server(dsn: str, folder: Path, report: Progress) -> RecordDescription:
    """Copy all files of a server into a folder, while it is used."""

    def tell(line: str) -> None:
        if found := DONE.search(line):
            report("copying", int(found[1]) * KILO, int(found[2]) * KILO)

    before = await record.describe_now(dsn)
    options = ("--format=tar", "--compress=client-gzip:1", "--wal-method=stream", "--checkpoint=fast", "--progress")
    await run_program("pg_basebackup", dsn, ("--pgdata", folder, *options), tell)
    return record.join_counts(before, await record.describe_now(dsn))


async def copy_database(dsn: str, folder: Path, report: Progress) -> RecordDescription:
    """Dump one database into a folder, as it is at one moment."""
    async with record.hold_snapshot(dsn) as (snapshot, described):
        tell = counting("dumping", DUMPED, len(described.rows or {}), report)
        options = ("--format=custom", "--compress=gzip:1", "--verbose", f"--snapshot={snapshot}")
        await run_program("pg_dump", dsn, ("--file", folder / DUMP, *options), tell)
    return described


def counting(step: str, sign: str, total: int, report: Progress) -> Callable[[str], None]:
    """Count the lines that name a table."""
    done = 0

    def tell(line: str) -> None:
        nonlocal done
        if sign in line:
            done += 1
            report(step, min(done, total), total)

    return tell


async def load_dump(dsn: str, folder: Path, manifest: BackupManifest, report: Progress, *, own: bool) -> None:
    """Load a dump into an empty database, all of it or nothing, and without the incarnation."""
    await record.require_empty(dsn)
    await record.require_roles(dsn, manifest.record.roles, create=own)
    listed = await asyncio.to_thread(list_entries, folder / DUMP)
    choice = folder / f"{DUMP}.list"
    choice.write_text("\n".join(line for line in listed if not LEFT_OUT.search(line)), encoding="utf-8")
    tell = counting("loading", LOADED, len(manifest.record.rows or {}), report)
    options = ("--single-transaction", "--exit-on-error", "--no-comments", "--verbose")
    try:
        await run_program("pg_restore", dsn, (folder / DUMP, *options, f"--use-list={choice}"), tell)
    finally:
        choice.unlink()


def list_entries(dump: Path) -> list[str]:
    """List what a dump holds."""
    command = [str(find_program("pg_restore")), "--list", str(dump)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ConflictError(f"pg_restore cannot read the backup: {done.stderr.strip()[-500:]}")
    return done.stdout.splitlines()


async def revive(
    folder: Path, manifest: BackupManifest, place: Path, database: str, report: Progress, *, lasting: bool
) -> Cluster:
    """Bring a copy to life on a server of its own below a folder, which nobody else knows; the caller stops it."""
    cluster = Cluster(place)
    if manifest.kind is BackupKind.BASE:
        await asyncio.to_thread(check_version, manifest)
        await asyncio.to_thread(unpack, folder, cluster, report)
    await asyncio.to_thread(cluster.start)
    try:
        if manifest.kind is BackupKind.BASE and manifest.record.database != database:
            await record.rename_database(cluster.dsn(), manifest.record.database, database)
        if manifest.kind is BackupKind.DUMP:
            if lasting:
                await record.make_roles(cluster.dsn())
            await ensure_database(cluster.dsn(), database)
            await load_dump(cluster.dsn(database), folder, manifest, report, own=True)
        await record.close_record(cluster.dsn(database))
    except BaseException:
        cluster.stop()
        raise
    return cluster


def check_version(manifest: BackupManifest) -> None:
    """Refuse files of another major version of PostgreSQL than ours."""
    told = subprocess.run([find_programs() / "postgres", "--version"], check=True, capture_output=True, text=True)
    found = re.search(r"(\d+)", told.stdout)
    ours, theirs = int(found[1]) if found else 0, manifest.record.server // MAJOR
    if ours != theirs:
        raise SetupError(f"The backup holds files of PostgreSQL {theirs}, and the embedded one is {ours}.")


def unpack(folder: Path, cluster: Cluster, report: Progress) -> None:
    """Unpack the files of a server into the folder of a cluster, for the user that will run it."""
    directory = cluster.make_room()
    archives = ((BASE, directory), (WAL, directory / "pg_wal"))
    total = sum((folder / name).stat().st_size for name, _ in archives)
    for done, (name, target) in enumerate(archives):
        report("unpacking", total * done // len(archives), total)
        with tarfile.open(folder / name) as archive:
            archive.extractall(target, filter="tar")
    report("unpacking", total, total)
    adapt(directory)
    account = choose_account()
    for path in [directory, *directory.rglob("*")]:
        if path.is_symlink():
            raise SetupError("The server that was copied had tablespaces of its own: restore it by hand.")
        shutil.chown(path, account.uid, account.gid)
    directory.chmod(0o700)


def adapt(directory: Path) -> None:
    """Let files of a server that was not embedded be served by ours: its configuration and its doors are others."""
    main = directory / "postgresql.conf"
    if main.exists() and INCLUDED in main.read_text(encoding="utf-8"):
        return
    main.write_text(f"{INCLUDED}\n", encoding="utf-8")
    (directory / "postgresql.auto.conf").write_text("", encoding="utf-8")
    (directory / "pg_hba.conf").write_text("local all all trust\n", encoding="utf-8")
    (directory / "pg_ident.conf").touch()
