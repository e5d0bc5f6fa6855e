"""One scope as one object: its export with all vectors, packed and sealed, and its restore to the same rows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, TypeVar, cast

from recollect.core.imports.manifest import ExportedScope, Manifest, SectionFile, read_scopes, read_spaces
from recollect.core.imports.sections import COUNTERS, PROFILE, RECENTLY_USED, SECTIONS, VECTORS
from recollect.core.service.numbers import tenant_of
from recollect.errors import ColdStorageError, InvalidInputError
from recollect.models.service import EmbeddingSpace
from recollect.store.cold import keys
from recollect.store.cold.sealing import DAMAGED, SealedWriter, SealingKey, open_sealed
from recollect.store.cold.storage import ColdStorage
from recollect.store.cold.tiers import ColdObject
from recollect.store.database.pool import Connection, Database
from recollect.store.imports import exports
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.checked import RowBlock
from recollect.verbs.imports.zipped import ExportReader, ExportWriter, open_export
from recollect.verbs.recovery import recover

Found = TypeVar("Found")
IN_MEMORY = 16 << 20
"""Maximum size of objects in memory; larger ones are temporary files."""
FOLDER = "1"
TABLES = {section.name: section.table for section in SECTIONS}


@asynccontextmanager
async def temporary() -> AsyncIterator[BinaryIO]:
    """Create a temporary file, in memory while it is small."""
    file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed below
    try:
        yield cast("BinaryIO", file)
    finally:
        await asyncio.to_thread(file.close)


async def home_shard_keys(
    parts: Dependencies, scope_id: int, find: Callable[[Database, int], Awaitable[Found]]
) -> Found:
    """Find keys of a scope's tenant on its home shard."""
    servers, tenant_id = parts.servers, tenant_of(scope_id)

    async def look() -> Found:
        return await find(await servers.home(tenant_id), tenant_id)

    return await recover(parts.recoveries, tenant_id, look)


async def pack(
    parts: Dependencies, connection: Connection, storage: ColdStorage, made: ColdObject, file: BinaryIO
) -> ColdObject:
    """Write a scope's snapshot to a file; return the object's description."""
    sealed_by = await home_shard_keys(parts, made.scope_id, partial(keys.find_newest, masters=storage.keys))
    await exports.fix_text_format(connection)
    spaces = await exports.list_spaces(connection)
    agent, user, memories = await exports.read_names(connection, made.scope_id)
    writer = PackedWriter(file, made, sealed_by)
    names = [PROFILE, COUNTERS, *TABLES, *(f"{VECTORS}{each.id}" for each in spaces)]
    if memories <= exports.SMALL:
        found = await exports.read_small(connection, made.scope_id, names)
        return await asyncio.to_thread(writer.write_all, found, (agent, user), spaces)
    for name in names:
        async for lines in exports.read_lines(connection, made.scope_id, name):
            await asyncio.to_thread(writer.write_lines, name, lines)
        writer.end_section(name)
    return await asyncio.to_thread(writer.finish_object, (agent, user), spaces)


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
        self._sections = self._writer.write_all(ExportedScope(FOLDER, *names, {}), found)
        return self.finish_object(names, spaces)

    def write_lines(self, name: str, lines: Sequence[str]) -> None:
        """Add lines to a section."""
        self._writer.write_lines(f"{FOLDER}/{name}.jsonl", lines)

    def end_section(self, name: str) -> None:
        """End a section, if it has lines."""
        if ended := self._writer.end_section():
            self._sections[name] = ended

    def finish_object(self, names: tuple[str, str], spaces: Sequence[EmbeddingSpace]) -> ColdObject:
        """End the object, and return its description."""
        held = tuple(space for space in spaces if f"{VECTORS}{space.id}" in self._sections)
        self._writer.finish_file(Manifest((ExportedScope(FOLDER, *names, self._sections),), held))
        digest, counts = self._sealed.finish_object(), Counter[str]()
        for name, section in self._sections.items():
            counts[TABLES.get(name, "vectors" if name.startswith(VECTORS) else "")] += section.lines
        del counts[""]
        return replace(self._made, bytes=self._sealed.bytes, sha256=digest, counts=dict(counts))


@asynccontextmanager
async def unpacked(parts: Dependencies, storage: ColdStorage, held: ColdObject) -> AsyncIterator[PackedScope]:
    """Read the object of a scope, and check that it is the written one."""
    known = await home_shard_keys(parts, held.scope_id, partial(keys.list_keys, masters=storage.keys))
    async with temporary() as packed, temporary() as file:
        if await storage.fetch(held.name, packed) != held.sha256:
            raise ColdStorageError(DAMAGED.format("its checksum differs"))
        yield await asyncio.to_thread(open_packed, packed, held.scope_id, known, file)


@dataclass(frozen=True, slots=True)
class PackedScope:
    """An open object: it was written and sealed by us, so it needs no other check."""

    reader: ExportReader
    scope: ExportedScope
    spaces: tuple[EmbeddingSpace, ...]

    async def read_section(self, section: str) -> AsyncIterator[list[bytes]]:
        """Read a section in a thread, in batches of lines."""
        if section in self.scope.sections:
            coming = self.reader.read_section_lines(self.scope, section)
            while lines := await asyncio.to_thread(next, coming, None):
                yield lines

    async def blocks(self) -> AsyncIterator[RowBlock]:
        """Read all sections that are not in the database, in the order in which they can be stored."""
        vectors = (f"{VECTORS}{space.id}" for space in self.spaces)
        for name in (*(name for name, table in TABLES.items() if table not in RECENTLY_USED), *vectors, COUNTERS):
            async for lines in self.read_section(name):
                yield RowBlock(name, len(lines), b"[%b]" % b",".join(lines))


def open_packed(packed: BinaryIO, scope_id: int, known: Mapping[int, SealingKey], file: BinaryIO) -> PackedScope:
    """Unpack an object into a file, and open the file as an export."""
    open_sealed(packed, scope_id, partial(keys.choose_key, known), file)
    try:
        reader = open_export(file)
        spaces = read_spaces(reader.manifest())
        [scope] = read_scopes(reader.manifest())
        return PackedScope(reader, scope, spaces)
    except InvalidInputError as problem:
        raise ColdStorageError(str(problem)) from None
