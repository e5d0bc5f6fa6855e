"""The interface of channels: a name, and a query that is sent first and read later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from recollect.core.recall.columns import Candidates
from recollect.core.recall.cues import ParsedCue
from recollect.models.recall import ChannelStats
from recollect.store.database.pool import Connection
from recollect.store.service.scopes import ScopeHandle


@dataclass(frozen=True, slots=True)
class Proposal:
    """The result of a channel and its method: exact, approximate, or skipped with a reason."""

    candidates: Candidates
    method: str
    tally: ChannelStats | None = None
    lent: Mapping[str, Candidates] = field(default_factory=dict[str, Candidates])
    """Candidates in the unit of another channel, weighted like that channel's own."""
    rarities: tuple[float, ...] = ()
    """How distinctive each term of the cue is, if the channel computed it."""
    unscored: bool = False
    """Whether only IDs are proposed, which are ranked by their features."""

    @property
    def answered(self) -> bool:
        """Return whether the channel was not skipped."""
        return not self.method.startswith(SKIPPED)


SKIPPED = "skipped: "
Answer: TypeAlias = Callable[[], Awaitable[Proposal]]
"""Reads the result of a query, after all queries are sent."""


class Channel(Protocol):
    """One way of recalling."""

    name: str

    async def send_query(self, connection: Connection, place: ScopeHandle, reading: ParsedCue, limit: int) -> Answer:
        """Send the query; all channels send first, then the results are read."""
        ...


def skipped(reason: str) -> Answer:
    """Return no candidates, with the reason as the method."""
    return nothing(SKIPPED + reason)


def nothing(method: str = "exact") -> Answer:
    """Return no candidates without a query, because the scope has no matching data."""

    async def propose_nothing() -> Proposal:
        return Proposal(Candidates(), method)

    return propose_nothing
