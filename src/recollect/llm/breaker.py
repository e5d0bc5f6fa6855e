"""When to stop asking an endpoint that keeps failing, and when to try it again; pure in time."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Whether calls pass (closed), are refused (open), or one may probe (half-open)."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Open after some failures in a row, refuse for a while, then let a single call probe."""

    def __init__(self, failures: int = 5, seconds: float = 10.0) -> None:
        self._limit = failures
        self._seconds = seconds
        self._failed = 0
        self._opened_at: float | None = None
        self._probing = False

    def state(self, now: float) -> State:
        """Return what a call at this moment would meet."""
        if self._opened_at is None:
            return State.CLOSED
        return State.OPEN if self.wait(now) > 0 else State.HALF_OPEN

    def wait(self, now: float) -> float:
        """Return the seconds until the next probe is allowed; 0 when calls may pass."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._opened_at + self._seconds - now)

    def admit(self, now: float) -> bool:
        """Say whether a call may go out; in the half-open state only one, until it is settled."""
        state = self.state(now)
        if state is State.HALF_OPEN and not self._probing:
            self._probing = True
            return True
        return state is State.CLOSED

    def succeed(self) -> None:
        """Note that the endpoint answered."""
        self._failed = 0
        self._opened_at = None
        self._probing = False

    def fail(self, now: float) -> None:
        """Note that the endpoint did not answer; a failed probe opens at once."""
        self._failed += 1
        # A late failure of a call from before the outage must not push the next probe further away.
        if self.state(now) is State.HALF_OPEN or (self._opened_at is None and self._failed >= self._limit):
            self._opened_at = now
        self._probing = False

    def release(self) -> None:
        """Note that an admitted call ended without a verdict, so that another may probe."""
        self._probing = False
