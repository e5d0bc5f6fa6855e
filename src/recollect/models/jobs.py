"""The nouns of what happens later."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands; a failed one stays in quarantine until somebody has it tried again."""

    WAITING = "waiting"
    RUNNING = "running"
    FAILED = "failed"
    SUCCEEDED = "succeeded"


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work that was put off."""

    id: int
    task: str
    agent: str
    user: str
    state: JobState
    attempts: int
    """How often it was tried and did not succeed."""
    reason: str
    """Why it failed the last time, if it did."""
    deferred_at: datetime
    scheduled_at: datetime | None
    """When it is tried again, if that is not at once."""
    started_at: datetime | None
    lag_seconds: float | None
    """For how long it has been waiting."""
    done: int | None
    """How far it is, if it takes more than a moment."""
    total: int | None


@dataclass(frozen=True, slots=True)
class Jobs:
    """One page of jobs, the newest first, and where the next one begins."""

    jobs: tuple[Job, ...]
    next_cursor: int | None
