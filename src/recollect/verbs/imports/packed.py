"""One scope as one object: its export with all vectors, packed and sealed, and read back to the same rows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

from recollect.core.imports.manifest import ExportedScope, Manifest
from recollect.core.imports.sections import COUNTERS, PROFILE, SECTIONS, VECTORS
from recollect.core.service.numbers import tenant_of
from recollect.errors import ColdStorageError, InvalidInputError
from recollect.store.cold import keys
from recollect.store.cold.sealing import DAMAGED, SealedWriter, open_sealed
from recollect.store.cold.storage import ColdStorage
from recollect.store.cold.tiers import ColdObject
from recollect.store.database.pool import Connection, Database
from recollect.store.imports import exports
from recollect.verbs.imports.zipped import ExportReader, ExportWriter, open_export

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


async def pack(
    connection: Connection, storage: ColdStorage, database: Database, made: ColdObject, file: BinaryIO
) -> ColdObject:
    """Write a scope, as a snapshot shows it, into a file; return what the file is."""
    scope_id = made.scope_id
    sealed_by = await keys.find_newest(database, tenant_of(scope_id), storage.keys)
    await exports.settle(connection)
    spaces = await exports.list_spaces(connection)
    sealed = await asyncio.to_thread(SealedWriter, file, scope_id, sealed_by)
    writer = ExportWriter(cast("BinaryIO", sealed), stored=True)
    sections = {}
    for name in [PROFILE, COUNTERS, *TABLES, *(f"{VECTORS}{each.id}" for each in spaces)]:
        async for lines in exports.read_lines(connection, scope_id, name):
            await asyncio.to_thread(writer.write, ExportedScope(FOLDER, "", "", {}).path(name), lines)
        if ended := writer.end():
            sections[name] = ended
    agent, user = await exports.read_names(connection, scope_id)
    held = tuple(space for space in spaces if f"{VECTORS}{space.id}" in sections)
    await asyncio.to_thread(writer.close, Manifest((ExportedScope(FOLDER, agent, user, sections),), held))
    digest = await asyncio.to_thread(sealed.close)
    counts = Counter[str]()
    for name, section in sections.items():
        counts[TABLES.get(name, "vectors" if name.startswith(VECTORS) else "")] += section.lines
    del counts[""]
    return replace(made, bytes=sealed.bytes, sha256=digest, counts=dict(counts))


@asynccontextmanager
async def unpacked(database: Database, storage: ColdStorage, held: ColdObject) -> AsyncIterator[ExportReader]:
    """Read the object of a scope, and check it to the last byte."""
    known = await keys.list_keys(database, tenant_of(held.scope_id), storage.keys)
    async with temporary() as packed, temporary() as file:
        if await storage.fetch(held.name, packed) != held.sha256:
            raise ColdStorageError(DAMAGED.format("its checksum is another"))
        await asyncio.to_thread(open_sealed, packed, held.scope_id, partial(keys.choose, known), file)
        try:
            reader = await asyncio.to_thread(open_export, file)
        except InvalidInputError as problem:
            raise ColdStorageError(str(problem)) from None
        yield reader
