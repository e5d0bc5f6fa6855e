"""Three shards behind poolers: tenants move, a shard dies, the catalog is away, a key ends and a user is erased."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from conftest import http_client
from pooler import pooled
from recollect.models.shards import ServerAddresses
from recollect.store.shards import catalog
from recollect.verbs.service.moves import Moves
from shard_callers import callers_of, count_rows, serving_shards, tenants_on
from shards import NAMES, lay_out_servers, started
from sizes import Sizes

TENANTS = Sizes("tenants", ci=9, long=60)
WRITERS = Sizes("writers and as many readers", ci=4, long=8)
SECONDS = Sizes("seconds of quiet between the acts", ci=1, long=10)
LARGE = "tenant-1"
"""The tenant that is divided, loses a key and a user."""
MOVING = "tenant-0"
ERASED = "user-3"


@asynccontextmanager
async def set_up(folder):
    async with AsyncExitStack() as stack:
        clusters = stack.enter_context(started("catalog", *NAMES))
        layout = await lay_out_servers(clusters[1:], clusters[0])
        for name, (service, owner) in layout.shards.items():
            address = await stack.enter_async_context(pooled(service, 6))
            await catalog.add_shard(layout.owner, name, ServerAddresses(address, owner, service))
        chosen = {"prepare_statements": False, "deadline_seconds": 20}
        stage = await stack.enter_async_context(serving_shards(layout, folder, TENANTS.now, **chosen))
        stage.erased = ERASED
        yield stage, clusters


async def act(stage, clusters):
    """Do everything that operators fear, one thing beginning before the other has ended."""
    moves, quiet = Moves(stage.layout.owner), lambda step, done, total: None
    await asyncio.sleep(SECONDS.now)
    whole = asyncio.create_task(moves.move(MOVING, "west", quiet))
    half = asyncio.create_task(moves.move(LARGE, "north", quiet, (2048, 4095)))
    await asyncio.gather(whole, half)
    await asyncio.sleep(SECONDS.now)
    await asyncio.to_thread(clusters[0].kill)
    revoked, secret = await new_revoked(stage)
    await asyncio.sleep(SECONDS.now)
    await asyncio.to_thread(clusters[0].start)
    async with http_client(stage.services[1], secret) as client:
        refused = await client.get("/v1/memories", params={"agent": "ada"})
    await asyncio.sleep(SECONDS.now)
    await asyncio.to_thread(clusters[2].kill)
    await asyncio.sleep(SECONDS.now)
    await asyncio.to_thread(clusters[2].start)
    await asyncio.sleep(SECONDS.now)
    return revoked, refused.status_code


async def new_revoked(stage):
    """Revoke a key of the divided tenant while the catalog is away."""
    async with http_client(stage.services[0], stage.keys[LARGE]) as client:
        made = (await client.post("/v1/keys", json={"name": "short-lived", "rights": ["read"]})).json()
        gone = await client.delete(f"/v1/keys/{made['key']['id']}")
    return gone.status_code, made["secret"]


async def tell_erased(stage):
    """Let many agents remember the user that is to be erased, so that every part of the tenant has something."""
    async with stage.client(LARGE, 0) as client:
        for number in range(8):
            told = {"agent": f"agent-{number}", "user": ERASED, "content": f"{LARGE} {ERASED} is known to {number}."}
            assert (await client.post("/v1/memories", json=told)).status_code == 201


async def erase(stage):
    """Erase a user of the divided tenant over all its shards; repeated until it is finished."""
    async with http_client(stage.services[1], stage.keys[LARGE]) as client:
        for _ in range(300):
            answer = await client.post("/v1/erasures", json={"user": ERASED})
            if answer.status_code in {200, 404}:
                return answer.json()
            await asyncio.sleep(0.2)
    return answer.json()


@pytest.mark.promise(
    "Over three shards nothing acknowledged is lost and no foreign row is seen while tenants move and servers die",
    TENANTS,
    WRITERS,
    SECONDS,
)
async def test_tenants_move_and_servers_die_and_nothing_is_lost(figure, seed, tmp_path):
    async with set_up(tmp_path) as (stage, clusters):
        oracle = stage.oracle
        await tell_erased(stage)
        async with callers_of(stage, [[*stage.keys]] * WRITERS.now, seed):
            acted = await act(stage, clusters)
            erased = await erase(stage)
        await erase(stage)
        counted, twice = await asyncio.to_thread(count_rows, stage.layout)
        lost = [each for each in oracle.find_lost(counted) if each[:2] != (LARGE, ERASED)]
        touched = {MOVING, LARGE} | tenants_on(stage.layout, "south")
        others = {tenant: reason for tenant, reason in oracle.reasons.items() if tenant not in touched}
        figure(f"{len(oracle.written)} writes and {oracle.reads} recalls; refused of the moving: {refusals(oracle)}")
    assert len(oracle.written) > 50
    assert (lost, twice, oracle.foreign, oracle.misplaced, dict(oracle.errors)) == ([], [], [], [], {})
    assert acted == (200, 401)
    assert erased.get("scopes", 0) >= 8, erased
    assert not [each for each in counted if each[0] == LARGE and f"{LARGE} {ERASED} " in each[2]]
    assert others == {}


def refusals(oracle):
    return {tenant: (oracle.refused[tenant], round(oracle.seconds[tenant], 2)) for tenant in (MOVING, LARGE)}
