"""The queries to mirrors in a recall, their answers, and the text about their lag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

UP_TO_DATE = 0.05
"""A lag below this number of seconds is not shown."""


@dataclass(frozen=True, slots=True)
class MirrorQuestion:
    """The query of a recall to a mirror, within one scope."""

    scope_id: int
    text: str
    vector: NDArray[np.float32] | None
    """In the embedding space of the mirror; None if the cue has no vector in it."""
    names: Sequence[str]
    """Possible names in the cue, normalized."""
    limit: int
    at: datetime
    """Search for facts that were true at this time, as they were believed at `as_of`."""
    as_of: datetime
    allowed: Sequence[UUID] | None = None
    """The IDs that the filter of the cue admits, by the record; None if it admits all."""


@dataclass(frozen=True, slots=True)
class MirrorHits:
    """The IDs that a mirror proposes, and its position in the log when it answered."""

    ids: Sequence[UUID]
    position: int


@dataclass(frozen=True, slots=True)
class MirrorLag:
    """The state of a mirror relative to the record, in one scope."""

    position: int | None
    """The newest acknowledged change of the scope; None if there is none."""
    change_number: int
    """The scope's newest change."""
    same_record: bool
    """Whether the record is still the one that the mirror was filled from."""
    behind_seconds: float | None
    """The age of the oldest missing change; None if none is missing, or if the log no longer has it."""

    def explain_unusable(self, most_seconds: float) -> str:
        """Return why the mirror cannot be used; empty if it can."""
        if not self.same_record:
            return "the mirror was filled from the record before a backup was restored, and is filled again"
        if self.position is None:
            return "the mirror does not hold this scope yet" if self.change_number else ""
        if self.position < self.change_number and self.behind_seconds is None:
            return "the log that the mirror would follow is gone, and it is filled again"
        if (self.behind_seconds or 0.0) > most_seconds:
            return f"the mirror is {format_duration(self.behind_seconds or 0.0)} behind"
        return ""

    def describe_lag(self) -> str:
        """Return how far behind the mirror is, as text."""
        behind = self.behind_seconds or 0.0
        return f"mirror, {format_duration(behind)} behind" if behind > UP_TO_DATE else "mirror"


def format_duration(seconds: float) -> str:
    """Format a duration in seconds."""
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def interleave(lists: Sequence[Sequence[UUID]], limit: int) -> list[UUID]:
    """Join lists without duplicates: first elements, then second elements, and so on."""
    longest = max(map(len, lists), default=0)
    joined = dict.fromkeys(each[place] for place in range(longest) for each in lists if place < len(each))
    return [*joined][:limit]
