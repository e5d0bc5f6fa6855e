"""Topics and days that a chat model finds in a cue, validated and added to those found by rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from pydantic import Field, field_validator

from recollect.core.dates.periods import find_zone
from recollect.core.recall.cues import ParsedCue
from recollect.core.text.answers import AnswerSchema, counted
from recollect.core.topics.paths import encode, find_topics, parse_topic, show_topic
from recollect.models.recall import Cue, Period
from recollect.models.topics import Topic

TOPIC, DATE = "topic", "date"
MAX_MATCHES = 8
"""Maximum number of topics from one answer, and of days."""
MAX_LISTED = 200
DAY = timedelta(days=1)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Match(AnswerSchema):
    """A topic by its path, or a date as yyyy-MM-dd."""

    type: str = Field(json_schema_extra={"enum": [TOPIC, DATE]})
    text: str


class Matches(AnswerSchema):
    """The topics and dates that a cue asks about."""

    matches: list[Match] = counted(0, 2 * MAX_MATCHES)

    @field_validator("matches", mode="before")
    @classmethod
    def _drop_unusable(cls, given: Any) -> Any:  # noqa: ANN401 - parsed JSON
        """Drop unusable items, so that the other items stay valid."""
        return [each for each in given if _is_usable(each)] if isinstance(given, list) else given


def extend(reading: ParsedCue, cue: Cue, matches: Iterable[Match]) -> ParsedCue:
    """Add the findings of a model to those of the rules; values given by the caller are not extended."""
    found = list(matches)
    facets = reading.facets
    topics = [] if cue.topics else find_new_topics(facets.topics, _texts(found, TOPIC))
    days = find_days(_texts(found, DATE), find_zone(cue.zone)) if cue.since is None and cue.until is None else []
    known = {(period.start, period.end) for period in facets.periods}
    new_days = [day for day in days if (day.start, day.end) not in known][:MAX_MATCHES]
    return replace(
        reading, facets=replace(facets, topics=(*facets.topics, *topics), periods=(*facets.periods, *new_days))
    )


def find_new_topics(known: Iterable[str], texts: Iterable[str]) -> list[str]:
    """Return the valid paths that are not known yet."""
    there = {encode(parse_topic(path)) for path in known}
    return [show_topic(names) for names in find_topics(texts) if encode(names) not in there][:MAX_MATCHES]


def find_days(texts: Iterable[str], zone: tzinfo) -> list[Period]:
    """Parse days in the cue's time zone; invalid ones are left out."""
    found = dict.fromkeys(text.strip() for text in texts)
    return [day for day in (read_day(text, zone) for text in found) if day is not None]


def read_day(text: str, zone: tzinfo) -> Period | None:
    """Parse a day such as 2024-01-31, from midnight to midnight; None if it is invalid."""
    if not _DATE.fullmatch(text):
        return None
    try:
        day = date.fromisoformat(text)
        start, end = (datetime(each.year, each.month, each.day, tzinfo=zone) for each in (day, day + DAY))
        period = Period(start.astimezone(UTC), end.astimezone(UTC))
    except (ValueError, OverflowError):
        return None
    # If a zone moved across the date line, one day is missing.
    return period if period.start < period.end else None


def choose_shown(topics: Sequence[Topic], letters: int) -> list[str]:
    """Choose the paths for a prompt, those with most memories first; return them in tree order."""
    shown: set[str] = set()
    # A parent topic has at least as many memories as its children, so the stable sort keeps it first.
    for topic in sorted(topics, key=lambda topic: -(topic.memories + topic.below))[:MAX_LISTED]:
        letters -= len(topic.path)
        if letters < 0:
            break
        shown.add(topic.path)
    return [topic.path for topic in topics if topic.path in shown]


def describe_additions(before: ParsedCue, after: ParsedCue) -> str:
    """Return the number of findings beyond the rules, as text."""
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
