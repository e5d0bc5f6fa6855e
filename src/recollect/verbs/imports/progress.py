"""Count, report and resume imports."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from recollect.core.imports.parsed import CONVERSATIONS, FACTS, MEMORIES, MESSAGES, Owner
from recollect.core.imports.text import RENAMED, to_user
from recollect.models.imports import FileImport
from recollect.models.service import Caller, Scope
from recollect.store.imports.progress import ImportedIds, read_arrived
from recollect.verbs.dependencies import Dependencies

SIDE_BY_SIDE = 4
Progress = Callable[[str, int, int], None]
"""Called with the name of a step, its progress, and its total."""
T = TypeVar("T")
MAX_BATCH_ITEMS, MAX_CHARACTERS = 250, 250_000
"""Maximum size of one write: far below the limit of one call, to stay within its deadline."""
USER_NOT_NAMED = "entries without the --user-by field: assigned to --user"
THINGS = (CONVERSATIONS, MESSAGES, MEMORIES, FACTS)


def ignore_progress(_step: str, _done: int, _total: int) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """The counts of finished work."""

    imported: Counter[str] = field(default_factory=Counter[str])
    known: Counter[str] = field(default_factory=Counter[str])
    skipped: Counter[str] = field(default_factory=Counter[str])
    remarks: Counter[str] = field(default_factory=Counter[str])

    def passed(self, thing: str) -> int:
        """Count finished entries, imported or not."""
        return self.imported[thing] + self.known[thing] + self.skipped[thing]


async def run_concurrently(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run tasks concurrently, all to their end: the database writes one while another is analyzed."""
    ended = await asyncio.gather(*work, return_exceptions=True)
    for problem in ended:
        if problem is not None:
            raise problem


@dataclass(frozen=True, slots=True)
class ImportRun:
    """An import: its options, the entries read so far, and their outcome."""

    parts: Dependencies
    caller: Caller
    wanted: FileImport
    report: Progress
    ledger: ImportCounts = field(default_factory=ImportCounts)
    seen: Counter[str] = field(default_factory=Counter[str])
    """The number of entries of each type in the file so far, including omitted ones."""
    arrived: dict[Scope, ImportedIds] = field(default_factory=dict[Scope, ImportedIds])
    said: dict[Scope, dict[str, UUID]] = field(default_factory=dict[Scope, dict[str, UUID]])
    """The messages of each scope by their external IDs, as seen by this import."""
    rehearsed: dict[tuple[Scope, str], dict[str, UUID]] = field(
        default_factory=dict[tuple[Scope, str], dict[str, UUID]]
    )
    """The messages that a dry run would have appended to each conversation, so that nothing counts twice."""

    @property
    def ours(self) -> str:
        """Return the metadata key for data without a field here."""
        return self.wanted.format.value

    def place(self, owner: Owner) -> Scope:
        """Find the scope of an entry, and record a remark if its owner is missing or invalid."""
        scope, remarks = self.find_scope(owner), self.ledger.remarks
        named = self._name(owner)
        remarks[USER_NOT_NAMED] += self.wanted.user_by is not None and not named
        remarks[RENAMED] += bool(named) and scope.user != named
        return scope

    def find_scope(self, owner: Owner) -> Scope:
        """Find the scope of an entry."""
        named = self._name(owner)
        return Scope(self.caller.tenant_id, self.wanted.agent, to_user(named) if named else self.wanted.user)

    def _name(self, owner: Owner) -> str:
        return owner.get(self.wanted.user_by, "") if self.wanted.user_by is not None else ""

    async def find_arrived(self, scope: Scope) -> ImportedIds:
        """Read once which data of this system a scope has."""
        if scope not in self.arrived:
            self.arrived[scope] = await read_arrived((await self.parts.at(scope)).database, scope, self.ours)
        return self.arrived[scope]

    def report_counts(self) -> None:
        """Report progress."""
        for thing in THINGS:
            if self.seen[thing]:
                self.report(thing, self.ledger.passed(thing), self.seen[thing])
