"""Serve at most N requests at a time; tenants take turns, and others are refused with a time to retry."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from recollect.doors.http.server.fair_queue import FairQueue, QueuedRequest, Requester

BURST_SECONDS = 1.0
"""How long a request waits for its turn if the queue is short-lived, as many clients may begin at the same time, or if
the process has time to spare, as it waits for the database itself."""
WAIT_SECONDS = 0.01
"""How long it waits under lasting load, when a longer queue would only make every answer late."""
BUSY_SHARE = 0.6
"""A process that works for a larger share of the time has none to spare: the machine serves the database as well."""
SHARE_SECONDS = 0.25
"""The time over which that share is measured."""
IDLE_SECONDS = 10.0
"""How long after the last refusal the load is over."""
MAX_DELAYED_REQUESTS = 1024
"""How many requests that come before their time are held back at once; each is a connection without a body."""
EARLY_SECONDS = 0.05
"""A retry that is early by at most this time is not too early."""
REFUSALS_BEFORE_BACKOFF = 2
"""A client that was refused more often in a row waits as in a burst."""
MAX_RETRY_AFTER_SECONDS = 8
"""The largest `Retry-After`."""
GRACE_SECONDS = 2.0
"""How long after its time the retry of a refused client is expected."""
KEEP_SECONDS = int(MAX_RETRY_AFTER_SECONDS + GRACE_SECONDS) + 1
"""A refused client is known by its connection, which must last until its retry."""
WINDOW_SECONDS = 2.0
"""The window over which the rate of answers is measured."""


@dataclass(frozen=True, slots=True)
class ExpectedRetry:
    """A refused request: how often in a row it was refused, and when its retry is due."""

    refusals: int
    due: float


class Capacity:
    """The requests that are served, that wait, and that are expected again. Tenants take turns.

    Within a tenant, retries go first: a client that just got an answer asks again at once, and would otherwise take
    every place before the clients that waited as asked. Retries are spread, so that no more come together than can be
    served; one that comes too early is delayed.
    """

    def __init__(self) -> None:
        self.held = 0
        self.turns = FairQueue()
        self._empty_at = self._refused_at = -math.inf
        self._worked, self._looked_at, self.share = 0.0, -math.inf, 0.0
        self._expected: dict[Hashable, ExpectedRetry] = {}
        self._due: list[float] = []
        self._answered, self._counted_at = 0.0, 0.0

    @property
    def active(self) -> int:
        """Return how many requests are served."""
        return self.turns.active

    def enter(
        self, requester: Requester, most: int, now: float, begin: Callable[[], None], patience: float = 0.0
    ) -> QueuedRequest | None:
        """Serve a request, which returns None, or let it wait; at least as long as its patience says."""
        self._drop_expired(now)
        refusals = self._take_retry(requester.connection)
        self.turns.note(requester.tenant, most, now)
        if not self.turns.lines:
            self._empty_at = now
        if self.turns.begin(requester.tenant, now):
            return None
        if not self.turns.has_room(requester.tenant):
            return QueuedRequest(requester, refusals, now, begin)
        usual = self._patience(refusals, now, soon=self.turns.is_near(requester.tenant))
        waiting = QueuedRequest(requester, refusals, now + max(patience, usual), begin)
        self.turns.enqueue_request(waiting)
        return waiting

    def time_left(self, requester: Requester, now: float) -> float:
        """Return the remaining seconds that a refused client was asked to wait; 0 if it is not too early."""
        expected = self._expected.get(requester.connection)
        left = expected.due - now if expected else 0.0
        return left if left > EARLY_SECONDS else 0.0

    def sample_cpu(self, worked: float, now: float) -> None:
        """Record how many seconds the process has worked until now."""
        if now - self._looked_at >= SHARE_SECONDS:
            self.share = (worked - self._worked) / (now - self._looked_at)
            self._worked, self._looked_at = worked, now
            self.turns.busy = self.share >= BUSY_SHARE

    def release(self, tenant: Hashable, now: float) -> None:
        """Record that a request of a tenant was answered; the next one begins."""
        self._answered = self._rate(now) * WINDOW_SECONDS + 1
        self._counted_at = now
        self.turns.release(tenant, now)

    def drop(self, waiting: QueuedRequest) -> None:
        """Remove a request from the queue."""
        self.turns.drop(waiting)

    def refuse(self, waiting: QueuedRequest, most: int, now: float) -> int:
        """Remove a request from the queue; return the seconds after which its client may retry."""
        self.drop(waiting)
        self._refused_at = now
        seconds = self._choose_second(most, now)
        self._expected[waiting.requester.connection] = ExpectedRetry(waiting.refusals + 1, now + seconds)
        insort(self._due, now + seconds)
        return seconds

    def _patience(self, refusals: int, now: float, *, soon: bool) -> float:
        """Return how long a request may wait now."""
        burst = now < self._empty_at + BURST_SECONDS and now > self._refused_at + IDLE_SECONDS
        if burst or soon or refusals > REFUSALS_BEFORE_BACKOFF or self.share < BUSY_SHARE:
            return BURST_SECONDS
        return WAIT_SECONDS * (1 + refusals)

    def _choose_second(self, most: int, now: float) -> int:
        """Return the first second at which few other retries are due, within the time that serving them takes."""
        span = most / max(self._rate(now), 2.0 * most) / 2
        best, fewest = 1, len(self._due) + 1
        for second in range(1, MAX_RETRY_AFTER_SECONDS + 1):
            at = now + second
            due = bisect_right(self._due, at + span) - bisect_left(self._due, at - span)
            if due < most // 2:
                return second
            if due < fewest:
                best, fewest = second, due
        return best

    def _take_retry(self, connection: Hashable) -> int:
        """Return how often in a row the request was refused before this retry; 0 if it is a new request."""
        expected = self._expected.pop(connection, None)
        if expected is None:
            return 0
        del self._due[bisect_left(self._due, expected.due)]
        return expected.refusals

    def _rate(self, now: float) -> float:
        """Return how many requests were answered in a second recently."""
        return self._answered * math.exp((self._counted_at - now) / WINDOW_SECONDS) / WINDOW_SECONDS

    def _drop_expired(self, now: float) -> None:
        """Forget retries that did not come in time."""
        if not self._due or self._due[0] + GRACE_SECONDS >= now:
            return
        self._due = [due for due in self._due if due + GRACE_SECONDS >= now]
        self._expected = {client: retry for client, retry in self._expected.items() if retry.due + GRACE_SECONDS >= now}
