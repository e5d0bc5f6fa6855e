"""What the pool and a call tell each other without being handed it: what was seen, what was written, a job's bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from recollect.core.service.positions import join_positions
from recollect.models.shards import Position


@dataclass(slots=True)
class Commits:
    """Whether a call has committed anything yet."""

    any: bool = False


@dataclass(slots=True)
class CallPositions:
    """What a caller outside of this process has seen before, and what comes of the call."""

    seen: Mapping[int, Position] = field(default_factory=dict[int, Position])
    """The newest position that it has seen of each server."""
    max_staleness: float | None = None
    """By how many seconds what it reads may be behind, where it has seen nothing; None is not at all."""
    written: dict[int, Position] = field(default_factory=dict[int, Position])
    """How far the servers' logs came by what it has written."""
    served_by: str = ""
    """Who has read for it, where there was a choice: the primary or a replica."""


CALL: ContextVar[CallPositions | None] = ContextVar("call", default=None)
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
def serving(call: CallPositions) -> Iterator[None]:
    """Serve a call of somebody outside of this process."""
    before = CALL.set(call)
    try:
        yield
    finally:
        CALL.reset(before)


def is_served() -> bool:
    """Tell whether a call of somebody outside of this process is served, which says what that has seen."""
    return CALL.get() is not None


def note_written(position: Position | None) -> None:
    """Tell the call, if there is one, how far a server's log came by its write."""
    call = CALL.get()
    if call is not None and position is not None:
        call.written = join_positions(call.written, [position])


@contextmanager
def working_in(bucket: int | None) -> Iterator[None]:
    """Refuse, for as long as a job runs, what its server does not serve of a bucket; None names no bucket."""
    before = BUCKET.set(bucket)
    try:
        yield
    finally:
        BUCKET.reset(before)
