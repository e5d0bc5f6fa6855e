"""Count what keys and tenants ask of this process, and say how long one that asks too much has to wait."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recollect.models.service import CountedLimits, Limits

MAX_BUCKETS = 10_000
MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate per second, and the maximum at once."""

    per_second: float
    at_once: float


@dataclass(slots=True)
class Bucket:
    """The rest of a rate: it fills with time, and may be below zero after a large body."""

    left: float
    filled_at: float

    def fill(self, rate: Rate, now: float) -> None:
        """Add the refill since the last time."""
        self.left = min(rate.at_once, self.left + (now - self.filled_at) * rate.per_second)
        self.filled_at = now


def request_rate(limits: Limits) -> Rate | None:
    """Return the rate of requests, if it is limited."""
    if limits.requests_per_second is None:
        return None
    return Rate(limits.requests_per_second, limits.burst or math.ceil(limits.requests_per_second))


def byte_rate(limits: Limits) -> Rate | None:
    """Return the rate of bytes, if it is limited."""
    return None if limits.bytes_per_minute is None else Rate(limits.bytes_per_minute / MINUTE, limits.bytes_per_minute)


class Limiter:
    """The rest of the limits of keys and tenants, and until when each of them was asked to wait.

    A request is admitted while there is room for it under every limit that counts it. The size of a body is known only
    when it has arrived: it is admitted while anything is left, and an excess has to refill first.
    """

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()
        self._told: dict[str, float] = {}
        self._streams: Counter[str] = Counter()

    def admit(self, counted: Sequence[CountedLimits], now: float) -> float:
        """Count a request and return 0, or return the seconds after which there is room for it."""
        wait = 0.0
        for _, bucket, rate in self._requests(counted, now):
            wait = max(wait, (1.0 - bucket.left) / rate.per_second)
        for each in counted:
            if bytes_rate := byte_rate(each.limits):
                wait = max(wait, -self._bucket(each, "bytes", bytes_rate, now).left / bytes_rate.per_second)
        if wait <= 0:
            for _, bucket, _ in self._requests(counted, now):
                bucket.left -= 1.0
        return max(wait, 0.0)

    def charge(self, counted: Sequence[CountedLimits], size: int, now: float) -> None:
        """Count the bytes of a body."""
        for each in counted:
            if rate := byte_rate(each.limits):
                self._bucket(each, "bytes", rate, now).left -= size

    def record_wait(self, counted: Sequence[CountedLimits], seconds: int, now: float) -> None:
        """Record until when the keys and tenants were asked to wait."""
        self._told = {name: until for name, until in self._told.items() if until > now}
        self._told |= {each.name: now + seconds for each in counted}

    def time_left(self, counted: Sequence[CountedLimits], now: float) -> float:
        """Return the remaining seconds that a key or tenant was asked to wait; 0 if none was."""
        return max(0.0, *(self._told.get(each.name, now) - now for each in counted))

    def open_stream(self, counted: Sequence[CountedLimits]) -> bool:
        """Count a stream of changes, unless as many as may be are open."""
        for each in counted:
            most = each.limits.change_streams
            if most is not None and self._streams[each.name] >= most:
                return False
        self._streams.update(each.name for each in counted)
        return True

    def close_stream(self, counted: Sequence[CountedLimits]) -> None:
        """Count a stream of changes no longer."""
        self._streams.subtract(each.name for each in counted)
        self._streams = +self._streams

    def _requests(self, counted: Sequence[CountedLimits], now: float) -> Iterator[tuple[CountedLimits, Bucket, Rate]]:
        for each in counted:
            if rate := request_rate(each.limits):
                yield each, self._bucket(each, "requests", rate, now), rate

    def _bucket(self, counted: CountedLimits, what: str, rate: Rate, now: float) -> Bucket:
        bucket = self._buckets.get((counted.name, what))
        if bucket is None:
            bucket = self._buckets[counted.name, what] = Bucket(rate.at_once, now)
            if len(self._buckets) > MAX_BUCKETS:
                self._buckets.popitem(last=False)
        bucket.fill(rate, now)
        return bucket


def largest_body(counted: Sequence[CountedLimits]) -> int | None:
    """Return the size that a body may have by all limits, if there is one."""
    return min((each.limits.largest_body for each in counted if each.limits.largest_body is not None), default=None)
