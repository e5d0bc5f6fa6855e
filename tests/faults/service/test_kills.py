"""Servers, workers and PostgreSQL are killed amid traffic: what was acknowledged is there again, once, and whole.

A server that does not wait for its disk is killed as well, to show that the test would notice.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

import psycopg
import pytest

from conftest import addresses_of, execute, new_key
from recollect.llm.fake import FakeEmbedder
from recollect.mind.service import Addresses
from recollect.settings import Settings
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare
from support.callers.oracle import check
from support.callers.traffic import READS, WRITES, Told, traffic
from support.database.balancer import Balancer
from support.measuring.sizes import Sizes
from support.programs.command_line import settings_of
from support.programs.folders import open_folder
from support.programs.ports import free_port
from support.programs.programs import WAIT_SECONDS, Program

KILLS = Sizes("kills", ci=6, long=300)
CONTROL = Sizes("kills", ci=2, long=2)
VICTIMS = ("serve", "serve", "worker", "backend", "postmaster", "cluster")
"""By turns: a third of the kills is for `serve`, and the last two leave nothing of PostgreSQL but its files."""
CALLERS, SERVERS, DEADLINE_SECONDS = 8, 2, 5
DATABASE = "kills"
CHOSEN = {
    "request_timeout_seconds": str(DEADLINE_SECONDS), "embedding__wait_timeout_seconds": "0.001", "pool_size": "8",
    "postgres__max_requests": "8",
}  # fmt: skip
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "64MB"}
FORGETFUL = {
    # Nothing writes the log but who must: it lies in memory for longer than a round lasts.
    "synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB", "wal_buffers": "64MB",
    "bgwriter_lru_maxpages": "0", "checkpoint_timeout": "1h",
}  # fmt: skip
BACKENDS = "select pid from pg_stat_activity where datname = current_database() and usename = 'recollect_service'"
WORKING = "select id from procrastinate_workers where last_heartbeat > now() - interval '10 seconds'"


@dataclass
class Stage:
    """All that runs, and can be killed."""

    cluster: Cluster
    addresses: Addresses
    secret: str
    servers: list[Program]
    workers: list[Program]
    chance: random.Random
    told: Told = field(default_factory=lambda: Told(DEADLINE_SECONDS))
    silences: dict[str, float] = field(default_factory=dict)
    """How long it took at most until what was asked after a kill was acknowledged, by victim."""

    async def kill(self, victim: str) -> None:
        """Kill something at a moment at which callers may be anywhere, and see that it comes back."""
        await self.told.hear_more(self.chance.randint(1, 40))
        await getattr(self, f"kill_{victim}")()
        killed = time.monotonic()
        # One more than can have been under way.
        await self.told.hear_more(CALLERS + 1)
        self.silences[victim] = max(self.silences.get(victim, 0.0), time.monotonic() - killed)

    async def kill_serve(self) -> None:
        """Kill one that serves; it may be the last one that does, while another starts."""
        ready: list[Program] = []
        async with asyncio.timeout(WAIT_SECONDS):
            while not ready:
                await asyncio.sleep(0.05)
                ready = [server for server in self.servers if await asyncio.to_thread(server.is_ready)]
        victim = self.chance.choice(ready)
        victim.kill()
        victim.start()

    async def kill_worker(self) -> None:
        await self.ask(WORKING)
        for worker in self.workers:
            worker.kill()
            worker.start()

    async def kill_backend(self) -> None:
        """Kill one connection's process: PostgreSQL ends all others, and recovers by itself."""
        os.kill(self.chance.choice(await self.ask(BACKENDS)), signal.SIGKILL)

    async def kill_postmaster(self) -> None:
        """Kill the first process alone; the others notice it, and end."""
        first = (self.cluster.data / "postgres" / "postmaster.pid").read_text().split()[0]
        os.kill(int(first), signal.SIGKILL)
        await asyncio.to_thread(self.cluster.start)

    async def kill_cluster(self) -> None:
        """Kill all processes at once, as a power cut does."""
        await asyncio.to_thread(self.cluster.kill)
        await asyncio.to_thread(self.cluster.start)

    async def ask(self, query: str) -> list[int]:
        """Ask PostgreSQL for numbers until there are some."""
        found = []
        async with asyncio.timeout(WAIT_SECONDS):
            while not found:
                await asyncio.sleep(0.05)
                with suppress(psycopg.OperationalError), psycopg.connect(self.addresses.owner) as owner:
                    found = [number for (number,) in owner.execute(query)]
        return found


@asynccontextmanager
async def set_up(seed: int, servers: int, workers: int, **settings: str) -> AsyncIterator[Stage]:
    """Start a cluster on a real disk that nobody else uses, servers and workers."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder("kills"))
        cluster = stack.enter_context(Cluster(folder / "postgres", settings=DURABLE | settings))
        execute(cluster, f"create database {DATABASE}")
        addresses = addresses_of(cluster, DATABASE)
        await prepare(addresses, FakeEmbedder())
        async with connected(Settings(embedder="fake"), addresses, FakeEmbedder()) as recollect:
            _, secret = await new_key(recollect)
        execute(cluster, "checkpoint")
        stage = Stage(cluster, addresses, secret, [], [], random.Random(seed))
        for words, programs, count in (("serve", stage.servers, servers), ("worker", stage.workers, workers)):
            for _ in range(count):
                program = Program(words, settings=settings_of(addresses, port=str(free_port()), **CHOSEN))
                programs.append(program)
                stack.callback(program.kill)
        for server in stage.servers:
            await asyncio.to_thread(server.wait_until_ready)
        yield stage


async def kill_all(stage: Stage, victims: Iterable[str]) -> dict[str, list]:
    """Kill one after the other while callers call, and say what is not as they were told."""
    seed = stage.chance.getrandbits(32)
    async with (
        Balancer(*(server.port for server in stage.servers)) as balancer,
        traffic(balancer.url, stage.secret, stage.told, seed, callers=range(CALLERS), kinds=WRITES | READS),
    ):
        for victim in victims:
            await stage.kill(victim)
    return await asyncio.to_thread(check, stage.addresses.owner, stage.told)


@pytest.mark.slow
@pytest.mark.promise(
    "The test of killed processes notices a PostgreSQL that does not wait for its disk", CONTROL, part="kills"
)
async def test_a_server_that_does_not_wait_for_its_disk_is_found_out(seed, rounds, figure):
    async with set_up(seed, 1, 0, **FORGETFUL) as stage:
        faults = await kill_all(stage, ("cluster" for _ in rounds(CONTROL)))
    figure(f"{len(faults.get('lost', []))} acknowledged writes lost, as they must be")
    assert faults.get("lost")


@pytest.mark.slow
@pytest.mark.promise(
    "What was acknowledged is there, once and whole, whichever process is killed amid traffic", KILLS, part="kills"
)
async def test_nothing_acknowledged_is_lost_when_a_process_is_killed(seed, rounds, figure):
    async with set_up(seed, SERVERS, 1) as stage:
        order = stage.chance.sample(VICTIMS, len(VICTIMS))
        faults = await kill_all(stage, (order[number % len(order)] for number in rounds(KILLS)))
    silences = ", ".join(f"{victim} {seconds:.1f} s" for victim, seconds in sorted(stage.silences.items()))
    figure(f"{stage.told.describe()}; acknowledging again after at most: {silences}")
    assert (faults, stage.told.wrong) == ({}, [])
