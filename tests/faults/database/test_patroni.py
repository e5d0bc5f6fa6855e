"""Patroni promotes the standby of a server that is lost under load: what was acknowledged is there, once."""

from __future__ import annotations

import asyncio
import random
from functools import partial

import pytest

from conftest import QUICK
from support.database.patroni_pair import looked_after
from support.database.under_load import make_database, under_load
from support.measuring.sizes import Sizes

FAILOVERS = Sizes("fail-overs by Patroni", ci=1, long=10)


@pytest.mark.promise(
    "What was acknowledged is there once after Patroni promoted the standby of a lost server", FAILOVERS, part="patroni"
)
async def test_patroni_promotes_and_nothing_acknowledged_is_lost(figure, rounds, seed):
    chance = random.Random(seed)
    with looked_after(QUICK) as pair:
        await make_database(pair)
        async with under_load(pair, seed) as loaded:
            for number in rounds(FAILOVERS):
                await asyncio.to_thread(pair.repaired)
                await loaded.told.hear(chance.randint(1, 40), 201)
                await fail_over(pair, loaded, patroni=number % 2 == 1)
    figure(loaded.describe())


async def fail_over(pair, loaded, *, patroni):
    """Lose the server that is written to, and its Patroni if asked; then it comes back as a standby."""
    lost = await asyncio.to_thread(pair.find_leader)
    await loaded.lose(partial(lost.kill, patroni=patroni))
    assert await asyncio.to_thread(pair.find_leader) is not lost
    if patroni:
        lost.start()
