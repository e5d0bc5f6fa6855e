"""Store the log of erasures in a folder or a bucket; each process appends to a separate stream."""

from __future__ import annotations

import asyncio
import io
import os
import secrets
import shutil
import threading
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from recollect.core.service.erasures import Entries, ErasureLog, LoggedErasure, LogPosition, read_entry, write_entry
from recollect.errors import ColdStorageError, ErasureLogError, SetupError
from recollect.settings import Settings
from recollect.store.cold.storage import ObjectStorage, open_objects

OFF = "off"
SUFFIX = ".jsonl"
AT_ONCE = 16
LOST = (
    "The erasure log at {} is missing or incomplete. Set RECOLLECT_OPERATIONS__ERASURE_LOG to its location, or use "
    "--without-log; erased memories will then reappear."
)
NOT_LOGGED = "Nothing was erased: the erasure log cannot be written ({}). Try again."


def name_stream() -> str:
    """Return a stream name that no other process has."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}-{secrets.token_hex(4)}"


class FileErasureLog:
    """A folder of files, one for each process that has erased something."""

    def __init__(self, folder: Path) -> None:
        self.place = str(folder)
        self._folder = folder
        self._turn = threading.Lock()
        self._file: int | None = None
        self._process = 0

    async def append(self, erasure: LoggedErasure) -> None:
        """Append a line and write it to the disk."""
        try:
            await asyncio.to_thread(self._append, f"{write_entry(erasure)}\n".encode())
        except OSError as problem:
            raise ErasureLogError(NOT_LOGGED.format(problem.strerror or type(problem).__name__)) from None

    async def read_erasures(self) -> Entries:
        """Read all files; a last line without an end was never acknowledged."""
        return await asyncio.to_thread(self._read)

    def _append(self, line: bytes) -> None:
        with self._turn:
            file = self._open()
            try:
                write_all(file, line)
                os.fsync(file)
            except OSError:
                # A partly written line stays the last of its file.
                os.close(file)
                self._file = None
                raise

    def _open(self) -> int:
        if self._file is None or self._process != os.getpid():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / f"{name_stream()}{SUFFIX}"
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._process = os.getpid()
            for folder in (self._folder, self._folder.parent):
                sync_path(folder)
        return self._file

    def _read(self) -> Entries:
        found: dict[str, dict[int, LoggedErasure]] = {}
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            lines = path.read_bytes().split(b"\n")[:-1]
            numbered = enumerate(lines, 1)
            found[path.stem] = {
                number: read_entry(line.decode(errors="replace"), f"{path}:{number}") for number, line in numbered
            }
        return found


class ObjectErasureLog:
    """A bucket with one object for each entry: objects cannot be appended to."""

    def __init__(self, url: str, objects: ObjectStorage) -> None:
        self.place = url
        self._objects = objects
        self._stream, self._number = name_stream(), 0

    async def append(self, erasure: LoggedErasure) -> None:
        """Put an object; a number that may have been used is not used again."""
        self._number += 1
        name = f"{self._stream}/{self._number:09}.json"
        try:
            await self._objects.put(name, io.BytesIO(write_entry(erasure).encode()))
        except ColdStorageError as problem:
            raise ErasureLogError(NOT_LOGGED.format(problem)) from None

    async def read_erasures(self) -> Entries:
        """Read all objects, several at a time."""
        places, found = asyncio.Semaphore(AT_ONCE), dict[str, dict[int, LoggedErasure]]()

        async def fetch(name: str) -> None:
            stream, _, number = name.removesuffix(".json").rpartition("/")
            async with places:
                file = io.BytesIO()
                await self._objects.fetch(name, file)
            entry = read_entry(file.getvalue().decode(errors="replace"), name)
            found.setdefault(stream, {})[int(number)] = entry

        await asyncio.gather(*(fetch(each) for each in await self._objects.list() if each.endswith(".json")))
        return found


def build_log(place: str, settings: Settings) -> ErasureLog | None:
    """Build the log for a folder or a bucket URL; None if the log is off."""
    if place in {"", OFF}:
        return None
    address = urlsplit(place)
    if address.scheme in {"", "file"}:
        return FileErasureLog(Path(unquote(address.path)).expanduser().absolute())
    return ObjectErasureLog(
        place,
        open_objects(place, settings.cold.options, settings.cold.timeout_seconds, "RECOLLECT_OPERATIONS__ERASURE_LOG"),
    )


def begin_log(log: ErasureLog) -> None:
    """Create the folder of a log, so that a missing log differs from an empty one."""
    if isinstance(log, FileErasureLog):
        Path(log.place).mkdir(mode=0o700, parents=True, exist_ok=True)


async def read_whole(log: ErasureLog, known: LogPosition) -> Entries:
    """Read a log, and raise an error if entries are missing that a backup knew."""
    if isinstance(log, FileErasureLog) and not await asyncio.to_thread(Path(log.place).is_dir):
        raise SetupError(LOST.format(log.place))
    entries = await log.read_erasures()
    if any(number not in entries.get(stream, {}) for stream, number in known.items()):
        raise SetupError(LOST.format(log.place))
    return entries


def copy_log(before: ErasureLog | None, folder: Path | None) -> None:
    """Copy the files of a file log into another folder; later entries are appended there."""
    if isinstance(before, FileErasureLog) and folder is not None and Path(before.place) != folder:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in sorted(Path(before.place).glob(f"*{SUFFIX}")):
            if not (folder / path.name).exists():
                shutil.copyfile(path, folder / f".{path.name}")
                (folder / f".{path.name}").replace(folder / path.name)
        sync_path(folder)


def write_all(file: int, data: bytes) -> None:
    """Write all bytes, or raise an error."""
    while data:
        data = data[os.write(file, data) :]


def sync_path(path: Path) -> None:
    """Sync a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
