"""What a mirror is asked in a recall, what it may answer, and how its answer is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

UP_TO_DATE = 0.05
"""Less than so many seconds behind is not told."""


@dataclass(frozen=True, slots=True)
class MirrorQuestion:
    """What a recall asks of a mirror: all of one scope."""

    scope_id: int
    text: str
    vector: NDArray[np.float32] | None
    """In the embedding space that the mirror holds; None where the cue has none in it."""
    names: Sequence[str]
    """What may be a name in the cue, folded as names are."""
    limit: int
    at: datetime
    """What was true then is asked for, by what was believed as of the other moment."""
    as_of: datetime
    allowed: Sequence[UUID] | None = None
    """The ids that the filter of the cue admits, by the record; None where it admits all."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a mirror proposes: ids, and how far it had followed the log when it answered."""

    ids: Sequence[UUID]
    position: int


@dataclass(frozen=True, slots=True)
class MirrorStanding:
    """How a mirror stands to the record in one scope."""

    position: int | None
    """The newest change of the scope that it has acknowledged; None where it has none of the scope."""
    change_number: int
    """The scope's newest change."""
    same_record: bool
    """Whether the record is still the one that it was filled from."""
    behind_seconds: float | None
    """The age of the oldest change that it lacks; None where it lacks none, or where the log has that one no more."""

    def explain(self, most_seconds: float) -> str:
        """Say why the mirror cannot be asked; empty if it can."""
        if not self.same_record:
            return "the mirror was filled from the record before a backup was restored, and is filled again"
        if self.position is None:
            return "the mirror does not hold this scope yet" if self.change_number else ""
        if self.position < self.change_number and self.behind_seconds is None:
            return "the log that the mirror would follow is gone, and it is filled again"
        if (self.behind_seconds or 0.0) > most_seconds:
            return f"the mirror is {tell_seconds(self.behind_seconds or 0.0)} behind"
        return ""

    def tell(self) -> str:
        """Say how far behind the mirror is."""
        behind = self.behind_seconds or 0.0
        return f"mirror, {tell_seconds(behind)} behind" if behind > UP_TO_DATE else "mirror"


def tell_seconds(seconds: float) -> str:
    """Write a duration as people say it."""
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def take_turns(lists: Sequence[Sequence[UUID]], limit: int) -> list[UUID]:
    """Join lists from their heads, each id once: the first of each, then the second of each, and so on."""
    longest = max(map(len, lists), default=0)
    joined = dict.fromkeys(each[place] for place in range(longest) for each in lists if place < len(each))
    return [*joined][:limit]
