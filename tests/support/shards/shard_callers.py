"""Callers of many tenants over several shards, and the oracle that knows what they were told."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import psycopg

from conftest import http_client, new_key
from recollect.llm.fake import FakeEmbedder
from recollect.wiring import connected
from support.service.made_settings import make_settings

USERS = 8
SERVED = (
    "select tenants.name, memories.id, memories.content from memories "
    "join tenants on tenants.id = memories.scope_id >> 40 where is_served(memories.scope_id)"
)
PLACED = (
    "select distinct tenants.name from placements join shards on shards.id = shard_id "
    "join tenants on tenants.id = tenant_id where shards.name = %s"
)


@dataclass
class Oracle:
    """What callers were told."""

    written: dict = field(default_factory=dict)
    """By tenant, user and id: what it said."""
    acknowledged: Counter = field(default_factory=Counter)
    """How many writes, by tenant."""
    refused: Counter = field(default_factory=Counter)
    reasons: dict = field(default_factory=dict)
    """Why the last write of a tenant was refused, by tenant."""
    seconds: Counter = field(default_factory=Counter)
    """For how long the writes of a tenant were refused, by tenant."""
    foreign: list = field(default_factory=list)
    misplaced: list = field(default_factory=list)
    reads: int = 0
    errors: Counter = field(default_factory=Counter)
    """Answers that are neither what was asked for nor `unavailable`."""

    def find_lost(self, counted):
        """List what was acknowledged and is not among the rows that were counted."""
        return [
            (tenant, user, content)
            for (tenant, user, memory_id), content in self.written.items()
            if not counted[tenant, memory_id, content]
        ]


@dataclass
class Stage:
    """All that runs."""

    layout: object
    services: list
    keys: dict
    erased: str = ""
    """A user that is to be erased, of whom nothing need be found."""
    oracle: Oracle = field(default_factory=Oracle)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def client(self, tenant, place):
        return http_client(self.services[place % len(self.services)], self.keys[tenant])


@asynccontextmanager
async def serving_shards(layout, folder, tenants, **chosen):
    """Run two services and a worker over several shards, with keys of so many tenants."""
    async with AsyncExitStack() as stack:
        services = []
        for number in range(2):
            settings = make_settings(
                embedder="fake", shards__map_file=folder / f"map-{number}.json", postgres__max_requests=64, **chosen
            )
            running = await stack.enter_async_context(connected(settings, layout.addresses, FakeEmbedder()))
            # Connections are made when they are first needed, which takes long while callers keep a busy machine busy.
            await running.parts.servers.all()
            services.append(running)
        names = [f"tenant-{number}" for number in range(tenants)]
        keys = {name: (await new_key(services[0], name))[1] for name in names}
        worker = asyncio.create_task(services[0].work())
        try:
            yield Stage(layout, services, keys)
        finally:
            worker.cancel()
            await asyncio.wait([worker])


@asynccontextmanager
async def callers_of(stage, groups, seed=0):
    """Let callers write for groups of tenants, and as many read, as long as the block lasts."""
    calls = [call(stage, place, names, seed) for place, names in enumerate(groups) for call in (write, read)]
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        yield
    finally:
        stage.stop.set()
        await asyncio.gather(*tasks)


async def write(stage, place, tenants, seed=0):
    """Write one thing after the other, and look at once whether it is there."""
    chance, oracle, number = random.Random(f"write {seed} {place}"), stage.oracle, 0
    clients = {}
    async with AsyncExitStack() as stack:
        for tenant in tenants:
            clients[tenant] = await stack.enter_async_context(stage.client(tenant, place))
        while not stage.stop.is_set():
            number += 1
            tenant, user = chance.choice(tenants), f"user-{chance.randrange(USERS)}"
            content = f"{tenant} {user} heard word {place}-{number}."
            began = time.monotonic()
            answer = await clients[tenant].post("/v1/memories", json={"agent": "ada", "user": user, "content": content})
            if answer.status_code != 201:
                note_refusal(oracle, tenant, answer, time.monotonic() - began)
                continue
            memory_id = answer.json()["memories"][0]["id"]
            oracle.written[tenant, user, memory_id] = content
            oracle.acknowledged[tenant] += 1
            path = f"/v1/memories/{memory_id}"
            found = await clients[tenant].get(path, params={"agent": "ada", "user": user})
            if found.status_code == 404 and user != stage.erased:
                oracle.misplaced.append((tenant, user, memory_id))


def note_refusal(oracle, tenant, answer, seconds):
    oracle.refused[tenant] += 1
    oracle.reasons[tenant] = answer.text
    oracle.seconds[tenant] += seconds
    note_error(oracle, answer)


def note_error(oracle, answer):
    if answer.status_code not in {503, 401}:
        oracle.errors[f"{answer.status_code} {answer.text[:200]}"] += 1


async def read(stage, place, tenants, seed=0):
    """Recall, and see that nothing of another tenant or user comes."""
    chance, oracle = random.Random(f"read {seed} {place}"), stage.oracle
    while not stage.stop.is_set():
        tenant, user = chance.choice(tenants), f"user-{chance.randrange(USERS)}"
        async with stage.client(tenant, place) as client:
            answer = await client.post("/v1/recall", json={"agent": "ada", "user": user, "text": "heard word"})
        if answer.status_code != 200:
            note_error(oracle, answer)
            continue
        oracle.reads += 1
        hits = [hit["memory"]["content"] for hit in answer.json()["hits"]]
        oracle.foreign += [each for each in hits if not each.startswith(f"{tenant} {user} ")]


def count_rows(layout):
    """Count memories by tenant, as far as a shard serves them, and find those that two shards serve."""
    counted, twice = Counter(), Counter()
    for _, owner in layout.shards.values():
        with psycopg.connect(owner) as connection:
            for name, memory_id, content in connection.execute(SERVED).fetchall():
                counted[name, str(memory_id), content] += 1
                twice[memory_id] += 1
    return counted, [each for each, times in twice.items() if times > 1]


def tenants_on(layout, shard):
    """Name the tenants that have something on a shard."""
    with psycopg.connect(layout.owner) as connection:
        return {name for (name,) in connection.execute(PLACED, [shard]).fetchall()}
