"""Periods of time: how near a moment is to one, and in which zone it is meant."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from math import log2
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from recollect.errors import InvalidInputError
from recollect.models.recall import Period

LONGEST_ZONE = 64
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
DAY = timedelta(days=1)
ECHO = 2 * DAY
"""A time is still spoken of for so long after it: what was said then counts in part."""
ECHO_SHARE = 0.5
MOST_PERIODS = 12
"""If there are more periods, the widest are left out: each is a search of its own."""


def find_zone(name: str) -> tzinfo:
    """Give the time zone of a name, or say that there is none."""
    if name == "UTC":
        return UTC
    try:
        if 0 < len(name) <= LONGEST_ZONE:
            return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        # It may be no name at all, a path, or the name of a folder of zones.
        pass
    raise InvalidInputError("zone must be the IANA name of a time zone, as in Europe/Berlin or Asia/Shanghai")


def rate(period: Period) -> float:
    """Rate a period by its width: 1 for a day or less, then 1 / (1 + log2 of its days): a week 0.26, a year 0.11."""
    return 1 / (1 + log2(max((period.end - period.start) / DAY, 1)))


def choose(periods: Iterable[Period]) -> list[Period]:
    """Choose the periods to look into, the narrowest first."""
    return sorted(periods, key=lambda period: period.end - period.start)[:MOST_PERIODS]


def to_microseconds(moment: datetime) -> int:
    """Write a moment as a whole number, counted from 1970."""
    return (moment - EPOCH) // MICROSECOND


def from_microseconds(number: int) -> datetime:
    """Read a moment."""
    return EPOCH + number * MICROSECOND


def find_within(moments: NDArray[np.int64], start: datetime, end: datetime) -> NDArray[np.bool_]:
    """Tell which moments lie between two, the second itself not."""
    return (moments >= to_microseconds(start)) & (moments < to_microseconds(end))


def rate_moments(periods: Iterable[Period], moments: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rate each moment by the narrowest period that it lies in, half as much soon after one; 0 if neither."""
    rated = np.zeros(len(moments))
    for period in periods:
        share = np.where(find_within(moments, period.start, period.end), 1.0, ECHO_SHARE)
        near = find_within(moments, period.start, period.end + ECHO)
        rated = np.maximum(rated, np.where(near, rate(period) * share, 0.0))
    return rated
