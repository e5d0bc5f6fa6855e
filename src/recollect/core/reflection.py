"""Tell when enough has happened to an agent for it to reflect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DEFAULT_THRESHOLD = 150.0


@dataclass(frozen=True, slots=True)
class Unreflected:
    """The importance and the number of the events since the last reflection, and whether the next is due."""

    importance: float
    events: int
    due: bool = False


def gather(importance: float, events: int, added: Sequence[float], threshold: float | None = None) -> Unreflected:
    """Add the importance of one step's new events; once a reflection is due, counting begins anew."""
    limit = DEFAULT_THRESHOLD if threshold is None else threshold
    importance, events = importance + sum(added), events + len(added)
    if events > 0 and 0 < limit <= importance:
        return Unreflected(0.0, 0, due=True)
    return Unreflected(importance, events)
