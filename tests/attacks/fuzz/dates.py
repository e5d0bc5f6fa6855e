"""Dates: whatever a text says, the periods that are found in it begin before they end, and are named by its words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from attacks.fuzz.edits import Choices, to_text
from recollect.core.dates import find
from support.memories.date_phrases import NOW, ZONES, read_phrases

WATCHED = "recollect.core.dates"
MOMENTS = (
    *(NOW, datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)),
    *(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC), datetime(2024, 2, 29, tzinfo=UTC)),
)
WHERE = (*ZONES.values(), ZoneInfo("Pacific/Apia"), ZoneInfo("America/St_Johns"), ZoneInfo("Pacific/Kiritimati"))


def list_seeds() -> Iterator[bytes]:
    for name in ZONES:
        yield from (b"\0\0\0\0" + text.encode() for text, _ in read_phrases(name))


def check(data: bytes) -> None:
    choices = Choices(data)
    now, zone = choices.one_of(MOMENTS), choices.one_of(WHERE)
    text = to_text(choices.rest())
    found = find.find_periods(text, now, zone)
    assert len(found) <= len(text)
    assert len({(period.start, period.end) for period in found}) == len(found)
    for period in found:
        assert period.start < period.end
        assert period.start.tzinfo is UTC
        assert period.end.tzinfo is UTC
        assert period.phrase
        assert period.phrase in text
    assert found == find.find_periods(text, now, zone)


def plant() -> None:
    """Let a day that no month has through."""
    find._try = lambda work: work()
