"""What the pool is told of a call or a job without being handed it: whether it has written, and its bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Commits:
    """Whether a call has committed anything yet."""

    any: bool = False


COMMITS: ContextVar[Commits | None] = ContextVar("commits", default=None)
BUCKET: ContextVar[int | None] = ContextVar("bucket", default=None)
"""The bucket of the job that runs; a job has the connections of its whole server."""


@contextmanager
def watching_commits() -> Iterator[Commits]:
    """Notice whether anything is committed meanwhile, by this task or one that it starts."""
    commits = Commits()
    before = COMMITS.set(commits)
    try:
        yield commits
    finally:
        COMMITS.reset(before)


@contextmanager
def working_in(bucket: int | None) -> Iterator[None]:
    """Refuse, for as long as a job runs, what its server does not serve of a bucket; None names no bucket."""
    before = BUCKET.set(bucket)
    try:
        yield
    finally:
        BUCKET.reset(before)
