"""Which request is served next: tenants take turns, and while several ask, none has more than half of the places."""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from itertools import chain

MAX_WAITING_REQUESTS = 256
"""How many requests of a tenant wait at most, divided by the number of tenants that wait."""
ASKING_SECONDS = 1.0
"""How long after its last request a tenant still counts as one that asks."""


@dataclass(frozen=True, slots=True)
class Requester:
    """The sender of a request: its connection and key, and its tenant, if its key is known."""

    connection: Hashable
    tenant: Hashable = None


@dataclass(frozen=True, slots=True, eq=False)
class QueuedRequest:
    """A request that waits: how often it was refused before, until when it waits, and what to call at its turn."""

    requester: Requester
    refusals: int
    until: float
    begin: Callable[[], None]


class FairQueue:
    """The requests that are served and those that wait, by tenant.

    The next one is of the tenant of which the fewest are served. A tenant that has asked lately finds a place: others
    leave half of them free. What a process does for one takes time from the others it does: so one that has no time to
    spare serves as many requests of a tenant as of the others, which takes nothing from how many it answers in all.
    """

    def __init__(self) -> None:
        self.active = 0
        self.busy = False
        """Whether the process has no time to spare: then more requests of one tenant only make others late."""
        self.lines: dict[Hashable, list[QueuedRequest]] = {}
        """Waiting requests by tenant, the most often refused first; the tenant served last comes last."""
        self._most = 0
        self._served: Counter[Hashable] = Counter()
        self._asked: dict[Hashable, float] = {}

    @property
    def waiting(self) -> Iterator[QueuedRequest]:
        """List the requests that wait."""
        return chain.from_iterable(self.lines.values())

    def note(self, tenant: Hashable, most: int, now: float) -> None:
        """Record that a tenant asks, the latest last, and forget idle tenants; `most` are served at a time."""
        self._most = most
        self._asked.pop(tenant, None)
        self._asked[tenant] = now
        while self._asked[first := next(iter(self._asked))] < now - ASKING_SECONDS:
            del self._asked[first]

    def begin(self, tenant: Hashable, now: float) -> bool:
        """Serve a request of a tenant at once, if none of the tenant's requests waits and there is a place."""
        free = tenant not in self.lines and self._has_place(tenant, now)
        if free:
            self._serve(tenant)
        return free

    def has_room(self, tenant: Hashable) -> bool:
        """Return whether another request of a tenant may wait."""
        line = self.lines.get(tenant, [])
        return len(line) < MAX_WAITING_REQUESTS // (len(self.lines) + (not line))

    def is_near(self, tenant: Hashable) -> bool:
        """Return whether a tenant without waiting requests gets a turn within one round: others are the load."""
        tenants = len(self.lines) + 1
        return tenant not in self.lines and tenants <= self._most and self._served[tenant] * tenants < self._most

    def enqueue_request(self, waiting: QueuedRequest) -> None:
        """Add a request to the queue."""
        insort(self.lines.setdefault(waiting.requester.tenant, []), waiting, key=lambda each: -each.refusals)

    def drop(self, waiting: QueuedRequest) -> None:
        """Remove a request from the queue."""
        line = self.lines.get(waiting.requester.tenant, [])
        if waiting in line:
            line.remove(waiting)
            if not line:
                del self.lines[waiting.requester.tenant]

    def release(self, tenant: Hashable, now: float) -> None:
        """Record that a request of a tenant was answered; those begin for which there is a place now."""
        self.active -= 1
        self._served[tenant] -= 1
        if not self._served[tenant]:
            del self._served[tenant]
        while able := [each for each in self.lines if self._has_place(each, now)]:
            chosen = min(able, key=self._served.__getitem__)
            line = self.lines.pop(chosen)
            waiting = line.pop(0)
            if line:
                self.lines[chosen] = line  # At the end: of tenants with as many, another one is next.
            self._serve(chosen)
            waiting.begin()

    def _has_place(self, tenant: Hashable, now: float) -> bool:
        if self.active >= self._most:
            return False
        return self._served[tenant] < (self._share(tenant) if self._is_shared(tenant, now) else self._most)

    def _is_shared(self, tenant: Hashable, now: float) -> bool:
        """Return whether another tenant is served, waits, or has asked lately."""
        if self.active > self._served[tenant] or len(self.lines) > (tenant in self.lines):
            return True
        others = next((at for each, at in reversed(self._asked.items()) if each != tenant), -math.inf)
        return others > now - ASKING_SECONDS

    def _share(self, tenant: Hashable) -> int:
        """Return how many places a tenant may have: half of them, or as many as another asks for in a busy process."""
        half = max(1, self._most // 2)
        if not self.busy:
            return half
        others = {*self._served, *self.lines} - {tenant}
        return min(half, max((self._served[each] + len(self.lines.get(each, ())) for each in others), default=1))

    def _serve(self, tenant: Hashable) -> None:
        self.active += 1
        self._served[tenant] += 1
