"""Phrases that name a time, with what they mean, written down in three tables beside this file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from recollect.core.dates.find import find_periods

Spans = list[tuple[datetime, datetime]]
"""On the wall clock of whoever asks, and computed with as if in UTC."""
NOW = datetime(2024, 7, 10, 15, tzinfo=UTC)
ZONES = {"en": ZoneInfo("America/New_York"), "zh": ZoneInfo("Asia/Shanghai"), "traps": ZoneInfo("UTC")}


def read_phrases(name: str) -> list[tuple[str, Spans]]:
    """Read what was asked and what it means."""
    lines = Path(__file__).with_name(f"dates_{name}.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" | ") for line in lines if line and not line.startswith("#")]
    return [(text, [read_span(span) for span in meant[0].split(", ")] if meant else []) for text, *meant in pairs]


def read_span(written: str) -> tuple[datetime, datetime]:
    """Read a day, a month, a year, or a start and an end with a stroke between them."""
    start, _, end = written.partition("/")
    if end:
        return read_moment(start), read_moment(end)
    whole = read_moment(start)
    if len(start) == 10:
        return whole, whole + timedelta(days=1)
    later = whole + timedelta(days=31 if len(start) == 7 else 366)
    return whole, later.replace(day=1) if len(start) == 7 else later.replace(month=1, day=1)


def read_moment(written: str) -> datetime:
    """Read as much of a moment as is written."""
    return datetime.fromisoformat(written + "2000-01-01T00:00+00:00"[len(written) :])


def find(text: str, name: str, now: datetime = NOW) -> Spans:
    """Find the times that a text names when it is asked at a time of the wall clock."""
    zone = ZONES[name]
    periods = find_periods(text, now.replace(tzinfo=zone), zone)
    return [(on_wall(period.start, zone), on_wall(period.end, zone)) for period in periods]


def on_wall(moment: datetime, zone: ZoneInfo) -> datetime:
    """Read the clock on the wall."""
    return moment.astimezone(zone).replace(tzinfo=UTC)
