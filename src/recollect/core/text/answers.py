"""Parse texts, numbers, times and lists from any JSON, and count unusable values."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from recollect.core.text.checks import EARLIEST, LATEST
from recollect.core.text.names import CONTROL
from recollect.models.knowledge import ValidTime

MAX_ITEMS_READ = 10_000
"""Maximum number of list items to read."""
LOOPING = 200
LOOP = re.compile(r"(.{2,120}?)\1{2,}", re.DOTALL)
"""Small models repeat themselves until they reach the maximum length."""
MAX_DATE_LENGTH = 40
PARTIAL_DATE = re.compile(r"(\d{4})(?:[-/.年](\d{1,2}))?(?:[-/.月](\d{1,2}))?[年月日号]?", re.ASCII)
NO_DATE = frozenset(
    {"", "-", "null", "none", "nil", "n/a", "unknown", "unspecified", "present", "now", "current", "ongoing"}
    | {"未知", "无", "不详", "至今", "现在", "目前"}
)
DIGITS = re.compile(r"\s*#?(\d{1,6})(?:\.0+)?\s*", re.ASCII)


class AnswerParser:
    """Parses single values, and counts dropped values by sort."""

    def __init__(self, zone: tzinfo = UTC) -> None:
        self.dropped: Counter[str] = Counter()
        self._zone = zone

    def drop(self, what: str, count: int = 1) -> None:
        """Count unusable values."""
        if count:
            self.dropped[what] += count

    def items(self, value: object, what: str) -> Iterator[object]:
        """Yield the items of a list; a single value counts as a list of one."""
        if isinstance(value, list | tuple):
            self.drop(what, max(len(value) - MAX_ITEMS_READ, 0))
            yield from value[:MAX_ITEMS_READ]
        elif isinstance(value, str | Mapping):
            yield value
        elif value is not None:
            self.drop(what)

    def text(self, value: object, longest: int, what: str) -> str:
        """Parse a text as one line that can be stored, without endless repetition and within a length."""
        if value is None:
            return ""
        if not isinstance(value, str):
            self.drop(what)
            return ""
        line = tidy(value[: 4 * longest], 2 * longest)
        if len(line) > LOOPING:
            shorter = LOOP.sub(r"\1", line)
            self.drop("repetitions", shorter != line)
            line = shorter
        if len(value) > 4 * longest or len(line) > longest:
            self.drop("ends of texts")
        return tidy(line, longest)

    def name(self, value: object, longest: int, what: str) -> str:
        """Parse a short text that contains a letter or digit; a longer text is not a name."""
        if isinstance(value, str) and len(value) <= 4 * longest:
            line = tidy(value, 4 * longest)
            if len(line) <= longest and any(map(str.isalnum, line)):
                return line
        self.drop(what)
        return ""

    def number(self, value: object, least: int, most: int, what: str) -> int | None:
        """Parse an integer within bounds, also from a text or a float."""
        found: int | None = None
        if isinstance(value, str):
            match = DIGITS.fullmatch(value[:MAX_DATE_LENGTH])
            found = int(match[1]) if match else None
        elif isinstance(value, float) and math.isfinite(value):
            found = round(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            found = value
        if found is not None and least <= found <= most:
            return found
        if value is not None:
            self.drop(what)
        return None

    def span(self, begins: object, ends: object) -> ValidTime:
        """Parse a valid time; an end that is not after the beginning is dropped."""
        start, end = self._moment(begins), self._moment(ends)
        if start is None or end is None or start < end:
            return ValidTime(start, end)
        if start == end and _is_day(begins) and _is_day(ends):
            return ValidTime(start, end + timedelta(days=1))
        self.drop("dates")
        return ValidTime(start)

    def _moment(self, value: object) -> datetime | None:
        if value is None or (isinstance(value, str) and value[:MAX_DATE_LENGTH].strip().casefold() in NO_DATE):
            return None
        moment = read_moment(value, self._zone) if isinstance(value, str) else None
        if moment is None:
            self.drop("dates")
        return moment


def read_moment(text: str, zone: tzinfo = UTC) -> datetime | None:
    """Parse a date or time; without an offset it is in the given zone. None if it is invalid."""
    written = text[: MAX_DATE_LENGTH + 1].strip()
    if len(written) > MAX_DATE_LENGTH:
        return None
    partial = PARTIAL_DATE.fullmatch(written)
    try:
        if partial:
            year, month, day = (int(part or 1) for part in partial.groups())
            moment = datetime(year, month, day, tzinfo=zone)
        else:
            moment = datetime.fromisoformat(written)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        # In the first and last years of the calendar, time zones lead to years outside it.
        return moment.astimezone(UTC) if EARLIEST.year < moment.year < LATEST.year else None
    except (ValueError, OverflowError):
        return None


def _is_day(value: object) -> bool:
    partial = PARTIAL_DATE.fullmatch(value.strip()) if isinstance(value, str) else None
    return partial is not None and partial[3] is not None


def counted(least: int, most: int) -> Any:  # noqa: ANN401 - what pydantic itself calls a field
    """Return a list field whose length is in the schema for the model, but is not enforced."""
    return Field(json_schema_extra={"minItems": least, "maxItems": most})


class AnswerSchema(BaseModel):
    """An answer of a model; its docstring is part of the schema in the prompt.

    The schema requires more than a usable answer needs.
    """

    model_config = ConfigDict(frozen=True, json_schema_extra={"additionalProperties": False})


def tidy(text: str, longest: int) -> str:
    """Convert a text to one line without characters that cannot be stored, cut at a maximum length."""
    line = " ".join(CONTROL.sub(" ", text).split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
