"""Topics and days that a chat model finds in a cue, checked and added to those that rules find."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from pydantic import Field, field_validator

from recollect.core.dates.periods import find_zone
from recollect.core.recall.cues import Reading
from recollect.core.text.answers import AnswerSchema, counted
from recollect.core.topics.paths import encode, find_topics, parse_topic, show_topic
from recollect.models.recall import Cue, Period
from recollect.models.topics import Topic

TOPIC, DATE = "topic", "date"
MOST_FOUND = 8
"""At most so many topics are taken from one answer, and so many days."""
MOST_SHOWN = 200
DAY = timedelta(days=1)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Match(AnswerSchema):
    """A topic by its path, or a date as yyyy-MM-dd."""

    type: str = Field(json_schema_extra={"enum": [TOPIC, DATE]})
    text: str


class Matches(AnswerSchema):
    """What a cue asks about."""

    matches: list[Match] = counted(0, 2 * MOST_FOUND)

    @field_validator("matches", mode="before")
    @classmethod
    def _leave_out(cls, given: Any) -> Any:  # noqa: ANN401 - parsed JSON
        """Drop items that cannot be used, so that they do not spoil the others."""
        return [each for each in given if _is_usable(each)] if isinstance(given, list) else given


def extend(reading: Reading, cue: Cue, matches: Iterable[Match]) -> Reading:
    """Add what a model found to what rules found, each once; what the caller named is not widened."""
    found = list(matches)
    facets = reading.facets
    topics = [] if cue.topics else find_new_topics(facets.topics, _texts(found, TOPIC))
    days = find_days(_texts(found, DATE), find_zone(cue.zone)) if cue.since is None and cue.until is None else []
    known = {(period.start, period.end) for period in facets.periods}
    new_days = [day for day in days if (day.start, day.end) not in known][:MOST_FOUND]
    return replace(
        reading, facets=replace(facets, topics=(*facets.topics, *topics), periods=(*facets.periods, *new_days))
    )


def find_new_topics(known: Iterable[str], texts: Iterable[str]) -> list[str]:
    """Return the valid paths, without those that are known."""
    there = {encode(parse_topic(path)) for path in known}
    return [show_topic(names) for names in find_topics(texts) if encode(names) not in there][:MOST_FOUND]


def find_days(texts: Iterable[str], zone: tzinfo) -> list[Period]:
    """Read days in the asker's time zone; invalid ones are left out."""
    found = dict.fromkeys(text.strip() for text in texts)
    return [day for day in (read_day(text, zone) for text in found) if day is not None]


def read_day(text: str, zone: tzinfo) -> Period | None:
    """Read a day written as yyyy-MM-dd, from its midnight to the next one; None if it is none."""
    if not _DATE.fullmatch(text):
        return None
    try:
        day = date.fromisoformat(text)
        start, end = (datetime(each.year, each.month, each.day, tzinfo=zone) for each in (day, day + DAY))
        period = Period(start.astimezone(UTC), end.astimezone(UTC))
    except (ValueError, OverflowError):
        return None
    # Where a zone has moved over the date line, a day is missing.
    return period if period.start < period.end else None


def choose_shown(topics: Sequence[Topic], letters: int) -> list[str]:
    """Choose the paths that a model is shown, those with most memories first, in the order of the tree."""
    shown: set[str] = set()
    # What is above a topic has at least as many: the sort keeps it before.
    for topic in sorted(topics, key=lambda topic: -(topic.memories + topic.below))[:MOST_SHOWN]:
        letters -= len(topic.path)
        if letters < 0:
            break
        shown.add(topic.path)
    return [topic.path for topic in topics if topic.path in shown]


def describe(before: Reading, after: Reading) -> str:
    """Say how much was found beyond the rules."""
    topics = len(after.facets.topics) - len(before.facets.topics)
    days = len(after.facets.periods) - len(before.facets.periods)
    counts = [_count(number, noun) for number, noun in ((topics, "topic"), (days, "day")) if number]
    return ", ".join(counts) or "nothing beyond the rules"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _texts(matches: Iterable[Match], kind: str) -> list[str]:
    return [match.text for match in matches if match.type.strip().casefold() == kind and match.text.strip()]


def _is_usable(item: Any) -> bool:  # noqa: ANN401 - parsed JSON
    if isinstance(item, dict):
        return isinstance(item.get("type"), str) and isinstance(item.get("text"), str)
    return isinstance(item, Match)
