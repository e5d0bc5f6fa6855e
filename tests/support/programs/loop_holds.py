"""Measure how long anything holds the event loop, in CPU time of its thread."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch


@dataclass
class Longest:
    """The longest hold so far, and what held."""

    seconds: float = 0.0
    what: str = ""

    def see(self, seconds: float, handle: asyncio.Handle) -> None:
        if seconds > self.seconds:
            self.seconds, self.what = seconds, repr(handle)


@contextmanager
def watch_loop() -> Iterator[Longest]:
    """Watch every step that an event loop takes in this process."""
    longest, run = Longest(), asyncio.Handle._run

    def run_measured(handle: asyncio.Handle) -> None:
        before = time.thread_time()
        run(handle)
        longest.see(time.thread_time() - before, handle)

    # As a server does at its start: the garbage collector is not to look through all that the tests have loaded.
    gc.collect()
    gc.freeze()
    try:
        with patch.object(asyncio.Handle, "_run", run_measured):
            yield longest
    finally:
        gc.unfreeze()
