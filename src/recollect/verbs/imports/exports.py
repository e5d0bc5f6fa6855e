"""Export scopes: everything they hold, of one moment, section by section into one file."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import BinaryIO, TypeAlias

from recollect.core.imports.manifest import ExportedScope, Manifest
from recollect.core.imports.sections import COUNTERS, KEPT_HOT, PROFILE, SECTIONS, VECTORS
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.imports import ExportOrder, ExportReport
from recollect.models.service import EmbeddingSpace
from recollect.store.cold import tiers
from recollect.store.cold.storage import require_storage
from recollect.store.cold.tiers import require_object
from recollect.store.database.pool import Connection
from recollect.store.imports import exports
from recollect.store.imports.exports import Held
from recollect.verbs.imports import restore
from recollect.verbs.imports.packed import unpacked
from recollect.verbs.imports.progress import Progress
from recollect.verbs.imports.zipped import ExportWriter
from recollect.verbs.parts import Parts

ALL = "all"
HERE = frozenset({PROFILE, COUNTERS, *(section.name for section in SECTIONS if section.table in KEPT_HOT)})
"""The sections of a cold scope that are read from the database."""
ReadSection: TypeAlias = Callable[[str], AsyncIterator[Sequence[str]]]


async def export(parts: Parts, tenant_id: int, order: ExportOrder, file: BinaryIO, report: Progress) -> ExportReport:
    """Write the scopes of a tenant that are wanted to a file; what is written meanwhile is not in it."""
    total, written = Counter[str](), list[ExportedScope]()
    async with AsyncExitStack() as stack:
        # Of one moment is what lies on one server.
        servers = await parts.servers.each(tenant_id)
        opened = [await stack.enter_async_context(each.snapshot(tenant_id)) for each in servers]
        found = [(each, held) for each in opened for held in await exports.list_scopes(each, order.agent, order.user)]
        if not found:
            raise NotFoundError("There is no such scope: nothing was ever remembered there.")
        spaces = choose_spaces(order.vectors, await exports.list_spaces(opened[0]))
        names = [PROFILE, COUNTERS, *(each.name for each in SECTIONS), *(f"{VECTORS}{each.id}" for each in spaces)]
        with writing(file) as writer:
            for number, (connection, held) in enumerate(sorted(found, key=by_names), 1):
                folder = ExportedScope(str(number), held.agent, held.user, {})
                async with lines_of(parts, connection, held, names) as read:
                    written.append(await export_scope(read, writer, folder, names, (total, report)))
            await asyncio.to_thread(writer.close, Manifest(tuple(written), tuple(spaces)))
    return ExportReport(len(written), dict(total))


def by_names(found: tuple[Connection, exports.Held]) -> tuple[bytes, bytes]:
    """Return what scopes are ordered by, the same on every machine."""
    return found[1].agent.encode(), found[1].user.encode()


@contextmanager
def writing(file: BinaryIO) -> Iterator[ExportWriter]:
    """Write to a file, and let go of it if that fails."""
    writer = ExportWriter(file)
    try:
        yield writer
    except BaseException:
        writer.abandon()
        raise


def choose_spaces(wanted: Sequence[str], spaces: Sequence[EmbeddingSpace]) -> list[EmbeddingSpace]:
    """Choose the embedding spaces that are named by their models."""
    if unknown := {*wanted} - {ALL, *(space.model for space in spaces)}:
        raise InvalidInputError(f"There are no vectors of the model {min(unknown)}.")
    return [space for space in spaces if ALL in wanted or space.model in wanted]


@asynccontextmanager
async def lines_of(
    parts: Parts, connection: Connection, held: Held, names: Sequence[str]
) -> AsyncIterator[ReadSection]:
    """Read the sections of a scope from its rows; of a cold one, what is not kept here from its object."""
    here = partial(exports.read_lines, connection, held.scope_id)
    if not held.cold:
        small = held.memories <= exports.SMALL
        yield lines_at_once(await exports.read_small(connection, held.scope_id, names)) if small else here
        return
    packed = await tiers.read_held(connection, held.scope_id)
    async with unpacked(parts, require_storage(parts.cold), require_object(packed)) as reader:
        [scope] = reader.manifest.scopes

        async def there(name: str) -> AsyncIterator[Sequence[str]]:
            async for lines in restore.read(reader, scope, name):
                yield exports.decode(lines)

        yield lambda name: here(name) if name in HERE else there(name)


def lines_at_once(found: Mapping[str, Sequence[str]]) -> ReadSection:
    """Give the lines of sections that were read together."""

    async def read(name: str) -> AsyncIterator[Sequence[str]]:
        if name in found:
            yield found[name]

    return read


async def export_scope(
    read: ReadSection,
    writer: ExportWriter,
    folder: ExportedScope,
    names: Sequence[str],
    progress: tuple[Counter[str], Progress],
) -> ExportedScope:
    """Write every section of one scope that has a line."""
    total, report = progress
    sections = {}
    for name in names:
        async for lines in read(name):
            await asyncio.to_thread(writer.write, folder.path(name), lines)
            total[name] += len(lines)
            report(name, total[name], total[name])
        if ended := await asyncio.to_thread(writer.end):
            sections[name] = ended
    return ExportedScope(folder.folder, folder.agent, folder.user, sections)
