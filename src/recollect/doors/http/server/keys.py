"""Remember which keys were accepted or refused lately, and bound the work for clients without an accepted key."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Generic, TypeVar

from recollect.doors.http.auth import DOOR
from recollect.errors import UnauthenticatedError
from recollect.mind.service import Recollect
from recollect.models.service import Caller

ACCEPTED_SECONDS, REFUSED_SECONDS, MAX_KEYS = 60.0, 10.0, 10_000
CHECKS = 2
"""How many unknown keys the database checks at the same time."""
PAUSE_FACTOR, MIN_PAUSE, MAX_PAUSE, MAX_UNCOPIED_PAUSE = 4.0, 0.005, 0.02, 0.5
"""A slot stays empty after a request for this many times the request's duration, in seconds at least and at most."""
Value = TypeVar("Value")


class RecentKeys(Generic[Value]):
    """A value for each key for some seconds, by the key's hash; the oldest entry is dropped if there are too many."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._values: dict[bytes, tuple[float, Value | None]] = {}

    def store_value(self, secret: str, value: Value | None) -> None:
        """Store the value of a key, as the newest; None removes it."""
        name = hashlib.sha256(secret.encode()).digest()
        self._values.pop(name, None)
        self._values[name] = (monotonic() + self._seconds, value)
        if len(self._values) > MAX_KEYS:
            del self._values[next(iter(self._values))]

    def find_value(self, secret: str) -> Value | None:
        """Return the value of a key, unless it is too old."""
        until, value = self._values.get(hashlib.sha256(secret.encode()).digest(), (0.0, None))
        return value if until > monotonic() else None


class Slots:
    """A fixed number of requests at the same time, first come, first served, with a pause after each of them.

    The pause grows with the duration of the request, one step of the event loop included. So a busy process spends the
    same small share of its time on these requests as an idle one.
    """

    def __init__(self, count: int = 1, max_pause: float = MAX_PAUSE) -> None:
        self._free, self._max_pause = asyncio.Semaphore(count), max_pause

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Wait for a free slot, and hold it during the block."""
        await self._free.acquire()
        began = monotonic()
        try:
            await asyncio.sleep(0)
            yield
        finally:
            pause = min(max(MIN_PAUSE, PAUSE_FACTOR * (monotonic() - began)), self._max_pause)
            asyncio.get_running_loop().call_later(pause, self._free.release)


class KeyChecks:
    """The keys of the last requests, and the slots for requests without an accepted key."""

    def __init__(self) -> None:
        self.accepted, self.refused = RecentKeys[Caller](ACCEPTED_SECONDS), RecentKeys[str](REFUSED_SECONDS)
        """Owners of keys that the database has accepted, which it still checks for every request; and refusals."""
        self.checks, self.refusals = Slots(CHECKS, max_pause=3 * MAX_PAUSE), Slots()
        self.public, self.health, self.uncopied = Slots(), Slots(), Slots(max_pause=MAX_UNCOPIED_PAUSE)
        """Slots for requests that need no key: copies, the port of health and metrics, and the rest."""

    async def check(self, recollect: Recollect, secret: str) -> Caller:
        """Return the owner of a key; ask the database if it was neither accepted nor refused lately."""
        if caller := self._find(recollect, secret):
            return caller
        async with self.checks.take():
            if caller := self._find(recollect, secret):  # another request has shown it in the meantime
                return caller
            try:
                caller = await recollect.authenticate(secret, DOOR, bound=True)
            except UnauthenticatedError as problem:
                self.refused.store_value(secret, str(problem))
                raise
        self.accepted.store_value(secret, caller)
        return caller

    def _find(self, recollect: Recollect, secret: str) -> Caller | None:
        caller, reason = self.accepted.find_value(secret), self.refused.find_value(secret)
        if caller is None:
            recollect.check_format(secret)
            if reason:
                raise UnauthenticatedError(reason)
        return caller
