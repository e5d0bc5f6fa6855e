"""One of three shards is looked after by Patroni and loses its server: its tenants come back, others notice nothing."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from support.database.patroni_pair import looked_after, wait_until
from support.measuring.sizes import Sizes
from support.shards.shard_callers import callers_of, count_rows, serving_shards, tenants_on
from support.shards.shards import LOGICAL, lay_out_servers, started

FAILOVERS = Sizes("fail-overs of a shard by Patroni", ci=0, long=5)
TENANTS, WRITERS = 9, 4


async def lose_server(stage, pair, inside, chance):
    """Kill the server that is written to, with its Patroni; give the seconds until all its tenants write again."""
    await wait_for_writes(stage, pair, inside, chance.randint(1, 5))
    lost = await asyncio.to_thread(pair.find_leader)
    began = time.monotonic()
    await asyncio.to_thread(lost.kill)
    # Every caller may still hear of a write that was committed before.
    await wait_for_writes(stage, pair, inside, WRITERS + 1)
    seconds = time.monotonic() - began
    assert await asyncio.to_thread(pair.find_leader) is not lost
    lost.start()
    await asyncio.to_thread(pair.repaired)
    return seconds


async def wait_for_writes(stage, pair, tenants, number):
    """Wait until each of several tenants has so many more acknowledged writes."""
    told = stage.oracle.acknowledged
    wanted = {tenant: told[tenant] + number for tenant in tenants}
    await asyncio.to_thread(wait_until, lambda: all(told[each] >= wanted[each] for each in wanted), pair.tail)


@pytest.mark.slow
@pytest.mark.skipif(not FAILOVERS.now, reason="takes too long for CI")
@pytest.mark.promise(
    "A shard that loses its server loses no acknowledged write and comes back by itself; other shards refuse nothing",
    FAILOVERS,
    part="patroni",
)
async def test_a_shard_fails_over_by_itself_and_others_refuse_nothing(figure, rounds, seed, tmp_path):
    chance, outages = random.Random(seed), []
    with started("catalog", "north", "west") as (apart, north, west), looked_after(LOGICAL) as pair:
        layout = await lay_out_servers([north, pair, west], apart)
        async with serving_shards(layout, tmp_path, TENANTS, request_timeout_seconds=20) as stage:
            inside = sorted(tenants_on(layout, "south"))
            others = sorted(stage.keys.keys() - {*inside})
            assert inside
            assert others
            async with callers_of(stage, [inside, others] * (WRITERS // 2), seed):
                outages += [await lose_server(stage, pair, inside, chance) for _ in rounds(FAILOVERS)]
            counted, twice = await asyncio.to_thread(count_rows, layout)
    oracle = stage.oracle
    refused = {tenant: oracle.refused[tenant] for tenant in inside}
    figure(
        f"{len(oracle.written)} writes and {oracle.reads} recalls; lost {len(oracle.find_lost(counted))}; refused "
        f"inside {sum(refused.values())}, elsewhere 0; all back after {max(outages):.1f} s at most"
    )
    assert (oracle.find_lost(counted), twice, oracle.foreign, oracle.misplaced) == ([], [], [], [])
    assert dict(oracle.errors) == {}
    assert {tenant: oracle.reasons[tenant] for tenant in others if oracle.refused[tenant]} == {}
