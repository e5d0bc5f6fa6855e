"""Share transactions between writes of one scope that wait in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

MAX_WRITES, MAX_MEMORIES = 32, 256
"""Maximum numbers of writes and memories in one transaction: other writers of the scope wait for all of it."""


class Shareable(Protocol):
    """A write that can share a transaction with others."""

    @property
    def key(self) -> str:
        """Return its idempotency key."""
        ...

    @property
    def size(self) -> int:
        """Return the number of memories to store."""
        ...


Item = TypeVar("Item", bound=Shareable)
Outcome = TypeVar("Outcome")


@dataclass(slots=True)
class WaitingWrite(Generic[Item, Outcome]):
    """A write that waits for the previous one."""

    item: Item
    outcome: asyncio.Future[Outcome]


class SharedWrites(Generic[Item, Outcome]):
    """Run one transaction of a scope at a time; writes that arrive during it form the next one.

    A write locks its scope, so they would only wait for each other in the database.
    """

    def __init__(self) -> None:
        # A scope has an entry while one of its writes runs.
        self._waiting: dict[Hashable, list[WaitingWrite[Item, Outcome]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(
        self, scope: Hashable, item: Item, write: Callable[[Sequence[Item]], Awaitable[Sequence[Outcome | Exception]]]
    ) -> Outcome:
        """Write at once, or together with others when the previous write has ended; each has a separate outcome."""
        waiting = self._waiting.get(scope)
        if waiting is not None:
            return await self._join(waiting, item)
        self._waiting[scope] = []
        try:
            [outcome] = await write([item])
        finally:
            if self._waiting[scope]:
                task = asyncio.create_task(self._write_waiting(scope, write))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                del self._waiting[scope]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _join(self, waiting: list[WaitingWrite[Item, Outcome]], item: Item) -> Outcome:
        """Wait for the outcome; a write that is cancelled before its turn has written nothing."""
        each = WaitingWrite[Item, Outcome](item, asyncio.get_running_loop().create_future())
        waiting.append(each)
        return await each.outcome

    async def _write_waiting(
        self, scope: Hashable, write: Callable[[Sequence[Item]], Awaitable[Sequence[Outcome | Exception]]]
    ) -> None:
        """Write the waiting items until none is left."""
        try:
            while group := next_batch(self._waiting[scope]):
                try:
                    outcomes = await write([each.item for each in group])
                except Exception as problem:  # Each caller handles it.
                    outcomes = [problem] * len(group)
                for each, outcome in zip(group, outcomes, strict=True):
                    if each.outcome.done():
                        continue
                    if isinstance(outcome, Exception):
                        each.outcome.set_exception(outcome)
                    else:
                        each.outcome.set_result(outcome)
        finally:
            for each in self._waiting.pop(scope):
                each.outcome.cancel()


def next_batch(waiting: list[WaitingWrite[Item, Outcome]]) -> list[WaitingWrite[Item, Outcome]]:
    """Remove and return the next writes that fit into one transaction; of equal keys only the first."""
    group: list[WaitingWrite[Item, Outcome]] = []
    keys: set[str] = set()
    left: list[WaitingWrite[Item, Outcome]] = []
    size = 0
    for each in waiting:
        if each.outcome.done():
            continue
        fits = not group or (len(group) < MAX_WRITES and size + each.item.size <= MAX_MEMORIES)
        # Once one is left behind, so are those after it: the order of arrival is kept.
        if left or not fits or (each.item.key and each.item.key in keys):
            left.append(each)
            continue
        group.append(each)
        keys.add(each.item.key)
        size += each.item.size
    waiting[:] = left
    return group
