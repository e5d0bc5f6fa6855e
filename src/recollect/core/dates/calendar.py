"""Calendar arithmetic for date phrases: half-open spans of wall-clock time without a zone."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Span: TypeAlias = tuple[datetime, datetime]
Yearly: TypeAlias = Callable[[int], Span]
"""A period that recurs every year: a month, a season, a holiday."""

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
FEW = 6
"""Maximum number that "a few" can mean."""
LEAP_GAP = 9
"""Maximum distance in years between two dates of February 29."""
FAR_YEARS = 100
"""Length of an open period: "before 2020" begins this long before its end."""


def midnight(moment: datetime) -> datetime:
    """Return the beginning of the day."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def day_of(moment: datetime, count: int = 1) -> Span:
    """Return the span of `count` days that begins with the day of a time."""
    start = midnight(moment)
    return start, start + count * DAY


def date_of(year: int, month: int, day: int, count: int = 1) -> Span:
    """Return the span of `count` days that begins with a date."""
    return day_of(datetime(year, month, day, tzinfo=UTC), count)


def week_of(moment: datetime, shift: int = 0) -> Span:
    """Return the week of a time, Monday to Sunday, shifted by `shift` weeks."""
    start = midnight(moment) - moment.weekday() * DAY + shift * WEEK
    return start, start + WEEK


def weekend_of(moment: datetime, shift: int = 0) -> Span:
    """Return the weekend of the week of a time, shifted by `shift` weeks."""
    start, end = week_of(moment, shift)
    return start + 5 * DAY, end


def month_of(year: int, month: int, count: int = 1) -> Span:
    """Return a month, or `count` months; a number outside 1..12 is a month of another year."""
    return _first_of(year, month), _first_of(year, month + count)


def year_of(year: int, count: int = 1) -> Span:
    """Return a year, or `count` years."""
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + count, 1, 1, tzinfo=UTC)


def add_months(moment: datetime, months: int) -> datetime:
    """Return the same day `months` later, or the last day of the month if it is too short."""
    years, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=years, month=month + 1, day=min(moment.day, monthrange(years, month + 1)[1]))


def weekday_in(year: int, month: int, weekday: int, place: int) -> Span:
    """Return the first, second, ... weekday of a month; -1 is the last."""
    if place < 0:
        end = month_of(year, month)[1]
        return day_of(end - ((end.weekday() - weekday - 1) % 7 + 1) * DAY)
    start = datetime(year, month, 1, tzinfo=UTC)
    return day_of(start + ((weekday - start.weekday()) % 7 + 7 * (place - 1)) * DAY)


