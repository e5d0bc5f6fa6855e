"""Dates in digits, for every language: 2024-03-05, 2024/3/5, 3/5/2024, 5.3.2024."""

from __future__ import annotations

import re

from recollect.core.dates.parts import DateExpression, DateMatch, Rule


def _year_first(seen: DateMatch) -> DateExpression:
    hour, minute = seen["hour"], seen["minute"]
    hours = None
    if hour:
        start = int(hour) + int(minute) / 60
        hours = (start, start + 1)
    year, month, day = int(seen["year"]), int(seen["month"]), int(seen["day"])
    return DateExpression(year=year, month=_month(month), day=day, hours=hours)


def _year_last(seen: DateMatch) -> DateExpression:
    first, second, year = int(seen["first"]), int(seen["second"]), int(seen["year"])
    # With slashes the month comes first, as in the USA; with dots the day, as in Europe.
    month, day = (first, second) if seen["sign"] == "/" else (second, first)
    if month > 12:
        month, day = day, month
    return DateExpression(year=year, month=_month(month), day=day)


def _year_month(seen: DateMatch) -> DateExpression:
    return DateExpression(year=int(seen["year"]), month=_month(int(seen["month"])))


def _month(month: int) -> int:
    if not 1 <= month <= 12:
        raise ValueError(month)
    return month


CLOCK = r"(?:[t ](?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?(?!\d))?"
NUMERIC: tuple[Rule, ...] = (
    (
        re.compile(
            r"(?<![\d./-])(?P<year>(?:19|20)\d\d)(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})(?!\d|[-/.]\d)"
            + CLOCK
        ),
        _year_first,
    ),
    (
        re.compile(
            r"(?<![\d./-])(?P<first>\d{1,2})(?P<sign>[/.])(?P<second>\d{1,2})(?P=sign)(?P<year>(?:19|20)\d\d)(?!\d)"
        ),
        _year_last,
    ),
    (re.compile(r"(?<![\d./-])(?P<year>(?:19|20)\d\d)[-/](?P<month>\d{1,2})(?!\d|[-/.:]\d)"), _year_month),
)
