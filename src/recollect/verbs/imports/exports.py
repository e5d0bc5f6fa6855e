"""Export scopes: all their data from one snapshot, section by section into one file."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import BinaryIO, TypeAlias

from recollect.core.imports.manifest import ExportedScope, Manifest, SectionFile
from recollect.core.imports.sections import COUNTERS, PROFILE, RECENTLY_USED, SECTIONS, VECTORS
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.imports import ExportReport, ExportRequest
from recollect.models.service import EmbeddingSpace
from recollect.store.cold import tiers
from recollect.store.cold.storage import require_storage
from recollect.store.cold.tiers import require_object
from recollect.store.database.pool import Connection
from recollect.store.imports import exports
from recollect.store.imports.exports import ExportedScopeRow
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.archive_object import unpacked
from recollect.verbs.imports.progress import Progress
from recollect.verbs.imports.zipped import ExportWriter

ALL = "all"
HERE = frozenset({PROFILE, COUNTERS, *(section.name for section in SECTIONS if section.table in RECENTLY_USED)})
"""The sections of a cold scope that are read from the database."""
ReadSection: TypeAlias = Callable[[str], AsyncIterator[Sequence[str]]]


async def export(
    parts: Dependencies, tenant_id: int, order: ExportRequest, file: BinaryIO, report: Progress
) -> ExportReport:
    """Write the requested scopes of a tenant to a file; later writes are not in it."""
    total, written = Counter[str](), list[ExportedScope]()
    async with AsyncExitStack() as stack:
        # A snapshot covers the data of one server.
        servers = await parts.servers.each(tenant_id)
        opened = [await stack.enter_async_context(each.snapshot(tenant_id)) for each in servers]
        found = [(each, held) for each in opened for held in await exports.list_scopes(each, order.agent, order.user)]
        if not found:
            raise NotFoundError("No such scope: nothing was ever stored there.")
        spaces = choose_spaces(order.vectors, await exports.list_spaces(opened[0]))
        names = [PROFILE, COUNTERS, *(each.name for each in SECTIONS), *(f"{VECTORS}{each.id}" for each in spaces)]
        with writing(file) as writer:
            for number, (connection, held) in enumerate(sorted(found, key=by_names), 1):
                folder = ExportedScope(str(number), held.agent, held.user, {})
                if held.cold or held.memories > exports.SMALL:
                    async with lines_of(parts, connection, held) as read:
                        sections = await export_scope(read, writer, folder, names, (total, report))
                else:
                    lines = await exports.read_small(connection, held.scope_id, names)
                    sections = await asyncio.to_thread(writer.write_all, folder, lines)
                    for name, section in sections.items():
                        total[name] += section.lines
                        report(name, total[name], total[name])
                written.append(ExportedScope(folder.folder, held.agent, held.user, sections))
            await asyncio.to_thread(writer.finish_file, Manifest(tuple(written), tuple(spaces)))
    return ExportReport(len(written), dict(total))


def by_names(found: tuple[Connection, exports.ExportedScopeRow]) -> tuple[bytes, bytes]:
    """Return the sort key of a scope, the same on every machine."""
    return found[1].agent.encode(), found[1].user.encode()


@contextmanager
def writing(file: BinaryIO) -> Iterator[ExportWriter]:
    """Write to a file, and close it on failure."""
    writer = ExportWriter(file)
    try:
        yield writer
    except BaseException:
        writer.abandon()
        raise


def choose_spaces(wanted: Sequence[str], spaces: Sequence[EmbeddingSpace]) -> list[EmbeddingSpace]:
    """Choose embedding spaces by the names of their models."""
    if unknown := {*wanted} - {ALL, *(space.model for space in spaces)}:
        raise InvalidInputError(f"There are no vectors of the model {min(unknown)}.")
    return [space for space in spaces if ALL in wanted or space.model in wanted]


@asynccontextmanager
async def lines_of(parts: Dependencies, connection: Connection, held: ExportedScopeRow) -> AsyncIterator[ReadSection]:
    """Read the sections of a scope from its rows; of a cold scope, from its object."""
    here = partial(exports.read_lines, connection, held.scope_id)
    if not held.cold:
        yield here
        return
    packed = await tiers.read_held(connection, held.scope_id)
    async with unpacked(parts, require_storage(parts.cold), require_object(packed)) as opened:

        async def exists(name: str) -> AsyncIterator[Sequence[str]]:
            async for lines in opened.read_section(name):
                yield [line.decode() for line in lines]

        yield lambda name: here(name) if name in HERE else exists(name)


async def export_scope(
    read: ReadSection,
    writer: ExportWriter,
    folder: ExportedScope,
    names: Sequence[str],
    progress: tuple[Counter[str], Progress],
) -> dict[str, SectionFile]:
    """Write every section of one scope that has a line, and describe them."""
    total, report = progress
    sections = {}
    for name in names:
        async for lines in read(name):
            await asyncio.to_thread(writer.write_lines, folder.path(name), lines)
            total[name] += len(lines)
            report(name, total[name], total[name])
        if ended := await asyncio.to_thread(writer.end_section):
            sections[name] = ended
    return sections
