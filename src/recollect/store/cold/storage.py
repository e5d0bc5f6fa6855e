"""Keep objects in S3, GCS, Azure or a folder: each is put, read back, and removed within a time."""

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

from recollect.errors import ColdStorageError, SetupError
from recollect.loading import load
from recollect.settings import Settings
from recollect.store.cold.sealing import MasterKeys, read_master

CHUNK = 1 << 20
TRIES = 2
SILENT = "The object storage did not answer as it should ({}); nothing was changed."
MISSING = "The object storage does not have an object that it was given; nothing was changed."


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """A bucket or a folder of objects."""

    client: Any
    store: Any
    seconds: float
    """How long one object may take."""
    folder: Path | None
    """Where the objects lie if they are files: a rename is durable only once it was synced."""

    async def put(self, name: str, file: BinaryIO, *, mode: str = "create") -> None:
        """Store an object that is not there yet, unless told otherwise; it is durable when this returns."""
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
        """Remove an object, or find that it is not there."""
        async with self._answering():
            try:
                await self.client.delete_async(self.store, name)
            except FileNotFoundError:
                return

    async def list(self, prefix: str = "") -> list[str]:
        """List the names of objects, all or those below a prefix."""
        async with self._answering():
            found = self.client.list(self.store, prefix or None)
            return sorted([each["path"] async for some in found for each in some])

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        """Turn whatever the storage raises into one error."""
        try:
            async with asyncio.timeout(self.seconds):
                yield
        except FileNotFoundError:
            raise ColdStorageError(MISSING) from None
        except (self.client.exceptions.BaseError, OSError, TimeoutError) as problem:
            raise ColdStorageError(SILENT.format(type(problem).__name__)) from None


@dataclass(frozen=True, slots=True)
class ColdStorage(ObjectStorage):
    """Where cold scopes lie, and the keys that seal them."""

    keys: MasterKeys


def require_storage(storage: ColdStorage | None) -> ColdStorage:
    """Return the storage, or say that this process knows none."""
    if storage is None:
        raise ColdStorageError("This process does not know where cold scopes are: set RECOLLECT_COLD_URL.")
    return storage


def build_storage(settings: Settings) -> ColdStorage | None:
    """Build the storage that the settings name; nothing is asked of it yet."""
    if not settings.cold_url:
        if settings.cold_after_days:
            raise SetupError("RECOLLECT_COLD_AFTER_DAYS needs RECOLLECT_COLD_URL, the place where cold scopes go.")
        return None
    found = open_objects(settings.cold_url, settings.cold_options, settings.cold_seconds, "RECOLLECT_COLD_URL")
    keys = MasterKeys(read_master(settings.cold_key), read_master(settings.cold_key_before))
    return ColdStorage(found.client, found.store, found.seconds, found.folder, keys)


def open_objects(url: str, options: str, seconds: float, named: str) -> ObjectStorage:
    """Open a bucket or a folder by its address; nothing is asked of it yet."""
    client, stores = load("obstore", "cold"), load("obstore.store", "cold")
    load("obstore.exceptions", "cold")
    address = urlsplit(url)
    if address.scheme == "file":
        folder = Path(unquote(address.path))
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
        raise SetupError(f"{named} or RECOLLECT_COLD_OPTIONS: {problem}") from None
    return ObjectStorage(client, store, seconds, None)


def read_options(text: str) -> dict[str, str]:
    """Read options as `name=value`, with blanks between them."""
    pairs = [each.partition("=") for each in text.split()]
    if not all(name and given for name, given, _ in pairs):
        raise SetupError("RECOLLECT_COLD_OPTIONS must be name=value, several with blanks.")
    return {name: value for name, _, value in pairs}


def sync_path(folder: Path, name: str) -> None:
    """Write a file and the folders that it was made in to the disk."""
    path = folder / name
    for each in (path, *path.parents):
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        if each == folder:
            return
