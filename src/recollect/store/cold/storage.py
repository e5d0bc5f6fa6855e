"""Store, fetch and remove objects in S3, GCS, Azure or a folder, each within a time limit."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from recollect.errors import ColdSetupError, ColdStorageError, SetupError
from recollect.loading import load
from recollect.settings import Settings
from recollect.store.cold.sealing import MasterKeys, read_master

CHUNK = 1 << 20
TRIES = 2
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
SILENT = "The object storage failed ({}). Nothing was changed."
MISSING = "An object is missing from object storage. Nothing was changed."


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """A bucket or a folder of objects."""

    client: Any
    store: Any
    seconds: float
    """Time limit for one object."""
    folder: Path | None
    """The folder of the objects if they are files: a rename is durable only after a sync."""

    async def put(self, name: str, file: BinaryIO, *, mode: str = "create") -> None:
        """Store an object, by default only if it does not exist; it is durable on return."""
        async with self._answering():
            await self.client.put_async(self.store, name, file, mode=mode)
        if self.folder is not None:
            await asyncio.to_thread(sync_path, self.folder, name)

    async def fetch(self, name: str, file: BinaryIO) -> str:
        """Read an object into a file, and return its hash."""
        found = hashlib.sha256()
        async with self._answering():
            answer = await self.client.get_async(self.store, name)
            async for chunk in answer.stream(min_chunk_size=CHUNK):
                data = bytes(chunk)
                found.update(data)
                file.write(data)
        return found.hexdigest()

    async def remove(self, name: str) -> None:
        """Remove an object; a missing object is no error."""
        async with self._answering():
            try:
                await self.client.delete_async(self.store, name)
            except FileNotFoundError:
                return

    async def list(self, prefix: str = "") -> list[str]:
        """List the names of all objects, or of those with a prefix."""
        async with self._answering():
            found = self.client.list(self.store, prefix or None)
            return sorted([each["path"] async for some in found for each in some])

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        """Turn every error of the storage into one type of error."""
        try:
            async with asyncio.timeout(self.seconds):
                yield
        except FileNotFoundError:
            raise ColdStorageError(MISSING) from None
        except (self.client.exceptions.BaseError, OSError, TimeoutError) as problem:
            raise ColdStorageError(SILENT.format(type(problem).__name__)) from None


@dataclass(frozen=True, slots=True)
class ColdStorage(ObjectStorage):
    """Object storage for cold scopes, and its encryption keys."""

    keys: MasterKeys


def require_storage(storage: ColdStorage | None) -> ColdStorage:
    """Return the storage; raise an error if this process has none."""
    if storage is None:
        raise ColdSetupError("Cold storage is not configured: set RECOLLECT_COLD__URL.")
    return storage


def build_storage(settings: Settings) -> ColdStorage | None:
    """Build the storage from the settings, without connecting to it."""
    if not settings.cold.url:
        if settings.cold.after_days:
            raise SetupError("RECOLLECT_COLD__AFTER_DAYS needs RECOLLECT_COLD__URL, the location of cold scopes.")
        return None
    found = open_objects(settings.cold.url, settings.cold.options, settings.cold.timeout_seconds, "RECOLLECT_COLD__URL")
    keys = MasterKeys(read_master(settings.cold.key), read_master(settings.cold.previous_key))
    return ColdStorage(found.client, found.store, found.seconds, found.folder, keys)


def open_objects(url: str, options: str, seconds: float, named: str) -> ObjectStorage:
    """Open a bucket or a folder by its URL, without connecting to it."""
    client, stores = load("obstore", "cold"), load("obstore.store", "cold")
    load("obstore.exceptions", "cold")
    address = urlsplit(url)
    if address.scheme == "file":
        folder = Path(unquote(address.path))
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        return ObjectStorage(client, stores.LocalStore(folder, automatic_cleanup=True, mkdir=True), seconds, folder)
    longest = timedelta(seconds=seconds)
    try:
        store = stores.from_url(
            url,
            config=read_options(options),
            client_options={"timeout": longest, "allow_http": "http://" in options},
            retry_config={"max_retries": TRIES, "retry_timeout": longest},
        )
    except (client.exceptions.BaseError, ValueError) as problem:
        raise SetupError(f"{named} or RECOLLECT_COLD__OPTIONS: {problem}") from None
    return ObjectStorage(client, store, seconds, None)


def read_options(text: str) -> dict[str, str]:
    """Parse options written as `name=value` and separated by blanks."""
    pairs = [each.partition("=") for each in text.split()]
    if not all(name and given for name, given, _ in pairs):
        raise SetupError("RECOLLECT_COLD__OPTIONS must be name=value pairs separated by spaces.")
    return {name: value for name, _, value in pairs}


def sync_path(folder: Path, name: str) -> None:
    """Sync a file and its new folders to the disk, readable for their owner only."""
    path = folder / name
    for each in (path, *path.parents):
        handle = os.open(each, os.O_RDONLY)
        try:
            if each != folder:
                os.fchmod(handle, PRIVATE_FILE if each == path else PRIVATE_FOLDER)
            os.fsync(handle)
        finally:
            os.close(handle)
        if each == folder:
            return
