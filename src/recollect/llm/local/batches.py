"""Run the items of concurrent callers in batches of similar items, one run at a time, fairly between callers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(slots=True)
class PendingItem(Generic[Item, Answer]):
    """One item that waits for its run."""

    item: Item
    answer: asyncio.Future[Answer]


class Batches(Generic[Item, Answer]):
    """Collects items during a run; an item that arrives when nothing runs starts a run immediately."""

    def __init__(
        self, run: Callable[[list[Item]], Awaitable[Sequence[Answer]]], alike: Callable[[Item], Hashable], most: int
    ) -> None:
        self._run, self._alike, self._most = run, alike, most
        self._waiting: dict[Hashable, list[tuple[int, int, PendingItem[Item, Answer]]]] = {}
        self._arrivals = count()
        # The turn of the last run: a caller's first item is due in the next turn, its second in the one after.
        self._turn = 0
        self._running: asyncio.Task[None] | None = None

    async def submit_items(self, items: Sequence[Item]) -> list[Answer]:
        """Return the answers to all items, in order; the items of a cancelled caller are not run."""
        loop = asyncio.get_running_loop()
        asked = [PendingItem[Item, Answer](item, loop.create_future()) for item in items]
        for place, each in enumerate(asked, 1):
            waiting = self._waiting.setdefault(self._alike(each.item), [])
            heappush(waiting, (self._turn + place, next(self._arrivals), each))
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run_all())
        try:
            return [await each.answer for each in asked]
        finally:
            for each in asked:
                # Retrieve the error, because asyncio logs errors that are never retrieved.
                if not each.answer.cancel() and not each.answer.cancelled():
                    each.answer.exception()

    async def _run_all(self) -> None:
        while batch := self._take():
            try:
                answers = await self._run([each.item for each in batch])
            except Exception as problem:  # The callers handle it.
                for each in batch:
                    if not each.answer.done():
                        each.answer.set_exception(problem)
                continue
            for each, answer in zip(batch, answers, strict=True):
                if not each.answer.done():
                    each.answer.set_result(answer)

    def _take(self) -> list[PendingItem[Item, Answer]]:
        """Return the next item and similar ones; drop items whose callers no longer wait."""
        while self._waiting:
            kind = min(self._waiting, key=lambda each: self._waiting[each][0][:2])
            waiting = self._waiting[kind]
            batch: list[PendingItem[Item, Answer]] = []
            self._turn = max(self._turn, waiting[0][0])
            while waiting and len(batch) < self._most:
                _, _, each = heappop(waiting)
                if not each.answer.done():
                    batch.append(each)
            if not waiting:
                del self._waiting[kind]
            if batch:
                return batch
        return []
