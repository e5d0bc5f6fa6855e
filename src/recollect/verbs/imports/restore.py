"""Import an export into empty scopes: everything as it was, ids, origin, trust, times and receipts, or nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any

from recollect.core.agents.profiles import check_profile, to_profile
from recollect.core.imports.manifest import ExportedScope
from recollect.core.imports.sections import COUNTERS, PROFILE, SECTIONS, VECTORS, Section
from recollect.errors import InvalidInputError
from recollect.models.imports import ExportImport
from recollect.models.service import EmbeddingSpace, Scope
from recollect.store.database.pool import Connection
from recollect.store.imports import exports
from recollect.verbs.imports.progress import Progress
from recollect.verbs.imports.zipped import ExportReader
from recollect.verbs.parts import Parts

KEPT_PROFILE = "{} has settings of its own already, and keeps them."
AT_ONCE = 8_000_000
"""Scopes of so many bytes are stored together."""
NO_SPACE = "There is no embedding space here for the vectors of {}: they are left out."


@dataclass(slots=True)
class Restoring:
    """An import under way: its file, where it reports, and what was done so far."""

    reader: ExportReader
    report: Progress
    channels: Sequence[str]
    """The names of all channels, which a profile may name."""
    lines: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])
    waiting: int = 0
    remarks: dict[str, None] = field(default_factory=dict[str, None])
    """Each once, in order."""

    def total(self, section: str) -> int:
        """Return how many lines a section has, over all scopes."""
        held = (scope.sections.get(section) for scope in self.reader.manifest.scopes)
        return sum(each.lines for each in held if each)

    def count(self, section: str, lines: int) -> None:
        """Count lines that are stored."""
        self.lines[section] += lines
        self.report(section, self.lines[section], self.total(section))


async def restore(
    parts: Parts, targets: Sequence[tuple[Scope, ExportedScope]], reader: ExportReader, report: Progress
) -> ExportImport:
    """Store scopes of an export, each in a scope of its own that is empty, in one transaction for each server."""
    work = Restoring(reader, report, parts.channel_names)
    located = [(await parts.servers.of_scope(scope), scope, held) for scope, held in targets]
    for database, some in groupby(located, key=lambda each: each[0]):
        async with database.transaction(targets[0][0].tenant_id, pipelined=False) as connection:
            spaces = {space.id: space for space in await exports.list_spaces(connection)}
            for _, scope, held in some:
                await restore_scope(connection, work, scope, held, spaces)
    return ExportImport(len(targets), dict(work.lines), dict(work.left_out), work.waiting, tuple(work.remarks))


async def restore_scope(
    connection: Connection, work: Restoring, scope: Scope, held: ExportedScope, spaces: Mapping[int, EmbeddingSpace]
) -> None:
    """Store every section of one scope in one that is empty."""
    scope_id = await exports.open_empty(connection, scope)
    async for lines in read(work.reader, held, PROFILE):
        await restore_profile(connection, work, scope.agent, lines)
    await restore_rows(connection, work, scope_id, held, spaces)


async def restore_rows(
    connection: Connection,
    work: Restoring,
    scope_id: int,
    held: ExportedScope,
    spaces: Mapping[int, EmbeddingSpace],
    kept: Collection[str] = (),
) -> None:
    """Store all rows of a scope but those of tables that kept them; the counters last, when nothing counts any more."""
    wanted = [section for section in SECTIONS if section.table not in kept and section.name in held.sections]
    # What comes from elsewhere is stored section by section, so that a refusal can name one.
    if kept and sum(each.bytes for each in held.sections.values()) <= AT_ONCE:
        await restore_small(connection, work, scope_id, held, wanted)
    else:
        for section in wanted:
            async for lines in read(work.reader, held, section.name):
                await exports.store_lines(connection, scope_id, section, lines)
                work.count(section.name, len(lines))
    for space in work.reader.manifest.spaces:
        await restore_vectors(connection, work, scope_id, held, (space, spaces.get(space.id)))
    work.waiting += await exports.await_vectors(connection, scope_id)
    async for lines in read(work.reader, held, COUNTERS):
        await exports.store_counters(connection, scope_id, lines)
        work.count(COUNTERS, len(lines))


async def restore_small(
    connection: Connection, work: Restoring, scope_id: int, held: ExportedScope, wanted: Sequence[Section]
) -> None:
    """Store the rows of a small scope in few round trips."""
    given = await asyncio.to_thread(
        lambda: {section: list(chain.from_iterable(work.reader.read(held, section.name))) for section in wanted}
    )
    await exports.store_small(connection, scope_id, given)
    for section, lines in given.items():
        work.count(section.name, len(lines))


async def restore_vectors(
    connection: Connection,
    work: Restoring,
    scope_id: int,
    held: ExportedScope,
    spaces: tuple[EmbeddingSpace, EmbeddingSpace | None],
) -> None:
    """Store the vectors of a space, if there is the same one here."""
    there, here = spaces
    name = f"{VECTORS}{there.id}"
    if here != there:
        if name in held.sections:
            work.left_out[name] += held.sections[name].lines
            work.remarks[NO_SPACE.format(there.model)] = None
        return
    async for lines in read(work.reader, held, name):
        await exports.store_vectors(connection, scope_id, there, lines)
        work.count(name, len(lines))


async def restore_profile(connection: Connection, work: Restoring, agent: str, lines: Sequence[bytes]) -> None:
    """Give the agent the settings it had, unless it has some."""
    value: Any = await exports.read_one(connection, lines)
    try:
        check_profile(to_profile(value["profile"]), work.channels)
    except (ValueError, TypeError, KeyError):
        raise InvalidInputError(f"{PROFILE} cannot be read. Nothing was imported.") from None
    if await exports.store_profile(connection, agent, lines):
        work.count(PROFILE, len(lines))
    else:
        work.left_out[PROFILE] += len(lines)
        work.remarks[KEPT_PROFILE.format(agent)] = None


async def read(reader: ExportReader, held: ExportedScope, section: str) -> AsyncIterator[list[bytes]]:
    """Read a section in a thread, some lines at a time."""
    coming: Iterator[list[bytes]] = reader.read(held, section)
    while lines := await asyncio.to_thread(next, coming, None):
        yield lines
