"""The power fails in the middle of writes: what was acknowledged is on the disk, and every page of it is sound."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from support.callers.acknowledged import Load, check_pages, check_promises, find_losses, traffic
from support.database.durable import connect, durable, leave, service
from support.measuring.sizes import Sizes
from support.programs.disks import power_disk
from support.programs.folders import find_memory, open_folder

CUTS = Sizes("power cuts", ci=2, long=60)
FORGETFUL = Sizes("power cuts", ci=1, long=5)


async def cut(disk, cluster):
    """Cut the power of disk and server, and switch both on again; say how long the server took."""
    await asyncio.to_thread(disk.cut)
    await asyncio.to_thread(cluster.kill)
    leave(cluster)
    await asyncio.to_thread(disk.unmount)
    await asyncio.to_thread(disk.mount)
    began = time.monotonic()
    await asyncio.to_thread(cluster.start)
    return time.monotonic() - began


async def lose_power(disk, cluster, ledger, draw):
    """Lose the power at some moment of many writes, and see that nothing else is lost."""
    await ledger.go_on(draw.randint(5, 50))
    if draw.random() < 0.3:
        with connect(cluster) as owner:
            owner.execute("checkpoint")
    await asyncio.to_thread(disk.write_some, draw)
    promised = dict(ledger.promised)
    seconds = await cut(disk, cluster)
    with connect(cluster) as owner:
        assert await asyncio.to_thread(find_losses, owner, promised) == []
        await asyncio.to_thread(check_pages, owner)
    return seconds


@pytest.mark.slow
@pytest.mark.promise("What was acknowledged is there, once and on sound pages, after a power cut", CUTS, part="power")
async def test_nothing_acknowledged_is_lost_when_the_power_fails(rounds, seed, figure):
    draw = random.Random(seed)
    with open_folder("power", find_memory()) as folder, power_disk(folder) as disk:
        async with durable(disk.place / "postgres") as cluster, service(cluster) as running:
            async with traffic(running, Load(seed=seed)) as ledger:
                recoveries = [await lose_power(disk, cluster, ledger, draw) for _ in rounds(CUTS)]
                await ledger.go_on(10)
            with connect(cluster) as owner:
                check_promises(owner, ledger)
    figure(f"lost 0, pages sound, {ledger.tell()}, slowest recovery {max(recoveries):.1f} s")


@pytest.mark.promise("The test of a power cut notices a server that does not sync", FORGETFUL, part="power")
async def test_a_server_that_does_not_sync_is_found_out(rounds, seed, figure):
    lost, acknowledged = 0, 0
    for _ in rounds(FORGETFUL):
        with open_folder("power", find_memory()) as folder, power_disk(folder) as disk:
            async with durable(disk.place / "postgres", fsync="off") as cluster, service(cluster) as running:
                await asyncio.to_thread(disk.write_all)
                async with traffic(running, Load(seed=seed)) as ledger:
                    await ledger.go_on(30)
                await cut(disk, cluster)
                with connect(cluster) as owner:
                    lost += len(find_losses(owner, ledger.promised))
        acknowledged += len(ledger.promised)
        assert lost
    figure(f"{lost} of {acknowledged} acknowledged memories lost, as they must be")
