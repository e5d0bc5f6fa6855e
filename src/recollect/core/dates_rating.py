"""How much it says that something happened in a period: the narrower, the more."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from math import log2

from recollect.models.recall import Period

DAY = timedelta(days=1)
ECHO = 2 * DAY
"""So long after a time it is still talked of: what was said then counts for something, too."""
ECHO_SHARE = 0.5
MOST_PERIODS = 12
"""Of more periods than these, the widest are left out: each is a search of its own."""


def rate(period: Period) -> float:
    """Rate a period by its width: 1 for a day or less, then 1 / (1 + log2 of its days): a week 0.26, a year 0.11."""
    return 1 / (1 + log2(max((period.end - period.start) / DAY, 1)))


def choose(periods: Iterable[Period]) -> list[Period]:
    """Choose the periods to look into, the narrowest first."""
    return sorted(periods, key=lambda period: period.end - period.start)[:MOST_PERIODS]


def rate_moment(periods: Iterable[Period], moment: datetime) -> float:
    """Rate a moment by the narrowest period that it lies in, half as much soon after one; 0 if neither."""
    return max((rate(period) * _fit(period, moment) for period in periods), default=0.0)


def _fit(period: Period, moment: datetime) -> float:
    if not period.start <= moment < period.end + ECHO:
        return 0.0
    return 1.0 if moment < period.end else ECHO_SHARE
