"""What every channel is: a name, and a question that is sent at once and read later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from recollect.core.recall.cues import Reading
from recollect.models.recall import Candidate, Tally
from recollect.store.database.pool import Connection
from recollect.store.service.scopes import Place


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a channel found and how: exact, approximate, or skipped with the reason."""

    candidates: list[Candidate]
    method: str
    tally: Tally | None = None
    lent: Mapping[str, list[Candidate]] = field(default_factory=dict[str, list[Candidate]])
    """Candidates in the unit of another channel, to be weighed as if they were that channel's own."""
    rarities: tuple[float, ...] = ()
    """How distinctive each term of the cue is, where the channel counted."""

    @property
    def answered(self) -> bool:
        """Tell whether the channel could look at all."""
        return not self.method.startswith(SKIPPED)


SKIPPED = "skipped: "
Answer: TypeAlias = Callable[[], Awaitable[Proposal]]
"""Reads what a question led to, once all questions have been sent."""


class Channel(Protocol):
    """One way of recalling."""

    name: str

    async def ask(self, connection: Connection, place: Place, reading: Reading, limit: int) -> Answer:
        """Send the question; all channels' questions travel together, then each answer is read."""
        ...


def skipped(reason: str) -> Answer:
    """Propose nothing, and say why."""

    async def read() -> Proposal:
        return Proposal([], SKIPPED + reason)

    return read
