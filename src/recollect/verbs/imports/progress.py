"""What every import counts and reports, and how it resumes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from recollect.core.imports.found import CONVERSATIONS, FACTS, MEMORIES, MESSAGES, Owner
from recollect.core.imports.text import RENAMED, to_user
from recollect.models.imports import FileImport
from recollect.models.service import Caller, Scope
from recollect.store.imports.progress import Arrived, read_arrived
from recollect.verbs.parts import Parts

SIDE_BY_SIDE = 4
Progress = Callable[[str, int, int], None]
"""Called with the name of a step, how far it is, and how far it goes."""
T = TypeVar("T")
MOST_AT_ONCE, MOST_CHARACTERS = 250, 250_000
"""How much is written at once: far below the limit of one call, to stay within its deadline."""
OWNERLESS = "entries without what --user-by names: they are --user's"
THINGS = (CONVERSATIONS, MESSAGES, MEMORIES, FACTS)


def keep_quiet(_step: str, _done: int, _total: int) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """What was done so far."""

    imported: Counter[str] = field(default_factory=Counter[str])
    known: Counter[str] = field(default_factory=Counter[str])
    skipped: Counter[str] = field(default_factory=Counter[str])
    remarks: Counter[str] = field(default_factory=Counter[str])

    def passed(self, thing: str) -> int:
        """Count what is done, imported or not."""
        return self.imported[thing] + self.known[thing] + self.skipped[thing]


async def side_by_side(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run some tasks at once, all of them to their end: while one is analysed, the database writes another."""
    ended = await asyncio.gather(*work, return_exceptions=True)
    for problem in ended:
        if problem is not None:
            raise problem


@dataclass(frozen=True, slots=True)
class ImportRun:
    """One import: its options, what was found so far, and what of it is done."""

    parts: Parts
    caller: Caller
    wanted: FileImport
    report: Progress
    ledger: ImportCounts = field(default_factory=ImportCounts)
    seen: Counter[str] = field(default_factory=Counter[str])
    """How many of each thing were in the file so far, including what is left out."""
    arrived: dict[Scope, Arrived] = field(default_factory=dict[Scope, Arrived])
    said: dict[Scope, dict[str, UUID]] = field(default_factory=dict[Scope, dict[str, UUID]])
    """The messages of each scope by their external ids, as far as this import has met them."""
    rehearsed: dict[tuple[Scope, str], dict[str, UUID]] = field(
        default_factory=dict[tuple[Scope, str], dict[str, UUID]]
    )
    """What a dry run would have appended to each conversation, so that nothing counts twice."""

    @property
    def ours(self) -> str:
        """Return the metadata key for what has no field here."""
        return self.wanted.format.value

    def place(self, owner: Owner) -> Scope:
        """Find the scope of an entry, and note if its owner is missing or invalid."""
        scope, remarks = self.find_scope(owner), self.ledger.remarks
        named = self._name(owner)
        remarks[OWNERLESS] += self.wanted.user_by is not None and not named
        remarks[RENAMED] += bool(named) and scope.user != named
        return scope

    def find_scope(self, owner: Owner) -> Scope:
        """Find the scope of an entry."""
        named = self._name(owner)
        return Scope(self.caller.tenant_id, self.wanted.agent, to_user(named) if named else self.wanted.user)

    def _name(self, owner: Owner) -> str:
        return owner.get(self.wanted.user_by, "") if self.wanted.user_by is not None else ""

    async def find_arrived(self, scope: Scope) -> Arrived:
        """Read what of this system a scope holds, once."""
        if scope not in self.arrived:
            self.arrived[scope] = await read_arrived((await self.parts.at(scope)).database, scope, self.ours)
        return self.arrived[scope]

    def show(self) -> None:
        """Report progress."""
        for thing in THINGS:
            if self.seen[thing]:
                self.report(thing, self.ledger.passed(thing), self.seen[thing])
