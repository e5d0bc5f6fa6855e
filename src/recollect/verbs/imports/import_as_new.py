"""Import an export's memories as new ones: with the import as origin, and at most the caller's trust."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from recollect.core.imports.lines import MemoryLine, read_memories
from recollect.core.memories.checks import count_characters
from recollect.models.imports import ImportResult
from recollect.models.memories import NewMemory
from recollect.models.service import Caller, Scope
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.checked import CheckedExport, CheckedScope
from recollect.verbs.imports.progress import Progress
from recollect.verbs.memories.load import load
from recollect.verbs.recovery import recover

MEMORIES, WITH_THEM = "memories/memories", ("memories/memory_features", "memories/evidence")
TOGETHER, CHARACTERS = 5_000, 1_000_000
"""Maximum number of memories and characters to store in one transaction."""
AS_NEW = (
    "The memories are new ones: they have new ids, the origin {origin} and a trust of at most {trust}. To restore ids, "
    "origin, trust, times and receipts takes the operator's command or an unbound key with the right `admin`."
)


@dataclass(slots=True)
class NewMemoryImport:
    """A running import of new memories: its caller, the waiting memories, and their new IDs."""

    parts: Dependencies
    caller: Caller
    scope: Scope
    trust: int = 0
    size: int = 0
    waiting: list[NewMemory] = field(default_factory=list[NewMemory])
    stored: bytearray = field(default_factory=bytearray)
    """The new IDs of stored memories, in the order of the file."""

    async def add_line(self, line: MemoryLine) -> None:
        """Add a memory; store earlier ones first if there are many, or if they have another trust."""
        trust = min(line.trust, self.caller.trust)
        size = count_characters(line.memory) + len(str(line.memory.metadata))
        if len(self.waiting) == TOGETHER or self.size + size > CHARACTERS or trust != self.trust:
            await self.store_waiting()
        first, self.trust, self.size = len(self.stored) // 16, trust, self.size + size
        evidence = tuple(self.find_new_id(each) if each < first else each - first for each in line.sources)
        self.waiting.append(replace(line.memory, evidence=evidence))

    def find_new_id(self, position: int) -> UUID:
        """Return the new ID of a memory."""
        return UUID(bytes=bytes(self.stored[16 * position : 16 * position + 16]))

    async def store_waiting(self) -> None:
        """Store the waiting memories in one transaction."""
        if self.waiting:
            caller = replace(self.caller, trust=self.trust)
            storing = partial(load, self.parts, caller, self.scope, self.waiting)
            ids = await recover(self.parts.recoveries, caller.tenant_id, storing)
            self.stored += b"".join(each.bytes for each in ids)
            self.waiting, self.size = [], 0


async def import_as_new(
    parts: Dependencies, caller: Caller, target: tuple[Scope, CheckedScope], export: CheckedExport, report: Progress
) -> int:
    """Store an export's memories as new memories of a scope; return how many."""
    scope, held = target
    # The first pass only checks.
    async for _ in read_lines(export, held):
        pass
    work = NewMemoryImport(await parts.at(scope), caller, scope)
    async for lines in read_lines(export, held):
        for line in lines:
            await work.add_line(line)
        report(MEMORIES, len(work.stored) // 16 + len(work.waiting), export.lines[MEMORIES])
    await work.store_waiting()
    return len(work.stored) // 16


async def import_scopes_as_new(
    parts: Dependencies,
    caller: Caller,
    targets: Sequence[tuple[Scope, CheckedScope]],
    export: CheckedExport,
    report: Progress,
) -> ImportResult:
    """Store an export's memories as new ones; every row of a scope is checked before the first is stored."""
    stored = sum([await import_as_new(parts, caller, each, export, report) for each in targets])
    left_out = Counter({name: rows for name, rows in export.lines.items() if name not in WITH_THEM})
    left_out[MEMORIES] -= stored
    remark = AS_NEW.format(origin=caller.origin, trust=caller.trust)
    left_out += export.left_out
    return ImportResult(len(targets), {MEMORIES: stored}, dict(+left_out), stored, (remark,), restored=False)


async def read_lines(export: CheckedExport, held: CheckedScope) -> AsyncIterator[list[MemoryLine]]:
    """Read the memories of one scope of an export in a thread, in batches."""
    async for block in export.read_blocks(held):
        yield await asyncio.to_thread(lambda: list(read_memories(block.rows)))  # noqa: B023 - awaited here
