"""Dump the embedded server's database to a file with a manifest, and load such a file into an empty server."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from recollect.core.backups.manifest import BackupManifest, read_manifest, write_manifest
from recollect.errors import ConflictError, NotFoundError, SetupError
from recollect.store.backups.log import sync_path
from recollect.store.embedded.account import find_programs

DUMP, MANIFEST, DRAFT = ".dump", ".json", ".part"
FIRST_ROLE = " ROLE postgres;"
"""Every server has this role from the start."""
LAST_WORDS = 500


def dump_roles(dsn: str) -> str:
    """Return SQL that creates the roles of a server, with their settings and rights."""
    lines = run_program("pg_dumpall", dsn, "--roles-only").split("\n")
    return "\n".join(line for line in lines if not line.endswith(FIRST_ROLE))


def write_dump(dsn: str, folder: Path, manifest: BackupManifest) -> Path:
    """Dump a database to a new file in a folder; rename the file when its manifest is stored."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder.absolute() / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}{DUMP}"
    draft, beside = file.with_suffix(DRAFT), file.with_suffix(MANIFEST)
    try:
        for each in (draft, beside):
            each.touch(0o600, exist_ok=False)
        run_program("pg_dump", dsn, "--create", "--format=custom", "--compress=gzip:1", f"--file={draft}")
        beside.write_text(write_manifest(replace(manifest, sha256=compute_checksum(draft))), encoding="utf-8")
        sync_path(beside)
        draft.rename(file)
        sync_path(folder)
    except BaseException:
        for each in (draft, beside):
            each.unlink(missing_ok=True)
        raise
    return file


def check_dump(file: Path) -> BackupManifest:
    """Compare a dump with its manifest, and return the manifest."""
    try:
        manifest, found = read_manifest(file.with_suffix(MANIFEST).read_text(encoding="utf-8")), compute_checksum(file)
    except OSError:
        raise NotFoundError(f"No backup at {file}: it needs the file {DUMP}, and its {MANIFEST} next to it.") from None
    if found != manifest.sha256:
        raise ConflictError(f"The backup {file} is damaged: its checksum differs from its manifest.")
    return manifest


def load_dump(dsn: str, file: Path, manifest: BackupManifest) -> None:
    """Load a dump into a new server: its roles, then its database."""
    run_program("psql", dsn, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", typed=manifest.roles)
    run_program("pg_restore", dsn, "--create", "--exit-on-error", str(file))


def run_program(name: str, dsn: str, *arguments: str, typed: str = "") -> str:
    """Run a program of the embedded PostgreSQL on a database, and return its output."""
    command = [str(find_programs() / name), *arguments, "--dbname", dsn]
    done = subprocess.run(command, input=typed, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"{name} failed: {done.stderr.strip()[-LAST_WORDS:]}")
    return done.stdout


def compute_checksum(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
