"""A server is lost under load and its standby promoted: what was acknowledged is there, once, and the service goes on.

In some rounds commits that wait for the standby are cancelled first. PostgreSQL then reports them as done, with a
warning; the service must not.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from functools import partial

import pytest

from conftest import QUICK
from recollect.store.database.pool import CommitWatch
from recollect.store.embedded.cluster import Cluster
from support.database.standby import Pair, ask
from support.database.under_load import WRITERS, make_database, under_load
from support.measuring.sizes import Sizes
from support.programs.folders import find_memory, open_folder
from support.programs.waiting import until

FAILOVERS = Sizes("fail-overs", ci=1, long=15)
CANCELLED = Sizes("fail-overs after cancelled commits", ci=1, long=5)
WAITING = "from pg_stat_activity where wait_event = 'SyncRep'"


@asynccontextmanager
async def paired(seed, *, synchronous=True):
    """Run a server with its standby, under load."""
    with open_folder("failover", find_memory()) as folder, Cluster(folder / "one", settings=QUICK) as primary:
        await make_database(primary)
        pair = await asyncio.to_thread(Pair, primary, folder / "two", QUICK, synchronous=synchronous)
        try:
            async with under_load(pair, seed) as loaded:
                yield pair, loaded
        finally:
            await asyncio.to_thread(pair.stop)


async def cancel_commits(pair):
    """Cancel commits that wait for a standby which stands still, and those of the repetitions, too."""
    pair.freeze()
    count = 0
    for _ in range(2):
        await until(lambda: ask(pair.primary, f"select count(*) >= {WRITERS // 2} {WAITING}"))
        count += ask(pair.primary, f"select count(pg_cancel_backend(pid)) {WAITING}")
    return count


@pytest.mark.promise(
    "What was acknowledged is there once after a fail-over to a synchronous standby", FAILOVERS, part="failover"
)
async def test_nothing_acknowledged_is_lost_by_a_fail_over(figure, rounds, seed):
    chance = random.Random(seed)
    async with paired(seed) as (pair, loaded):
        for _ in rounds(FAILOVERS):
            await asyncio.to_thread(pair.repair)
            await loaded.told.hear(chance.randint(1, 40), 201)
            await loaded.lose(partial(pair.fail_over, restarted=chance.random() < 0.5))
    figure(loaded.describe())


@pytest.mark.promise(
    "A commit whose wait for the standby was cancelled is not acknowledged, and is there once after a fail-over",
    CANCELLED,
    part="failover",
)
async def test_no_cancelled_commit_is_acknowledged(figure, rounds, seed):
    chance, cancelled = random.Random(seed), 0
    async with paired(seed) as (pair, loaded):
        for _ in rounds(CANCELLED):
            await asyncio.to_thread(pair.repair)
            await loaded.told.hear(chance.randint(1, 40), 201)
            cancelled += await cancel_commits(pair)
            await loaded.lose(partial(pair.fail_over, restarted=True))
    figure(f"{cancelled} commits cancelled; {loaded.describe()}")
    assert cancelled >= WRITERS


@pytest.mark.promise("The test of a fail-over notices a standby that is not waited for", part="failover")
async def test_a_standby_that_is_not_waited_for_is_found_out(figure, seed):
    async with paired(seed, synchronous=False) as (pair, loaded):
        pair.freeze()
        await loaded.told.hear(2 * WRITERS, 201)
        await asyncio.to_thread(pair.fail_over, restarted=True)
        lost = loaded.find_losses()
        figure(f"{len(lost)} of {len(loaded.told.promised)} acknowledged memories lost, as they must be")
    assert lost


@pytest.mark.promise("The test of a fail-over notices a service that believes a cancelled commit", part="failover")
async def test_a_service_that_believes_a_cancelled_commit_is_found_out(figure, seed, monkeypatch):
    monkeypatch.setattr(CommitWatch, "notice", lambda watch, diagnostic: None)
    async with paired(seed) as (pair, loaded):
        await cancel_commits(pair)
        await asyncio.to_thread(pair.fail_over, restarted=True)
        lost = loaded.find_losses()
        figure(f"{len(lost)} of {len(loaded.told.promised)} acknowledged memories lost, as they must be")
    assert lost
