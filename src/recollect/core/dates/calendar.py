"""The calendar that phrases are computed with: spans of wall-clock time, half-open, without a zone."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Span: TypeAlias = tuple[datetime, datetime]
Yearly: TypeAlias = Callable[[int], Span]
"""What comes once in a year: a month, a season, a holiday."""

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
FEW = 6
"""As many as "a few" may be."""
LEAP_GAP = 9
"""Within so many years there is a 29th of February."""
FAR_YEARS = 100
"""How far an open end reaches: "before 2020" begins this long before its end."""


def midnight(moment: datetime) -> datetime:
    """Go back to the beginning of the day."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def day_of(moment: datetime, count: int = 1) -> Span:
    """Span the day of a moment, or so many days from there."""
    start = midnight(moment)
    return start, start + count * DAY


def date_of(year: int, month: int, day: int, count: int = 1) -> Span:
    """Span a date, or so many days from there."""
    return day_of(datetime(year, month, day, tzinfo=UTC), count)


def week_of(moment: datetime, shift: int = 0) -> Span:
    """Span the week of a moment, Monday to Sunday, or one so many weeks later."""
    start = midnight(moment) - moment.weekday() * DAY + shift * WEEK
    return start, start + WEEK


def weekend_of(moment: datetime, shift: int = 0) -> Span:
    """Span the weekend that ends the week of a moment, or one so many weeks later."""
    start, end = week_of(moment, shift)
    return start + 5 * DAY, end


def month_of(year: int, month: int, count: int = 1) -> Span:
    """Span a month, or several; the number may lie outside 1..12 and then counts on into other years."""
    return _first_of(year, month), _first_of(year, month + count)


def year_of(year: int, count: int = 1) -> Span:
    """Span a year, or several."""
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + count, 1, 1, tzinfo=UTC)


def add_months(moment: datetime, months: int) -> datetime:
    """Go the same day so many months on, or to the last day of a month that is too short."""
    years, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=years, month=month + 1, day=min(moment.day, monthrange(years, month + 1)[1]))


def weekday_in(year: int, month: int, weekday: int, place: int) -> Span:
    """Span the first, second, ... weekday of a month; the last for -1."""
    if place < 0:
        end = month_of(year, month)[1]
        return day_of(end - ((end.weekday() - weekday - 1) % 7 + 1) * DAY)
    start = datetime(year, month, 1, tzinfo=UTC)
    return day_of(start + ((weekday - start.weekday()) % 7 + 7 * (place - 1)) * DAY)


def easter_of(year: int) -> Span:
    """Span Easter Sunday by the rule of Gauss in the form that needs no exceptions (Meeus, Jones, Butcher)."""
    century, rest = divmod(year, 100)
    moon = (19 * (year % 19) + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    week = (32 + 2 * (century % 4) + 2 * (rest // 4) - moon - rest % 4) % 7
    late = (year % 19 + 11 * moon + 22 * week) // 451
    month, day = divmod(moon + week - 7 * late + 114, 31)
    return date_of(year, month, day + 1)


def third_of(span: Span, place: int) -> Span:
    """Span the early (0), middle (1) or late (2) part: of a month by tens of days, of longer times by months."""
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
    """Span the first (0) or second (1) half."""
    start, end = span
    months = (end.year - start.year) * 12 + end.month - start.month
    middle = add_months(start, months // 2) if months > 1 else start + (end - start) // 2 // DAY * DAY
    return ((start, middle), (middle, end))[place]


def week_in(span: Span, place: int) -> Span:
    """Span the first (0), second (1), ... seven days, or the last (-1)."""
    if place < 0:
        return span[1] - WEEK, span[1]
    return span[0] + place * WEEK, min(span[0] + (place + 1) * WEEK, span[1])


def hours_of(span: Span, hours: tuple[float, float]) -> Span:
    """Span some hours of the day on which a span begins; beyond 24 they lie in the next."""
    first, last = hours
    return span[0] + timedelta(hours=first), span[0] + timedelta(hours=last)


def unit_of(moment: datetime, unit: str, count: int = 1) -> Span:
    """Span the whole day, week, month or year that a moment lies in, or so many from there."""
    if unit == "day":
        return day_of(moment, count)
    if unit == "week":
        start = week_of(moment)[0]
        return start, start + count * WEEK
    return month_of(moment.year, moment.month, count) if unit == "month" else year_of(moment.year, count)


def step(moment: datetime, unit: str, count: int) -> datetime:
    """Go so many days, weeks, months or years on, or back."""
    if unit in ("day", "week"):
        return moment + count * (DAY if unit == "day" else WEEK)
    return add_months(moment, count if unit == "month" else 12 * count)


def rolling(now: datetime, unit: str, count: int) -> Span:
    """Span the days from so many units back up to today, or from today so many units on."""
    today = day_of(now)
    return (today[0], step(today[1], unit, count)) if count > 0 else (step(today[0], unit, count), today[1])


def few_ago(now: datetime, unit: str) -> Span:
    """Span what "a few ago" may mean: from six units back up to two."""
    return unit_of(step(now, unit, -FEW), unit)[0], unit_of(step(now, unit, -2), unit)[1]


def latest(yearly: Yearly, now: datetime, *, over: bool = False) -> Span:
    """Find the latest time that has begun, or that is over."""
    spans = _spans(yearly, range(now.year + 1, now.year - LEAP_GAP, -1))
    return _first(span for span in spans if (span[1] <= now if over else span[0] <= now))


def coming(yearly: Yearly, now: datetime) -> Span:
    """Find the first time that has not begun."""
    return _first(span for span in _spans(yearly, range(now.year - 1, now.year + LEAP_GAP)) if span[0] > now)


def current(yearly: Yearly, now: datetime) -> Span:
    """Find the time of this year, or the one that began in the last and is not over."""
    return _first(
        span for span in _spans(yearly, range(now.year - 1, now.year + 1)) if span[1] > now or span[0].year == now.year
    )


def open_at(span: Span, side: str, now: datetime) -> Span:
    """Span what lies since, after, before, until or around a time; what is open ends today, or far away."""
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
    """Try the years in turn: not every one has a 29th of February, or is known to the table of holidays."""
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
