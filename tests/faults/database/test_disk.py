"""The disk of PostgreSQL is full, or fails: writes are refused, nothing acknowledged is lost, and all goes on."""

from __future__ import annotations

import asyncio
import contextlib
import random
from contextlib import ExitStack, asynccontextmanager

import psycopg
import pytest

from support.callers.acknowledged import Load, check_promises, traffic
from support.database.durable import connect, durable, move_log, service
from support.measuring.sizes import Sizes
from support.programs.disks import small_disk
from support.programs.folders import find_memory, open_folder
from support.programs.preload import OF_LOG, OF_TABLES, Preload
from support.programs.waiting import until

FILLINGS = Sizes("full disks", ci=1, long=30)
LOG_FILLINGS = Sizes("full log disks", ci=1, long=30)
FAILURES = Sizes("failed syncs", ci=2, long=60)
LOAD = Load(writers=6, readers=2)


@asynccontextmanager
async def on_small_disks(seed):
    """Run a service and its callers on a server whose data and log have small disks of their own."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder("disk", find_memory()))
        data = stack.enter_context(small_disk(folder / "data", 300))
        log = stack.enter_context(small_disk(folder / "log", 100))
        async with durable(data.place / "postgres") as cluster:
            await asyncio.to_thread(move_log, cluster, log.place)
            async with service(cluster) as running:
                async with traffic(running, Load(seed=seed)) as ledger:
                    yield cluster, data, log, ledger
                with connect(cluster) as owner:
                    check_promises(owner, ledger)


@pytest.mark.slow
@pytest.mark.promise("A full disk refuses writes with 503 and loses none; with room they go on", FILLINGS, part="disk")
async def test_a_full_disk_refuses_writes_until_there_is_room(rounds, seed, figure):
    draw = random.Random(seed)
    async with on_small_disks(seed) as (_, data, _, ledger):
        for _ in rounds(FILLINGS):
            await ledger.go_on(draw.randint(5, 40))
            data.fill()
            full = ledger.asked
            await ledger.hear(2 * LOAD.writers, 503, after=full)
            await ledger.hear(LOAD.readers, 200, after=full)
            data.free()
            await ledger.go_on(2 * LOAD.writers)
    figure(f"{ledger.tell()}, {dict(ledger.refusals)}")
    assert any("disk of the database is full" in said for said in ledger.refusals)


@pytest.mark.slow
@pytest.mark.promise("A full disk of the log costs PostgreSQL its life, but no write", LOG_FILLINGS, part="disk")
async def test_a_full_disk_of_the_log_loses_nothing(rounds, seed, figure):
    draw = random.Random(seed)
    async with on_small_disks(seed) as (cluster, _, log, ledger):
        for _ in rounds(LOG_FILLINGS):
            await ledger.go_on(draw.randint(5, 40))
            log.fill()
            full = ledger.asked
            await asyncio.to_thread(use_up, cluster)
            await ledger.hear(2 * LOAD.writers, 503, after=full)
            log.free()
            # Whoever runs a server starts it again when it has ended.
            await asyncio.to_thread(cluster.start)
            await ledger.go_on(2 * LOAD.writers)
        panics = count_panics(cluster)
    figure(f"{ledger.tell()}, {dict(ledger.refusals)}, {panics} panics")
    assert panics


@pytest.mark.slow
@pytest.mark.promise("A sync that fails costs PostgreSQL its life, but no write", FAILURES, part="disk")
async def test_a_failing_sync_loses_nothing(rounds, seed, figure):
    draw = random.Random(seed)
    with open_folder("sync", find_memory()) as folder:
        preload = Preload(folder, "postgres")
        async with failing(preload, folder) as cluster, service(cluster) as running:
            async with traffic(running, Load(seed=seed)) as ledger:
                for number in rounds(FAILURES):
                    await ledger.go_on(draw.randint(5, 40))
                    await fail_once(cluster, preload, OF_LOG if number % 2 else OF_TABLES)
                    await ledger.go_on(2 * LOAD.writers)
            with connect(cluster) as owner:
                check_promises(owner, ledger)
            panics = count_panics(cluster)
    figure(f"{preload.failed} syncs failed, {panics} panics, {ledger.tell()}")
    assert panics == preload.failed > 0


@asynccontextmanager
async def failing(preload, folder):
    """Run a server that has the library."""
    with preload.loaded():
        async with durable(folder / "server") as cluster:
            yield cluster


async def fail_once(cluster, preload, which):
    """Let one sync fail, and wait until the server has recovered by itself."""
    panics = count_panics(cluster)
    preload.fail(which)
    await asyncio.to_thread(sync, cluster)
    await until(lambda: count_panics(cluster) > panics)
    await until(cluster._server.answers)


def sync(cluster):
    """Let the server sync what it has written; it may not live to answer."""
    with contextlib.suppress(psycopg.OperationalError), connect(cluster) as owner:
        owner.execute("checkpoint")


def count_panics(cluster):
    return cluster._server.log.read_text().count("PANIC")


def use_up(cluster):
    """Write log until the server has no room for more."""
    with contextlib.suppress(psycopg.OperationalError), connect(cluster) as owner:
        while True:
            owner.execute("select pg_logical_emit_message(true, 'full', repeat('x', 1000000))")
