"""Import an export's memories as new ones: with an origin that says so, and at most the trust of who imports them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from uuid import UUID

from recollect.core.imports.lines import MemoryLine, read_memories
from recollect.core.imports.manifest import ExportedScope
from recollect.models.imports import ExportImport
from recollect.models.memories import NewMemory
from recollect.models.service import Caller, Scope
from recollect.verbs.imports.progress import Progress
from recollect.verbs.imports.zipped import ExportReader
from recollect.verbs.memories.load import load
from recollect.verbs.parts import Parts, awake

MEMORIES, FEATURES, EVIDENCE = "memories/memories", "memories/memory_features", "memories/evidence"
TOGETHER = 5_000
"""So many memories are stored in one transaction at most."""
AS_NEW = (
    "The memories are new ones: they have new ids, the origin {origin} and a trust of at most {trust}. To restore ids, "
    "origin, trust, times and receipts takes the operator's command or an unbound key with the right `admin`."
)


@dataclass(slots=True)
class Bringing:
    """An import of new memories under way: for whom, what waits to be stored, and which ids became which."""

    parts: Parts
    caller: Caller
    scope: Scope
    trust: int = 0
    waiting: list[NewMemory] = field(default_factory=list[NewMemory])
    places: dict[UUID, int] = field(default_factory=dict[UUID, int])
    """The positions of those that wait, by the ids of the export."""
    renamed: dict[UUID, UUID] = field(default_factory=dict[UUID, UUID])

    async def add(self, line: MemoryLine) -> None:
        """Add one; those before it are stored first where there are many, or where they have another trust."""
        trust = min(line.trust, self.caller.trust)
        if len(self.waiting) == TOGETHER or trust != self.trust:
            await self.store()
        self.trust = trust
        named = (self.renamed.get(source, self.places.get(source)) for source in line.sources)
        evidence = tuple(source for source in named if source is not None)
        self.places[line.id] = len(self.waiting)
        self.waiting.append(replace(line.memory, evidence=evidence))

    async def store(self) -> None:
        """Store what waits, in one transaction."""
        if self.waiting:
            caller = replace(self.caller, trust=self.trust)
            ids = await awake(self.parts, partial(load, self.parts, caller, self.scope, self.waiting))
            self.renamed |= {old: ids[place] for old, place in self.places.items()}
            self.waiting, self.places = [], {}


async def bring_new(
    parts: Parts, caller: Caller, target: tuple[Scope, ExportedScope], reader: ExportReader, report: Progress
) -> ExportImport:
    """Store what an export remembers as new memories of a scope; every line is checked before the first is stored."""
    scope, held = target
    total = sum(each.lines for name, each in held.sections.items() if name == MEMORIES)
    # The first pass only checks.
    await asyncio.to_thread(lambda: sum(1 for _ in read_all(reader, held)))
    work = Bringing(await parts.at(scope), caller, scope)
    coming, passed = read_all(reader, held), 0
    while lines := await asyncio.to_thread(take, coming):
        for line in lines:
            if line is not None:
                await work.add(line)
        passed += len(lines)
        report(MEMORIES, passed, total)
    await work.store()
    stored = len(work.renamed)
    left_out = Counter({name: each.lines for name, each in held.sections.items() if name not in (FEATURES, EVIDENCE)})
    left_out[MEMORIES] -= stored
    remark = AS_NEW.format(origin=caller.origin, trust=caller.trust)
    return ExportImport(1, {MEMORIES: stored}, dict(+left_out), stored, (remark,), restored=False)


def read_all(reader: ExportReader, held: ExportedScope) -> Iterator[MemoryLine | None]:
    """Read the memories of one scope of an export."""
    memories, features, evidence = (
        chain.from_iterable(reader.read(held, section)) for section in (MEMORIES, FEATURES, EVIDENCE)
    )
    return read_memories(memories, features, evidence)


def take(coming: Iterator[MemoryLine | None]) -> list[MemoryLine | None]:
    """Take some memories; none at the end."""
    return [line for line, _ in zip(coming, range(TOGETHER), strict=False)]
