"""Three shards behind poolers: tenants move, a shard dies, the catalog is away, a key ends and a user is erased."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import psycopg
import pytest

from conftest import http_client, new_key
from pooler import pooled
from recollect.llm.fake import FakeEmbedder
from recollect.models.shards import ServerAddresses
from recollect.settings import Settings
from recollect.store.shards import catalog
from recollect.verbs.service.moves import Moves
from recollect.wiring import connected
from shards import NAMES, lay_out_servers, started
from sizes import Sizes

TENANTS = Sizes("tenants", ci=9, long=60)
WRITERS = Sizes("writers and as many readers", ci=4, long=8)
SECONDS = Sizes("seconds of quiet between the acts", ci=1, long=10)
USERS = 8
LARGE = "tenant-1"
"""The tenant that is divided, loses a key and a user."""
MOVING = "tenant-0"
ERASED = "user-3"


@dataclass
class Oracle:
    """What callers were told."""

    written: dict = field(default_factory=dict)
    """By tenant, user and id: what it said."""
    refused: Counter = field(default_factory=Counter)
    seconds: Counter = field(default_factory=Counter)
    """For how long the writes of a tenant were refused, by tenant."""
    foreign: list = field(default_factory=list)
    misplaced: list = field(default_factory=list)
    reads: int = 0
    errors: Counter = field(default_factory=Counter)
    """Answers that are neither what was asked for nor `unavailable`."""


@dataclass
class Stage:
    """All that runs."""

    layout: object
    clusters: list
    services: list
    keys: dict
    oracle: Oracle
    stop: asyncio.Event

    def client(self, tenant, place):
        return http_client(self.services[place % len(self.services)], self.keys[tenant])


@asynccontextmanager
async def set_up(folder):
    async with AsyncExitStack() as stack:
        clusters = stack.enter_context(started("catalog", *NAMES))
        layout = await lay_out_servers(clusters[1:], clusters[0])
        for name, (service, owner) in layout.shards.items():
            address = await stack.enter_async_context(pooled(service, 6))
            await catalog.add_shard(layout.owner, name, ServerAddresses(address, owner, service))
        services = []
        for number in range(2):
            settings = Settings(
                embedder="fake",
                map_file=folder / f"map-{number}.json",
                prepare_statements=False,
                requests_at_once=64,
                deadline_seconds=20,
            )
            services.append(await stack.enter_async_context(connected(settings, layout.addresses, FakeEmbedder())))
        names = [f"tenant-{number}" for number in range(TENANTS.now)]
        keys = {name: (await new_key(services[0], name))[1] for name in names}
        stage = Stage(layout, clusters, services, keys, Oracle(), asyncio.Event())
        worker = asyncio.create_task(services[0].work())
        try:
            yield stage
        finally:
            worker.cancel()
            await asyncio.wait([worker])


async def write(stage, place):
    """Write one thing after the other, and look at once whether it is there."""
    chance, oracle, number = random.Random(place), stage.oracle, 0
    clients = {}
    async with AsyncExitStack() as stack:
        for tenant in stage.keys:
            clients[tenant] = await stack.enter_async_context(stage.client(tenant, place))
        while not stage.stop.is_set():
            number += 1
            tenant, user = chance.choice(list(stage.keys)), f"user-{chance.randrange(USERS)}"
            content = f"{tenant} {user} heard word {place}-{number}."
            began = time.monotonic()
            answer = await clients[tenant].post("/v1/memories", json={"agent": "ada", "user": user, "content": content})
            if answer.status_code != 201:
                note_refusal(oracle, tenant, answer, time.monotonic() - began)
                continue
            memory_id = answer.json()["memories"][0]["id"] if "memories" in answer.json() else answer.json()["id"]
            oracle.written[tenant, user, memory_id] = content
            path = f"/v1/memories/{memory_id}"
            found = await clients[tenant].get(path, params={"agent": "ada", "user": user})
            if found.status_code == 404 and user != ERASED:
                oracle.misplaced.append((tenant, user, memory_id))


def note_refusal(oracle, tenant, answer, seconds):
    oracle.refused[tenant] += 1
    oracle.seconds[tenant] += seconds
    if answer.status_code not in {503, 401}:
        oracle.errors[f"{answer.status_code} {answer.text[:200]}"] += 1


async def read(stage, place):
    """Recall, and see that nothing of another tenant or user comes."""
    chance, oracle = random.Random(1000 + place), stage.oracle
    while not stage.stop.is_set():
        tenant, user = chance.choice(list(stage.keys)), f"user-{chance.randrange(USERS)}"
        async with stage.client(tenant, place) as client:
            answer = await client.post("/v1/recall", json={"agent": "ada", "user": user, "text": "heard word"})
        if answer.status_code != 200:
            if answer.status_code not in {503, 401}:
                oracle.errors[f"{answer.status_code} {answer.text[:200]}"] += 1
            continue
        oracle.reads += 1
        hits = [hit["memory"]["content"] for hit in answer.json()["hits"]]
        oracle.foreign += [each for each in hits if not each.startswith(f"{tenant} {user} ")]


async def act(stage):
    """Do everything that operators fear, one thing beginning before the other has ended."""
    moves, quiet = Moves(stage.layout.owner), lambda step, done, total: None
    await asyncio.sleep(SECONDS.now)
    whole = asyncio.create_task(moves.move(MOVING, "west", quiet))
    half = asyncio.create_task(moves.move(LARGE, "north", quiet, (2048, 4095)))
    await asyncio.gather(whole, half)
    await asyncio.sleep(SECONDS.now)
    await asyncio.to_thread(stage.clusters[0].kill)
    revoked, secret = await new_revoked(stage)
    await asyncio.sleep(SECONDS.now)
    await asyncio.to_thread(stage.clusters[0].start)
    async with http_client(stage.services[1], secret) as client:
        refused = await client.get("/v1/memories", params={"agent": "ada"})
    await asyncio.sleep(SECONDS.now)
    await asyncio.to_thread(stage.clusters[2].kill)
    await asyncio.sleep(SECONDS.now)
    await asyncio.to_thread(stage.clusters[2].start)
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


def count_rows(layout):
    """Count memories by tenant, as far as a shard serves them, and find those that two shards serve."""
    counted, twice = Counter(), Counter()
    for _, owner in layout.shards.values():
        with psycopg.connect(owner) as connection:
            served = (
                "select tenants.name, memories.id, memories.content from memories "
                "join tenants on tenants.id = memories.scope_id >> 40 where is_served(memories.scope_id)"
            )
            for name, memory_id, content in connection.execute(served).fetchall():
                counted[name, str(memory_id), content] += 1
                twice[memory_id] += 1
    return counted, [each for each, times in twice.items() if times > 1]


@pytest.mark.promise(
    "Over three shards nothing acknowledged is lost and no foreign row is seen while tenants move and servers die",
    TENANTS,
    WRITERS,
    SECONDS,
)
async def test_tenants_move_and_servers_die_and_nothing_is_lost(figure, tmp_path):
    async with set_up(tmp_path) as stage:
        oracle = stage.oracle
        await tell_erased(stage)
        callers = [asyncio.create_task(write(stage, place)) for place in range(WRITERS.now)]
        callers += [asyncio.create_task(read(stage, place)) for place in range(WRITERS.now)]
        acted = await act(stage)
        erased = await erase(stage)
        stage.stop.set()
        for caller in callers:
            await caller
        await erase(stage)
        counted, twice = await asyncio.to_thread(count_rows, stage.layout)
        lost = [
            (tenant, user, content)
            for (tenant, user, memory_id), content in oracle.written.items()
            if not counted[tenant, memory_id, content] and not (tenant == LARGE and user == ERASED)
        ]
        others = {tenant: times for tenant, times in oracle.refused.items() if is_untouched(stage, tenant)}
        figure(f"{len(oracle.written)} writes and {oracle.reads} recalls; refused of the moving: {refusals(oracle)}")
    assert len(oracle.written) > 50
    assert (lost, twice, oracle.foreign, oracle.misplaced, dict(oracle.errors)) == ([], [], [], [], {})
    assert acted == (200, 401)
    assert erased.get("scopes", 0) >= 8, erased
    assert not [each for each in counted if each[0] == LARGE and f"{LARGE} {ERASED} " in each[2]]
    assert others == {}


def is_untouched(stage, tenant):
    """Tell whether a tenant neither moved nor lay on the shard that was killed."""
    with psycopg.connect(stage.layout.owner) as connection:
        query = (
            "select bool_or(shards.name = 'south') from placements join shards on shards.id = shard_id "
            "join tenants on tenants.id = tenant_id where tenants.name = %s"
        )
        on_killed = connection.execute(query, [tenant]).fetchone()[0]
    return tenant not in {MOVING, LARGE} and not on_killed


def refusals(oracle):
    return {tenant: (oracle.refused[tenant], round(oracle.seconds[tenant], 2)) for tenant in (MOVING, LARGE)}
