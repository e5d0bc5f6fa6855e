"""One scope as one object: its export with all vectors, packed and sealed, and read back to the same rows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, TypeVar, cast

from recollect.core.imports.manifest import ExportedScope, Manifest, SectionFile
from recollect.core.imports.sections import COUNTERS, PROFILE, SECTIONS, VECTORS
from recollect.core.service.numbers import tenant_of
from recollect.errors import ColdStorageError, InvalidInputError
from recollect.models.service import EmbeddingSpace
from recollect.store.cold import keys
from recollect.store.cold.sealing import DAMAGED, SealedWriter, SealingKey, open_sealed
from recollect.store.cold.storage import ColdStorage
from recollect.store.cold.tiers import ColdObject
from recollect.store.database.pool import Connection, Database
from recollect.store.imports import exports
from recollect.verbs.imports.zipped import ExportReader, ExportWriter, open_export
from recollect.verbs.parts import Parts
from recollect.verbs.service.moved import repeat

Found = TypeVar("Found")
IN_MEMORY = 16 << 20
"""Larger objects are files for a while."""
FOLDER = "1"
TABLES = {section.name: section.table for section in SECTIONS}


@asynccontextmanager
async def temporary() -> AsyncIterator[BinaryIO]:
    """Make a file for a while, in memory as long as it is small."""
    file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed below
    try:
        yield cast("BinaryIO", file)
    finally:
        await asyncio.to_thread(file.close)


async def at_home(parts: Parts, scope_id: int, find: Callable[[Database, int], Awaitable[Found]]) -> Found:
    """Find keys of a scope's tenant, which lie on its home shard wherever the scope itself is."""
    servers, tenant_id = parts.servers, tenant_of(scope_id)

    async def look() -> Found:
        return await find(await servers.home(tenant_id), tenant_id)

    return await repeat(look, partial(servers.read_anew, tenant_id))


async def pack(
    parts: Parts, connection: Connection, storage: ColdStorage, made: ColdObject, file: BinaryIO
) -> ColdObject:
    """Write a scope, as a snapshot shows it, into a file; return what the file is."""
    sealed_by = await at_home(parts, made.scope_id, partial(keys.find_newest, masters=storage.keys))
    await exports.settle(connection)
    spaces = await exports.list_spaces(connection)
    agent, user, memories = await exports.read_names(connection, made.scope_id)
    writer = PackedWriter(file, made, sealed_by)
    names = [PROFILE, COUNTERS, *TABLES, *(f"{VECTORS}{each.id}" for each in spaces)]
    if memories <= exports.SMALL:
        found = await exports.read_small(connection, made.scope_id, names)
        return await asyncio.to_thread(writer.write_all, found, (agent, user), spaces)
    for name in names:
        async for lines in exports.read_lines(connection, made.scope_id, name):
            await asyncio.to_thread(writer.write, name, lines)
        writer.end(name)
    return await asyncio.to_thread(writer.close, (agent, user), spaces)


class PackedWriter:
    """Writes the export of one scope into an object."""

    def __init__(self, file: BinaryIO, made: ColdObject, key: SealingKey) -> None:
        self._made, self._sealed = made, SealedWriter(file, made.scope_id, key)
        self._writer = ExportWriter(cast("BinaryIO", self._sealed), stored=True)
        self._sections: dict[str, SectionFile] = {}

    def write_all(
        self, found: Mapping[str, Sequence[str]], names: tuple[str, str], spaces: Sequence[EmbeddingSpace]
    ) -> ColdObject:
        """Write all sections of a small scope."""
        for name, lines in found.items():
            self.write(name, lines)
            self.end(name)
        return self.close(names, spaces)

    def write(self, name: str, lines: Sequence[str]) -> None:
        """Add lines to a section."""
        self._writer.write(f"{FOLDER}/{name}.jsonl", lines)

    def end(self, name: str) -> None:
        """End a section, if it has any line."""
        if ended := self._writer.end():
            self._sections[name] = ended

    def close(self, names: tuple[str, str], spaces: Sequence[EmbeddingSpace]) -> ColdObject:
        """End the object, and say what it is."""
        held = tuple(space for space in spaces if f"{VECTORS}{space.id}" in self._sections)
        self._writer.close(Manifest((ExportedScope(FOLDER, *names, self._sections),), held))
        digest, counts = self._sealed.close(), Counter[str]()
        for name, section in self._sections.items():
            counts[TABLES.get(name, "vectors" if name.startswith(VECTORS) else "")] += section.lines
        del counts[""]
        return replace(self._made, bytes=self._sealed.bytes, sha256=digest, counts=dict(counts))


@asynccontextmanager
async def unpacked(parts: Parts, storage: ColdStorage, held: ColdObject) -> AsyncIterator[ExportReader]:
    """Read the object of a scope, and check it to the last byte."""
    known = await at_home(parts, held.scope_id, partial(keys.list_keys, masters=storage.keys))
    async with temporary() as packed, temporary() as file:
        if await storage.fetch(held.name, packed) != held.sha256:
            raise ColdStorageError(DAMAGED.format("its checksum is another"))
        yield await asyncio.to_thread(open_packed, packed, held.scope_id, known, file)


def open_packed(packed: BinaryIO, scope_id: int, known: Mapping[int, SealingKey], file: BinaryIO) -> ExportReader:
    """Unpack an object into a file, and open that as an export."""
    open_sealed(packed, scope_id, partial(keys.choose, known), file)
    try:
        return open_export(file)
    except InvalidInputError as problem:
        raise ColdStorageError(str(problem)) from None
