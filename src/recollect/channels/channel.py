"""What every channel has: a name, and a query that is sent at once and read later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from recollect.core.recall.columns import Candidates
from recollect.core.recall.cues import Reading
from recollect.models.recall import Tally
from recollect.store.database.pool import Connection
from recollect.store.service.scopes import Place


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a channel found and how: exactly, approximately, or skipped with the reason."""

    candidates: Candidates
    method: str
    tally: Tally | None = None
    lent: Mapping[str, Candidates] = field(default_factory=dict[str, Candidates])
    """Candidates in the unit of another channel, to be weighed as if they were that channel's own."""
    rarities: tuple[float, ...] = ()
    """How distinctive each term of the cue is, if the channel counted it."""
    unscored: bool = False
    """Whether ids alone are proposed: they are ranked by what the record knows of each."""

    @property
    def answered(self) -> bool:
        """Tell whether the channel could answer at all."""
        return not self.method.startswith(SKIPPED)


SKIPPED = "skipped: "
Answer: TypeAlias = Callable[[], Awaitable[Proposal]]
"""Reads the answer of a query, once all queries have been sent."""


class Channel(Protocol):
    """One way of recalling."""

    name: str

    async def ask(self, connection: Connection, place: Place, reading: Reading, limit: int) -> Answer:
        """Send the query; all channels' queries travel together, then each answer is read."""
        ...


def skipped(reason: str) -> Answer:
    """Return no candidates, and say why."""
    return nothing(SKIPPED + reason)


def nothing(method: str = "exact") -> Answer:
    """Return no candidates without a query: the scope has nothing of the kind."""

    async def read() -> Proposal:
        return Proposal(Candidates(), method)

    return read