def easter_of(year: int) -> Span:
    """Return Easter Sunday, by the algorithm of Meeus, Jones and Butcher, which has no exceptions."""
    century, rest = divmod(year, 100)
    moon = (19 * (year % 19) + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    week = (32 + 2 * (century % 4) + 2 * (rest // 4) - moon - rest % 4) % 7
    late = (year % 19 + 11 * moon + 22 * week) // 451
    month, day = divmod(moon + week - 7 * late + 114, 31)
    return date_of(year, month, day + 1)


def third_of(span: Span, place: int) -> Span:
    """Return the early (0), middle (1) or late (2) third of a span.

    Months are divided by tens of days, longer spans by months.
    """
    start, end = span
    days = (end - start) // DAY
    if days > 31:
        months = (end.year - start.year) * 12 + end.month - start.month
        cuts = [add_months(start, months * part // 3) for part in range(3)]
    elif days >= 28:
        cuts = [start, start + 10 * DAY, start + 20 * DAY]
    else:
        cuts = [start + (end - start) * part // 3 for part in range(3)]
    return (*cuts, end)[place], (*cuts, end)[place + 1]


def half_of(span: Span, place: int) -> Span:
    """Return the first (0) or second (1) half of a span."""
    start, end = span
    months = (end.year - start.year) * 12 + end.month - start.month
    middle = add_months(start, months // 2) if months > 1 else start + (end - start) // 2 // DAY * DAY
    return ((start, middle), (middle, end))[place]


def week_in(span: Span, place: int) -> Span:
    """Return the first (0), second (1), ... seven days of a span, or the last (-1)."""
    if place < 0:
        return span[1] - WEEK, span[1]
    return span[0] + place * WEEK, min(span[0] + (place + 1) * WEEK, span[1])


def hours_of(span: Span, hours: tuple[float, float]) -> Span:
    """Return hours of the day on which a span begins; hours above 24 are on the next day."""
    first, last = hours
    return span[0] + timedelta(hours=first), span[0] + timedelta(hours=last)


def unit_of(moment: datetime, unit: str, count: int = 1) -> Span:
    """Return the whole day, week, month or year of a time, or `count` of them from there."""
    if unit == "day":
        return day_of(moment, count)
    if unit == "week":
        start = week_of(moment)[0]
        return start, start + count * WEEK
    return month_of(moment.year, moment.month, count) if unit == "month" else year_of(moment.year, count)


def step(moment: datetime, unit: str, count: int) -> datetime:
    """Return a time `count` days, weeks, months or years later, or earlier if negative."""
    if unit in ("day", "week"):
        return moment + count * (DAY if unit == "day" else WEEK)
    return add_months(moment, count if unit == "month" else 12 * count)


def rolling(now: datetime, unit: str, count: int) -> Span:
    """Return the span from `count` units ago up to today, or from today to `count` units ahead."""
    today = day_of(now)
    return (today[0], step(today[1], unit, count)) if count > 0 else (step(today[0], unit, count), today[1])


def few_ago(now: datetime, unit: str) -> Span:
    """Return the span that "a few ago" can mean: from six units ago to two units ago."""
    return unit_of(step(now, unit, -FEW), unit)[0], unit_of(step(now, unit, -2), unit)[1]


def latest(yearly: Yearly, now: datetime, *, over: bool = False) -> Span:
    """Return the latest occurrence that has begun, or that is over."""
    spans = _spans(yearly, range(now.year + 1, now.year - LEAP_GAP, -1))
    return _first(span for span in spans if (span[1] <= now if over else span[0] <= now))


def next_occurrence(yearly: Yearly, now: datetime) -> Span:
    """Return the first occurrence that has not begun."""
    return _first(span for span in _spans(yearly, range(now.year - 1, now.year + LEAP_GAP)) if span[0] > now)


def current(yearly: Yearly, now: datetime) -> Span:
    """Return the occurrence of this year, or the one that began last year and is not over."""
    return _first(
        span for span in _spans(yearly, range(now.year - 1, now.year + 1)) if span[1] > now or span[0].year == now.year
    )


def open_at(span: Span, side: str, now: datetime) -> Span:
    """Return the span since, after, before, until or around a time.

    An open end is today; if the start is in the future, the end is FAR_YEARS later.
    """
    start, end = span
    if side in ("since", "after"):
        begin = start if side == "since" else end
        return begin, _open_end(begin, now)
    if side in ("before", "until"):
        finish = start if side == "before" else end
        return add_months(finish, -12 * FAR_YEARS), finish
    slack = max((end - start) // 2 // DAY * DAY, 3 * DAY)
    return start - slack, end + slack


def _spans(yearly: Yearly, years: Iterable[int]) -> Iterator[Span]:
    """Try the years in order: some have no February 29, or are not in the table of holidays."""
    for year in years:
        with suppress(ValueError, OverflowError):
            yield yearly(year)


def _first(spans: Iterator[Span]) -> Span:
    for span in spans:
        return span
    raise ValueError("no year has it")


def _open_end(start: datetime, now: datetime) -> datetime:
    end = day_of(now)[1]
    return end if end > start else add_months(start, 12 * FAR_YEARS)


def _first_of(year: int, month: int) -> datetime:
    return datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1, tzinfo=UTC)
