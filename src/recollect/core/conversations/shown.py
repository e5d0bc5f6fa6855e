"""How what a conversation was shown fades: a score that time and newer blocks lower, and being reminded of raises."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from recollect.models.blocks import Level

FRESH = 100.0
FADE_PER_MINUTE = 8.0
DISPLACED = 18.0
"""What a newer block takes from all that was shown before it."""
REMINDED = 16.0
"""What it gives back to those that its cue reminds of again."""
REMINDED_WHEN_LESS = 0.6
"""So much of that for what is not shown in full any more."""
FULL_FROM, COMPACT_FROM = 70.0, 30.0


@dataclass(frozen=True, slots=True)
class Showing:
    """That a conversation was shown a memory: under which short id, and how present it was at a moment."""

    memory_id: UUID
    short_id: str
    score: float
    reckoned_at: datetime


def fade(showing: Showing, now: datetime) -> Showing:
    """Compute how present a memory is by now; a clock that goes back makes nothing more present."""
    minutes = max(0.0, (now - showing.reckoned_at).total_seconds() / 60)
    return replace(showing, score=showing.score - FADE_PER_MINUTE * minutes, reckoned_at=max(now, showing.reckoned_at))


def level_of(score: float) -> Level | None:
    """Say how much of a memory is still shown; None for what is gone."""
    if score <= 0:
        return None
    return Level.FULL if score >= FULL_FROM else Level.COMPACT if score >= COMPACT_FROM else Level.ABSTRACT


def displace(showing: Showing, now: datetime, *, reminded: bool) -> Showing:
    """Compute how present a memory is when the next block comes, whose cue may remind of it again."""
    faded = fade(showing, now)
    level = level_of(faded.score)
    if level is None:
        return faded
    gain = REMINDED * (1.0 if level is Level.FULL else REMINDED_WHEN_LESS) if reminded else 0.0
    return replace(faded, score=min(FRESH, faded.score - DISPLACED + gain))


def compute_present(showings: Iterable[Showing], now: datetime, reminded: Collection[UUID]) -> dict[UUID, Showing]:
    """Compute what is still present when the next block comes; what is gone may be shown anew."""
    reckoned = (displace(each, now, reminded=each.memory_id in reminded) for each in showings)
    return {each.memory_id: each for each in reckoned if each.score > 0}


def register(present: Mapping[UUID, Showing], shown: Iterable[tuple[UUID, str]], now: datetime) -> list[Showing]:
    """Say what is on record once a block is shown: what is new begins afresh, all else is as it was computed."""
    fresh = {each: Showing(each, short_id, FRESH, now) for each, short_id in shown if each not in present}
    return sorted((fresh | dict(present)).values(), key=lambda each: each.memory_id)
