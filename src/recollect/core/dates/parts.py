"""The parts of dates in any language: numbers, units, date expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from recollect.core.dates.calendar import (
    DAY,
    WEEK,
    Span,
    Yearly,
    date_of,
    day_of,
    hours_of,
    latest,
    month_of,
    step,
    unit_of,
    week_of,
    year_of,
)

Change: TypeAlias = Callable[[Span], Span]
"""Changes the span of a date, for a word next to it."""
NEVER = re.compile("(?!)")
Modifier: TypeAlias = tuple[re.Pattern[str], Callable[[re.Match[str]], Change]]
End: TypeAlias = tuple[re.Pattern[str], str]
"""A pattern that leaves one side of a period open, and the side."""


@dataclass(frozen=True, slots=True)
class DateExpression:
    """A date in a text: complete, or with parts that must be filled in."""

    first: int = 0
    last: int = 0
    """The start and end of its words in the text."""
    span: Span | None = None
    """Its span, if it does not depend on other parts."""
    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    yearly: Yearly | None = None
    """A period that recurs every year, such as a season."""
    hours: tuple[float, float] | None = None
    loose: bool = False
    """Whether it counts only if the text has no other time: a weekday next to a date adds nothing."""
    exact: bool = False
    """Whether it is an exact duration from now, even if local clocks changed in between."""

    @property
    def bare(self) -> bool:
        """Return whether it has hours only, which mean nothing without a day."""
        return not (self.span or self.year or self.month or self.day or self.yearly) and self.weekday is None

    @property
    def yearless(self) -> bool:
        """Return whether a year would make it more exact."""
        return self.year is None and self.span is None and bool(self.month or self.yearly)


def modify(date: DateExpression, change: Change, now: datetime) -> DateExpression:
    """Change the span of a date; a date without a year stays so."""
    if date.span or not (date.month or date.yearly):
        return replace(date, span=change(resolve(date, now)), hours=None)

    def find_changed_span(year: int) -> Span:
        return change(resolve(replace(date, year=year), now))

    return replace(date, yearly=find_changed_span, month=None, day=None, hours=None)


def ago(now: datetime, unit: str, count: int) -> DateExpression:
    """Return the whole unit `count` units ago; smaller units can complete it."""
    then = step(now, unit, -count)
    if unit == "year":
        return DateExpression(year=then.year)
    if unit == "month":
        return DateExpression(year=then.year, month=then.month)
    return DateExpression(span=unit_of(then, unit))


def resolve(date: DateExpression, now: datetime) -> Span:
    """Return the span of a date; missing parts are filled in to give the latest that has begun."""
    span = date.span or _resolve_date(date, now)
    return hours_of(span, date.hours) if date.hours else span


def resolve_after(date: DateExpression, start: datetime, now: datetime) -> Span:
    """Return the span of a range's end; missing parts are filled in to give the first after the start."""
    if date.weekday is not None and date.span is None:
        return _with_hours(date, day_of(start + (date.weekday - start.weekday()) % 7 * DAY))
    if date.day and not date.month and date.span is None:
        months = start.year * 12 + start.month - 1 + (date.day < start.day)
        return resolve(replace(date, year=months // 12, month=months % 12 + 1), now)
    if date.yearless:
        spans = [resolve(replace(date, year=year), now) for year in (start.year, start.year + 1)]
        return spans[0] if spans[0][0] >= start else spans[1]
    return resolve(date, now)


def merge(left: DateExpression, right: DateExpression) -> DateExpression | None:
    """Join two neighbors that complete each other, such as a day and its year; None if they do not."""
    joined = _complete(left, right) or _complete(right, left)
    return replace(joined, first=left.first, last=right.last) if joined else None


def copy_missing_parts(giver: DateExpression, taker: DateExpression) -> DateExpression:
    """Copy parts that a neighbor in a list or range leaves out: "3 May to 7", "June and July 2023"."""
    if taker.span or giver.span:
        return taker
    if taker.day and not taker.month and giver.month and giver.day:
        taker = replace(taker, month=giver.month, year=taker.year or giver.year)
    if taker.yearless and giver.year and (giver.month or giver.yearly):
        taker = replace(taker, year=giver.year)
    return taker


def _complete(piece: DateExpression, whole: DateExpression) -> DateExpression | None:
    """Copy one part into another date that lacks it."""
    if piece.bare and piece.hours:
        return replace(whole, hours=piece.hours) if not whole.hours and _is_daily(whole) else None
    if piece.hours or whole.bare:
        return None
    if _is_year(piece) and whole.yearless:
        return replace(whole, year=piece.year)
    if piece.month and not piece.day and whole.day and not whole.month:
        return replace(whole, month=piece.month, year=piece.year)
    if piece.span and piece.span[1] - piece.span[0] == WEEK and whole.weekday is not None and not whole.span:
        return replace(whole, span=day_of(week_of(piece.span[0])[0] + whole.weekday * DAY))
    return None


def _is_daily(date: DateExpression) -> bool:
    if date.span:
        return date.span[1] - date.span[0] == DAY
    return date.day is not None or date.weekday is not None or date.yearly is not None


def _is_year(date: DateExpression) -> bool:
    return bool(date.year) and not (date.month or date.day or date.yearly or date.span)


def _with_hours(date: DateExpression, span: Span) -> Span:
    return hours_of(span, date.hours) if date.hours else span


def _resolve_date(date: DateExpression, now: datetime) -> Span:
    if date.weekday is not None and not date.day:
        return day_of(now - (now.weekday() - date.weekday) % 7 * DAY)
    if date.day and not date.month:
        return _latest_day(date.day, now)
    yearly = date.yearly or _yearly(date.month, date.day)
    if yearly is None:
        return year_of(date.year or now.year)
    return yearly(date.year) if date.year else latest(yearly, now)


def _yearly(month: int | None, day: int | None) -> Yearly | None:
    if month is None:
        return None
    if day is None:
        return lambda year: month_of(year, month)
    return lambda year: date_of(year, month, day)


def _latest_day(day: int, now: datetime) -> Span:
    """Return this day of the latest month in which it has begun."""
    for back in range(4):
        start, end = month_of(now.year, now.month - back)
        if start + (day - 1) * DAY < min(end, now):
            return day_of(start + (day - 1) * DAY)
    raise ValueError(day)


@dataclass(frozen=True, slots=True)
class DateMatch:
    """The match of a rule, and the time from which it is resolved."""

    match: re.Match[str]
    now: datetime

    def __getitem__(self, part: str) -> str:
        """Return a group of the match; empty if it is not there."""
        return (self.match[part] or "") if part in self.match.re.groupindex else ""


Make: TypeAlias = Callable[[DateMatch], DateExpression | list[DateExpression]]
Rule: TypeAlias = tuple[re.Pattern[str], Make]
"""A pattern and the function that makes dates; a date begins at the group `at`, if there is one."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The patterns for times in one language."""

    hint: re.Pattern[str]
    """Occurs in every text that mentions a time; excludes most other texts."""
    rules: tuple[Rule, ...]
    joins: re.Pattern[str]
    """Separates the pieces of one date."""
    ranges: re.Pattern[str]
    """Separates the beginning and the end of a range."""
    lists: re.Pattern[str]
    """Separates two dates of a list."""
    opening: re.Pattern[str]
    """Words before a range that belong to it."""
    pairing: tuple[re.Pattern[str], re.Pattern[str]]
    """Words before or after two dates that make them a range instead of a list."""
    before: tuple[Modifier, ...]
    after: tuple[Modifier, ...]
    ends_before: tuple[End, ...]
    """Words before a date that leave one side open."""
    ends_after: tuple[End, ...]
