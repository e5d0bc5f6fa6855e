"""Context that the pool shares with a call without parameters: its commits, a job's bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Commits:
    """Whether a call has committed a transaction."""

    any: bool = False


COMMITS: ContextVar[Commits | None] = ContextVar("commits", default=None)
BUCKET: ContextVar[int | None] = ContextVar("bucket", default=None)
"""The bucket of the running job; a job has the connections of its whole server."""


@contextmanager
def track_commits() -> Iterator[Commits]:
    """Track commits made during the block, by this task or a task that it starts."""
    commits = Commits()
    before = COMMITS.set(commits)
    try:
        yield commits
    finally:
        COMMITS.reset(before)


@contextmanager
def restrict_bucket(bucket: int | None) -> Iterator[None]:
    """Restrict a job to its bucket, as far as its server serves it; None means no bucket."""
    before = BUCKET.set(bucket)
    try:
        yield
    finally:
        BUCKET.reset(before)
