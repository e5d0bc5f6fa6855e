"""Import an export into empty scopes: all IDs, origins, trusts, times and receipts unchanged, or nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from recollect.core.agents.profiles import check_profile, to_profile
from recollect.core.imports.sections import COUNTERS, PROFILE, SECTIONS, VECTORS
from recollect.errors import InvalidInputError
from recollect.models.imports import ImportResult
from recollect.models.service import EmbeddingSpace, Scope
from recollect.store.database.pool import Connection
from recollect.store.imports import exports
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.checked import CheckedExport, CheckedScope, RowBlock
from recollect.verbs.imports.progress import Progress

BY_NAME = {section.name: section for section in SECTIONS}
KEPT_PROFILE = "{} keeps its existing settings."
NO_SPACE = "Vectors of {} were skipped: no such embedding space here."


@dataclass(slots=True)
class RestoreRun:
    """A running import: the embedding spaces it names, its progress, and its counts."""

    spaces: Mapping[str, EmbeddingSpace]
    """By the names of their sections."""
    report: Progress
    channels: Sequence[str]
    """The names of all channels, which a profile may name."""
    total: Mapping[str, int]
    lines: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])
    waiting: int = 0
    remarks: dict[str, None] = field(default_factory=dict[str, None])
    """Each once, in order."""

    def count(self, block: RowBlock) -> None:
        """Count stored rows."""
        self.lines[block.section] += block.lines
        self.report(block.section, self.lines[block.section], self.total.get(block.section, 0))


def by_section(spaces: Sequence[EmbeddingSpace]) -> dict[str, EmbeddingSpace]:
    """Return embedding spaces by the names of the sections with their vectors."""
    return {f"{VECTORS}{space.id}": space for space in spaces}


async def restore(
    parts: Dependencies, targets: Sequence[tuple[Scope, CheckedScope]], export: CheckedExport, report: Progress
) -> ImportResult:
    """Store scopes of an export in separate empty scopes, in one transaction for each server."""
    work = RestoreRun(by_section(export.spaces), report, parts.channel_names, export.lines)
    located = [(await parts.servers.for_scope(scope), scope, held) for scope, held in targets]
    for place in dict.fromkeys(database.place for database, _, _ in located):
        some = [each for each in located if each[0].place == place]
        writing = some[0][0].used(restoring=True)
        async with writing.transaction(targets[0][0].tenant_id, pipelined=False) as connection:
            spaces = by_section(await exports.list_spaces(connection))
            for number, (_, scope, held) in enumerate(some):
                # Each time the scopes have doubled: a plan for few scopes reads all of a tenant to find one.
                if number.bit_count() == 1:
                    await exports.forget_plans(connection)
                scope_id = await exports.open_empty(connection, scope)
                await restore_rows(connection, work, (scope_id, scope.agent), export.read_blocks(held), spaces)
    left_out = work.left_out + Counter(export.left_out)
    return ImportResult(len(targets), dict(work.lines), dict(left_out), work.waiting, tuple(work.remarks))


async def restore_rows(
    connection: Connection,
    work: RestoreRun,
    target: tuple[int, str],
    blocks: AsyncIterator[RowBlock],
    spaces: Mapping[str, EmbeddingSpace],
) -> None:
    """Store all rows of a scope in their order; the counters last, when no later row changes them."""
    scope_id, agent = target
    async for block in blocks:
        if block.section in BY_NAME:
            await exports.store_rows(connection, scope_id, BY_NAME[block.section], block.rows)
            work.count(block)
        elif block.section == PROFILE:
            await restore_profile(connection, work, agent, block)
        elif block.section == COUNTERS:
            work.waiting += await exports.await_vectors(connection, scope_id)
            await exports.store_counters(connection, scope_id, block.rows)
            work.count(block)
        elif spaces.get(block.section) == work.spaces[block.section]:
            await exports.store_vectors(connection, scope_id, spaces[block.section], block.rows)
            work.count(block)
        else:
            work.left_out[block.section] += block.lines
            work.remarks[NO_SPACE.format(work.spaces[block.section].model)] = None


async def restore_profile(connection: Connection, work: RestoreRun, agent: str, block: RowBlock) -> None:
    """Restore the settings of an agent, unless it has settings."""
    try:
        check_profile(to_profile(json.loads(block.rows)[0]["profile"]), work.channels)
    except (ValueError, TypeError, KeyError):
        raise InvalidInputError(f"{PROFILE} cannot be read. Nothing was imported.") from None
    if await exports.store_profile(connection, agent, block.rows):
        work.count(block)
    else:
        work.left_out[PROFILE] += block.lines
        work.remarks[KEPT_PROFILE.format(agent)] = None
