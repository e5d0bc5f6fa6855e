"""Random histories of shards lose no acknowledged write, and no bucket is served by two servers."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from recollect.core.service import placements
from recollect.store.database import identity, ownership
from recollect.store.shards import entry
from support.measuring.sizes import Sizes
from support.programs.waiting import until
from support.shards.shard_callers import count_rows
from support.shards.shard_histories import CLAIMED, Happenings, find_twice
from support.shards.shards import lay_out, query

HISTORIES = Sizes("histories", ci=5, long=100)
ACTS, ENOUGH = 6, 80
"""How many things happen in a history, and how many writes to sound servers it has at least."""
SURE = 10
"""How often what is unfinished at the end is tried."""
POSSIBLE = (
    *("move", "move", "repair", "restore", "restart", "suspend", "misdirect", "exchange", "swap", "add_tenant"),
    *("add_key", "dump"),
)
UNCHECKED = """
create or replace function check_placement(
    asked_tenant integer, asked_bucket integer, known_generation integer, writing boolean, restoring boolean
) returns void language sql as $$
    select set_config('recollect.first_bucket', '0', true), set_config('recollect.last_bucket', '4095', true)
$$
"""
BEGINNING = ("add_tenant", "add_tenant", "dump", "grow", "add_tenant", "add_tenant", "dump")
JOBS = "select last_value - (select count(*) from procrastinate_jobs) from procrastinate_jobs_id_seq"
"""How many jobs were done: those that succeed are deleted."""


@asynccontextmanager
async def running(cluster, clones, folder, seed):
    """Run a history under two writers and a worker."""
    folder.mkdir()
    history = Happenings(await lay_out(cluster, clones, 2), cluster, clones, folder, seed)
    await history.revive()
    for name in BEGINNING:
        await history.act(name)
    writers = [asyncio.create_task(history.write(place)) for place in range(2)]
    try:
        yield history, writers
    finally:
        history.stop.set()
        await asyncio.gather(*writers)
        for place in range(2):
            await history.end_process(place)


async def finish(history):
    """Repair the catalog, and go on with every move that broke off."""
    await history.act("repair")
    for _ in range(SURE):
        for name in [*history.moves]:
            await history.act("move", name)
    # From here on each tenant must be written to.
    history.oracle.acknowledged.clear()


def is_enough(history):
    """Return whether there were enough writes, and each tenant was written to after the end."""
    enough = len(history.oracle.written) >= ENOUGH and history.expected.total() >= ENOUGH
    return enough and {*history.keys} == {*history.oracle.acknowledged}


async def let_happen(history):
    """Let things happen by chance."""
    for _ in range(ACTS):
        name = history.chance.choice(POSSIBLE)
        await history.act(name, kill=history.choose_kill(name))
        await asyncio.sleep(0.1)


async def judge(history):
    """Name what a history has lost or done twice, if anything."""
    counted, twice = await asyncio.to_thread(count_rows, history.layout)
    claims = [
        claim[:3]
        for _, owner in history.layout.shards.values()
        for state in ("open", "fenced")
        for claim in query(owner, CLAIMED, state)
    ]
    found = {
        "lost": history.oracle.find_lost(counted),
        "twice": [*twice, *find_twice(claims), *history.twice],
        "errors": dict(history.oracle.errors),
        "differences": [each for each in await history.shards.check() if not each.harmless],
    }
    return {name: each for name, each in found.items() if each}


@pytest.mark.promise(
    "Over three shards no acknowledged write is lost, and none is served twice, while the catalog is restored from "
    "backups, addresses are wrong, and tenants are moved with their rows",
    HISTORIES,
)
async def test_random_histories_lose_nothing(cluster, clones, tmp_path, rounds, seed, figure):
    written, jobs, expected, acts = 0, 0, Counter(), Counter()
    for number in rounds(HISTORIES):
        async with running(cluster, clones, tmp_path / str(number), seed + number) as (history, writers):
            await let_happen(history)
            await finish(history)
            assert history.acts["repair"] and not history.moves, (history.seed, history.acts, history.moves)
            await until(lambda: is_enough(history) or any(each.done() for each in writers))
        told = (history.seed, history.acts, history.oracle.reasons)
        assert await judge(history) == {}, told
        assert history.expected[True] >= 0.9 * history.expected.total(), (told, history.expected)
        written += len(history.oracle.written)
        jobs += sum(query(owner, JOBS)[0][0] for _, owner in history.layout.shards.values())
        expected += history.expected
        acts += history.acts
    refused = f"{expected[False]} of {expected.total()} to sound servers refused"
    figure(f"{written} writes acknowledged, {refused}, {jobs} jobs done; {dict(acts)}")


async def check_no_placement(history, _):
    """Move tenants while no write is compared with the placements of the server."""
    for _, owner in history.layout.shards.values():
        query(owner, UNCHECKED)
    for name in [*history.keys]:
        await history.act("move", name)


async def compare_no_identity(history, patched):
    """Make keys while the addresses of two servers are exchanged, and nothing compares who answers."""

    async def compare(*_):
        pass

    for module in (identity, ownership, entry):
        patched.setattr(module, "check_identity", compare)
    for _ in range(3):
        await history.act("exchange")
        for name in [*history.keys]:
            await history.act("add_key", name)


async def choose_lowest(history, patched):
    """Repair by the lowest generation when servers from backups serve what was moved away from them."""
    patched.setattr(placements, "max", min, raising=False)
    for name in [*history.keys]:
        await history.act("move", name)
    moved = len(history.oracle.written)
    await until(lambda: len(history.oracle.written) > moved + 20)
    for _, owner in history.layout.shards.values():
        query(owner, "update placements set state = 'open' where state = 'closed'")


@pytest.mark.parametrize(
    ("disabled", "noticed"),
    [(check_no_placement, "lost"), (compare_no_identity, "twice"), (choose_lowest, "lost")],
)
async def test_a_disabled_safeguard_is_noticed(cluster, clones, tmp_path, monkeypatch, disabled, noticed):
    async with running(cluster, clones, tmp_path / "history", 1) as (history, _):
        await disabled(history, monkeypatch)
        await finish(history)
    assert noticed in await judge(history)
