"""PgBouncer, or PostgreSQL behind it, dies and returns: no tenant sees another's, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import random
import signal

import pytest

from conftest import addresses_of
from support.callers.acknowledged import Load, calling, check_promises, traffic
from support.database.durable import DATABASE, connect, durable, service
from support.database.pooler import running_pooler
from support.measuring.sizes import Sizes
from support.programs.folders import find_memory, open_folder
from support.programs.waiting import until

KILLS = Sizes("kills", ci=2, long=100)
LOAD = Load(writers=4, readers=3)
TENANTS = ("apple", "pear")
SERVERS = 3


async def kill_pooler(pooler, ledger, draw):
    """Kill PgBouncer in the middle of transactions of both tenants, and let it return."""
    pooler.end(signal.SIGKILL)
    if draw.random() < 0.5:
        await ledger.hear(LOAD.writers, 503)
    await pooler.start()


async def kill_server(cluster, ledger, draw):
    """Kill PostgreSQL while PgBouncer holds its clients, and let it return."""
    await asyncio.to_thread(cluster.kill)
    if draw.random() < 0.5:
        await ledger.hear(LOAD.writers, 503)
    await asyncio.to_thread(cluster.start)


@pytest.mark.slow
@pytest.mark.promise(
    "Tenants stay apart and lose nothing while PgBouncer, or PostgreSQL behind it, is killed", KILLS, part="pooler"
)
async def test_tenants_stay_apart_while_the_pooler_or_its_server_is_killed(rounds, seed, figure):
    draw = random.Random(seed)
    with open_folder("killed", find_memory()) as folder:
        async with durable(folder / "server") as cluster:
            direct = addresses_of(cluster, DATABASE).service
            async with (
                running_pooler(direct, SERVERS) as pooler,
                service(cluster, through=pooler.address) as running,
                traffic(running, Load(LOAD.writers, LOAD.readers, seed), TENANTS) as ledger,
            ):
                for number in rounds(KILLS):
                    await ledger.go_on(draw.randint(5, 40))
                    await (kill_server(cluster, ledger, draw) if number % 2 else kill_pooler(pooler, ledger, draw))
                    await ledger.go_on(2 * LOAD.writers)
            with connect(cluster) as owner:
                check_promises(owner, ledger)
    figure(f"{ledger.shown} hits shown, {len(ledger.foreign)} foreign, {ledger.tell()}")
    assert ledger.shown


@pytest.mark.promise("The test of tenants behind a pooler notices what is shown to another one", part="pooler")
async def test_what_is_shown_to_another_tenant_is_found_out(http, figure):
    async with calling(dict.fromkeys(TENANTS, http), LOAD) as ledger:
        await until(lambda: ledger.foreign)
    figure(f"{len(ledger.foreign)} of {ledger.shown} hits foreign, as they must be")
