"""Sixty-four recallers of one scope at once: no error, no deadlock, and no access is lost or out of date."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import UTC, datetime
from statistics import median

import numpy as np

from recollect.llm.fake import FakeEmbedder
from recollect.models import Cue, NewMemory
from recollect.settings import Settings
from recollect.store.accesses import FOLD_AT
from recollect.wiring import connected

RECALLERS, MEMORIES, LIMIT = 64, 10_000, 30
SECONDS = float(os.environ.get("RECOLLECT_SECONDS", "6"))


class Ledger:
    """What the recallers were told: when each memory was last given to one of them, and how long they waited."""

    def __init__(self):
        self.given, self.seconds, self.errors, self.unrecorded = {}, [], [], 0

    def note(self, recollection, moment, seconds):
        self.seconds.append(seconds)
        self.unrecorded += len(recollection.hits) - len(recollection.accessed)
        for memory_id in recollection.accessed:
            self.given[memory_id] = max(moment, self.given.get(memory_id, moment))


async def recall_until(stop, mind, vectors, ledger):
    """Recall by one vector after the other."""
    for vector in vectors:
        if time.monotonic() > stop:
            return
        moment, started = datetime.now(UTC), time.monotonic()
        try:
            found = await mind.recall(Cue(embedding=vector, channels=("stream",), limit=LIMIT))
        except Exception as problem:
            ledger.errors.append(repr(problem))
        else:
            ledger.note(found, moment, time.monotonic() - started)


async def fold_until(stop, recollect):
    """Let a worker fold what the recallers leave behind."""
    while time.monotonic() < stop:
        await recollect.work(until_empty=True)
        await asyncio.sleep(0.1)


async def test_recallers_do_not_stand_in_each_others_way(addresses, owner):
    random = np.random.default_rng(11)
    settings = Settings(embedder="fake", pool_size=16, deadline_seconds=60)
    async with connected(settings, addresses, FakeEmbedder()) as recollect:
        mind = await recollect.mind("ada")
        vectors = random.standard_normal((MEMORIES, 64))
        levels = random.integers(1, 11, MEMORIES)
        await mind.load(
            [
                NewMemory(f"memory {number}", importance=float(level), embedding=vector)
                for number, (level, vector) in enumerate(zip(levels, vectors, strict=True))
            ]
        )
        owner.execute("vacuum analyze")
        ledger, stop = Ledger(), time.monotonic() + SECONDS
        cues = random.standard_normal((RECALLERS, 5_000, 64), dtype=np.float32)
        await asyncio.gather(
            fold_until(stop, recollect), *(recall_until(stop, mind, theirs, ledger) for theirs in cues)
        )
        late = [memory_id for memory_id, moment in ledger.given.items() if await is_older(mind, memory_id, moment)]
        await recollect.work(until_empty=True)
    deadlocks = owner.execute("select deadlocks from pg_stat_database where datname = current_database()").fetchone()
    waiting = owner.execute("select count(*) from access_log").fetchone()[0]
    wait = 1000 * median(ledger.seconds)
    print(f"{len(ledger.seconds)} recalls, median {wait:.0f} ms, {len(ledger.given)} memories touched")
    assert (ledger.errors, ledger.unrecorded, late, deadlocks) == ([], 0, [], (0,))
    assert len(ledger.seconds) > RECALLERS
    assert waiting < FOLD_AT


async def is_older(mind, memory_id, moment):
    """Tell whether a memory's last access lies before the moment it was given to somebody."""
    return (await mind.get(memory_id)).last_accessed_at < moment
