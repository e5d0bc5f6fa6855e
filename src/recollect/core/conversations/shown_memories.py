"""How the shown memories of a conversation fade.

Time and newer blocks lower their score; a cue that finds them again raises it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from recollect.models.blocks import DetailLevel

FULL_SCORE = 100.0
FADE_PER_MINUTE = 8.0
NEW_BLOCK_PENALTY = 18.0
"""The amount by which a newer block lowers the score of all memories shown before it."""
RECALL_BONUS = 16.0
"""The amount that it adds for memories that its cue finds again."""
PARTIAL_RECALL_BONUS = 0.6
"""The share of this amount for memories that are no longer shown in full."""
FULL_FROM, COMPACT_FROM = 70.0, 30.0


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """A memory shown in a conversation: its short ID, and its score at a given time."""

    memory_id: UUID
    short_id: str
    score: float
    computed_at: datetime


def fade(shown: ShownMemory, now: datetime) -> ShownMemory:
    """Compute the score at a time; a clock that was set back does not raise it."""
    minutes = max(0.0, (now - shown.computed_at).total_seconds() / 60)
    return replace(shown, score=shown.score - FADE_PER_MINUTE * minutes, computed_at=max(now, shown.computed_at))


def level_of(score: float) -> DetailLevel | None:
    """Return the level at which a memory is still visible; None if it is no longer visible."""
    if score <= 0:
        return None
    return (
        DetailLevel.FULL
        if score >= FULL_FROM
        else DetailLevel.COMPACT
        if score >= COMPACT_FROM
        else DetailLevel.ABSTRACT
    )


def decay_on_new_block(shown: ShownMemory, now: datetime, *, reminded: bool) -> ShownMemory:
    """Compute the score for the next block, whose cue may find the memory again."""
    faded = fade(shown, now)
    level = level_of(faded.score)
    if level is None:
        return faded
    gain = RECALL_BONUS * (1.0 if level is DetailLevel.FULL else PARTIAL_RECALL_BONUS) if reminded else 0.0
    return replace(faded, score=min(FULL_SCORE, faded.score - NEW_BLOCK_PENALTY + gain))


def still_visible(
    memories: Iterable[ShownMemory], now: datetime, reminded: Collection[UUID]
) -> dict[UUID, ShownMemory]:
    """Return the memories that are still visible at the next block; others may be shown again."""
    computed = (decay_on_new_block(each, now, reminded=each.memory_id in reminded) for each in memories)
    return {each.memory_id: each for each in computed if each.score > 0}


def register(
    present: Mapping[UUID, ShownMemory], shown: Iterable[tuple[UUID, str]], now: datetime
) -> list[ShownMemory]:
    """List the rows to store after a block: new memories start with the full score."""
    fresh = {each: ShownMemory(each, short_id, FULL_SCORE, now) for each, short_id in shown if each not in present}
    return sorted((fresh | dict(present)).values(), key=lambda each: each.memory_id)
