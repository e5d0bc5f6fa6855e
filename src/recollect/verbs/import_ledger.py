"""What every import counts and reports, and how it goes on with several conversations at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

SIDE_BY_SIDE = 4
Progress = Callable[[str, int, int], None]
"""Told the name of a step, how far it is, and how far it goes."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What was done so far."""

    imported: Counter[str] = field(default_factory=Counter[str])
    known: Counter[str] = field(default_factory=Counter[str])
    skipped: Counter[str] = field(default_factory=Counter[str])
    remarks: Counter[str] = field(default_factory=Counter[str])

    def passed(self, thing: str) -> int:
        """Count what is done with, one way or another."""
        return self.imported[thing] + self.known[thing] + self.skipped[thing]


async def side_by_side(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do some things at once, all of them to their end: while one is analysed, the database writes another."""
    ended = await asyncio.gather(*work, return_exceptions=True)
    for problem in ended:
        if problem is not None:
            raise problem
