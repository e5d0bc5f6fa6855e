"""How memories that a conversation was shown fade: time and newer blocks lower their score, a fitting cue raises it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from recollect.models.blocks import Level

FRESH = 100.0
FADE_PER_MINUTE = 8.0
DISPLACED = 18.0
"""What a newer block takes from the score of all that was shown before it."""
REMINDED = 16.0
"""What it gives back to memories that its cue finds again."""
REMINDED_WHEN_LESS = 0.6
"""The share of it for memories that are no longer shown in full."""
FULL_FROM, COMPACT_FROM = 70.0, 30.0


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """A memory that a conversation was shown: its short id, and its score as computed at a moment."""

    memory_id: UUID
    short_id: str
    score: float
    computed_at: datetime


def fade(shown: ShownMemory, now: datetime) -> ShownMemory:
    """Compute the score by now; a clock that goes back raises none."""
    minutes = max(0.0, (now - shown.computed_at).total_seconds() / 60)
    return replace(shown, score=shown.score - FADE_PER_MINUTE * minutes, computed_at=max(now, shown.computed_at))


def level_of(score: float) -> Level | None:
    """Say how much of a memory is still shown; None for what is gone."""
    if score <= 0:
        return None
    return Level.FULL if score >= FULL_FROM else Level.COMPACT if score >= COMPACT_FROM else Level.ABSTRACT


def displace(shown: ShownMemory, now: datetime, *, reminded: bool) -> ShownMemory:
    """Compute the score when the next block comes, whose cue may find the memory again."""
    faded = fade(shown, now)
    level = level_of(faded.score)
    if level is None:
        return faded
    gain = REMINDED * (1.0 if level is Level.FULL else REMINDED_WHEN_LESS) if reminded else 0.0
    return replace(faded, score=min(FRESH, faded.score - DISPLACED + gain))


def compute_present(
    memories: Iterable[ShownMemory], now: datetime, reminded: Collection[UUID]
) -> dict[UUID, ShownMemory]:
    """Compute what is still present when the next block comes; what is gone may be shown again."""
    computed = (displace(each, now, reminded=each.memory_id in reminded) for each in memories)
    return {each.memory_id: each for each in computed if each.score > 0}


def register(
    present: Mapping[UUID, ShownMemory], shown: Iterable[tuple[UUID, str]], now: datetime
) -> list[ShownMemory]:
    """List what to store once a block is shown: what is new starts with the full score, the rest is as computed."""
    fresh = {each: ShownMemory(each, short_id, FRESH, now) for each, short_id in shown if each not in present}
    return sorted((fresh | dict(present)).values(), key=lambda each: each.memory_id)
