"""Sixty-four recallers of one scope at once: no error, no deadlock, and no access is lost or out of date."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import numpy as np
import pytest

from recollect.llm.fake import FakeEmbedder
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue
from recollect.store.memories.accesses import FOLD_AT
from recollect.wiring import connected
from support.measuring.sizes import Sizes
from support.service.made_settings import make_settings

RECALLERS, LIMIT = 64, 30
RECALLS = Sizes("recalls by each of 64", ci=4, long=100)
MEMORIES = Sizes("memories", ci=1_000, long=10_000)


class Ledger:
    """What the recallers were told: when each memory was last given to one of them."""

    def __init__(self):
        self.given, self.recalls, self.errors, self.unrecorded = {}, 0, [], 0

    def note(self, recollection, moment):
        self.recalls += 1
        self.unrecorded += len(recollection.hits) - len(recollection.accessed)
        for memory_id in recollection.accessed:
            self.given[memory_id] = max(moment, self.given.get(memory_id, moment))


async def recall(mind, vectors, ledger):
    """Recall by one vector after the other."""
    for vector in vectors:
        moment = datetime.now(UTC)
        try:
            found = await mind.recall(Cue(embedding=vector, channels=("stream",), limit=LIMIT))
        except Exception as problem:
            ledger.errors.append(repr(problem))
        else:
            ledger.note(found, moment)


@asynccontextmanager
async def folding(recollect):
    """Let a worker fold what the recallers leave behind, for as long as they recall."""
    over = asyncio.Event()

    async def fold():
        while not over.is_set():
            await recollect.work(until_empty=True)
            await asyncio.sleep(0.1)

    async with asyncio.TaskGroup() as group:
        group.create_task(fold())
        yield
        over.set()


@pytest.mark.promise("Recallers of one scope never fail each other, and no access is lost", RECALLS, MEMORIES)
async def test_recallers_do_not_stand_in_each_others_way(addresses, owner, figure):
    random = np.random.default_rng(11)
    settings = make_settings(embedder="fake", pool_size=16, postgres__max_requests=64, request_timeout_seconds=60)
    async with connected(settings, addresses, FakeEmbedder()) as recollect:
        mind = await recollect.mind("ada")
        vectors = random.standard_normal((MEMORIES.now, 64))
        levels = random.integers(1, 11, MEMORIES.now)
        await mind.load(
            [
                NewMemory(f"memory {number}", importance=float(level), embedding=vector)
                for number, (level, vector) in enumerate(zip(levels, vectors, strict=True))
            ]
        )
        owner.execute("vacuum analyze")
        ledger = Ledger()
        cues = random.standard_normal((RECALLERS, RECALLS.now, 64), dtype=np.float32)
        async with folding(recollect):
            await asyncio.gather(*(recall(mind, theirs, ledger) for theirs in cues))
        late = [memory_id for memory_id, moment in ledger.given.items() if await is_older(mind, memory_id, moment)]
        await recollect.work(until_empty=True)
    deadlocks = owner.execute("select deadlocks from pg_stat_database where datname = current_database()").fetchone()
    waiting = owner.execute("select count(*) from access_log").fetchone()[0]
    figure(f"{ledger.recalls} recalls, {len(ledger.given)} memories touched, {deadlocks[0]} deadlocks")
    assert (ledger.errors, ledger.unrecorded, late, deadlocks) == ([], 0, [], (0,))
    assert ledger.recalls == RECALLERS * RECALLS.now
    assert waiting < FOLD_AT


async def is_older(mind, memory_id, moment):
    """Tell whether a memory's last access lies before the moment it was given to somebody."""
    return (await mind.get(memory_id)).last_accessed_at < moment
