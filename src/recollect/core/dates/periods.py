"""Periods of time: time zones, and how close a time is to a period."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from math import log2
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from recollect.errors import InvalidInputError
from recollect.models.recall import Period

MAX_ZONE_LENGTH = 64
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
DAY = timedelta(days=1)
ECHO = 2 * DAY
"""After a period, texts still refer to it: for this long, they count in part."""
ECHO_SHARE = 0.5
MAX_PERIODS = 12
"""Maximum number of periods; each needs a search. The widest are left out."""


def find_zone(name: str) -> tzinfo:
    """Return the time zone of a name, or raise an error if it is unknown."""
    if name == "UTC":
        return UTC
    try:
        if 0 < len(name) <= MAX_ZONE_LENGTH:
            return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        # The name may be unknown, a path, or a folder of zones.
        pass
    raise InvalidInputError("timezone must be an IANA name, for example Europe/Berlin or Asia/Shanghai")


def rate(period: Period) -> float:
    """Return the weight of a period: 1 up to a day, then 1 / (1 + log2 of its days).

    A week has 0.26, a year 0.11.
    """
    return 1 / (1 + log2(max((period.end - period.start) / DAY, 1)))


def choose_periods(periods: Iterable[Period]) -> list[Period]:
    """Choose the periods to search, the narrowest first."""
    return sorted(periods, key=lambda period: period.end - period.start)[:MAX_PERIODS]


def to_microseconds(moment: datetime) -> int:
    """Convert a time to microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND


def from_microseconds(number: int) -> datetime:
    """Convert microseconds since 1970 to a time."""
    return EPOCH + number * MICROSECOND


def find_within(moments: NDArray[np.int64], start: datetime, end: datetime) -> NDArray[np.bool_]:
    """Return which times are in the half-open range from start to end."""
    return (moments >= to_microseconds(start)) & (moments < to_microseconds(end))


def rate_moments(periods: Iterable[Period], moments: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rate each time by the narrowest period that contains it.

    Times shortly after a period get half of its weight, others 0.
    """
    rated = np.zeros(len(moments))
    for period in periods:
        share = np.where(find_within(moments, period.start, period.end), 1.0, ECHO_SHARE)
        near = find_within(moments, period.start, period.end + ECHO)
        rated = np.maximum(rated, np.where(near, rate(period) * share, 0.0))
    return rated
