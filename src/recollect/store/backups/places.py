"""Where backups are kept: a folder or a bucket, each backup below a name of its own, and complete with its manifest."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from recollect.core.backups.manifest import NAME, BackupFile, BackupManifest, read_manifest, write_manifest
from recollect.errors import ConflictError, NotFoundError
from recollect.settings import Settings
from recollect.store.backups.log import sync_folder
from recollect.store.cold.storage import ObjectStorage, open_objects

LONGEST_SECONDS = 12 * 3600.0
"""How long one file of a backup may take to or from a bucket."""
OPEN_TO_ENTER = 0o711
UNKNOWN = "There is no backup at {}: a backup has a file manifest.json."


@dataclass(frozen=True, slots=True)
class BackupPlace:
    """The folder or bucket of one backup."""

    address: str
    folder: Path | None
    objects: ObjectStorage | None = None

    @asynccontextmanager
    async def drafting(self) -> AsyncIterator[Path]:
        """Lend a folder to write the files of a backup into; it is removed unless it was kept."""
        if self.folder is not None and self.folder.exists():
            raise ConflictError(f"{self.folder} is there already.")
        draft = self.folder.with_name(f".{self.folder.name}.part") if self.folder else Path(tempfile.mkdtemp())
        draft.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    async def keep(self, draft: Path, manifest: BackupManifest) -> None:
        """Keep what was drafted; the manifest comes last, so that an incomplete backup has none."""
        (draft / NAME).write_text(write_manifest(manifest), encoding="utf-8")
        if self.folder is not None:
            await asyncio.to_thread(publish, draft, self.folder)
        if self.objects is not None:
            for name in (*manifest.files, NAME):
                with (draft / name).open("rb") as file:
                    await self.objects.put(name, file, mode="overwrite")

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[tuple[Path, BackupManifest]]:
        """Lend the files of a backup, each compared with its checksum, and its manifest."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = self.folder or Path(temporary)
            manifest = await self.read_manifest(folder)
            for name in manifest.files if self.objects else ():
                await self._fetch(name, folder)
            await asyncio.to_thread(check_files, folder, manifest)
            yield folder, manifest

    async def read_manifest(self, folder: Path) -> BackupManifest:
        """Read what a backup says of itself."""
        if self.objects is not None:
            if NAME not in await self.objects.list():
                raise NotFoundError(UNKNOWN.format(self.address))
            await self._fetch(NAME, folder)
        try:
            return read_manifest((folder / NAME).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise NotFoundError(UNKNOWN.format(self.address)) from None

    async def _fetch(self, name: str, folder: Path) -> None:
        with (folder / name).open("wb") as file:
            if self.objects is not None:
                await self.objects.fetch(name, file)


def open_place(address: str, settings: Settings) -> BackupPlace:
    """Open the place of a backup by a path or the address of a bucket."""
    parsed = urlsplit(address)
    if parsed.scheme in {"", "file"}:
        path = Path(unquote(parsed.path) if parsed.scheme else address)
        return BackupPlace(address, path.expanduser().absolute())
    return BackupPlace(address, None, open_objects(address, settings.cold_options, LONGEST_SECONDS, "The address"))


@contextmanager
def temporary_home() -> Iterator[Path]:
    """Lend a folder for a server that is needed for a while; its user must be able to enter it."""
    with tempfile.TemporaryDirectory(prefix="recollect-backup-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(OPEN_TO_ENTER)
        yield Path(folder) / "server"


def measure(folder: Path) -> dict[str, BackupFile]:
    """Measure the files of a folder."""
    return {path.name: BackupFile(path.stat().st_size, checksum(path)) for path in sorted(folder.iterdir())}


def check_files(folder: Path, manifest: BackupManifest) -> None:
    """Raise ConflictError if a file is missing or is not what it was."""
    for name, file in manifest.files.items():
        path = folder / name
        if not path.is_file():
            raise ConflictError(f"The backup lacks {name}.")
        if path.stat().st_size != file.bytes or checksum(path) != file.sha256:
            raise ConflictError(f"The backup is damaged: {name} is not what it was when it was made.")


def checksum(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def publish(draft: Path, folder: Path) -> None:
    """Write the files of a draft to the disk, and give it its name."""
    for path in draft.iterdir():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    sync_folder(draft)
    draft.rename(folder)
    sync_folder(folder.parent)
