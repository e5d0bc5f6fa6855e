"""A server and a worker under mixed traffic for long: memory, files and connections do not grow with the requests.

In a campaign a server that keeps something of every request is measured as well, to show that the test would notice.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass

import numpy as np
import psutil
import psycopg
import pytest

from conftest import new_key
from recollect.llm.fake import FakeEmbedder
from recollect.settings import Settings
from recollect.wiring import connected
from support.callers.traffic import READS, WRITES, Told, traffic
from support.measuring import sizes
from support.measuring.sizes import Sizes
from support.programs.command_line import settings_of
from support.programs.ports import free_port
from support.programs.programs import Program

REQUESTS = Sizes("requests", ci=1_000, long=250_000)
LEAKED = Sizes("requests", ci=0, long=3_000)
BETWEEN = 100
"""Requests between two samples."""
TENANTS, CALLERS, DEADLINE_SECONDS, POOL_SIZE = 3, 4, 10, 8
CHOSEN = {"request_timeout_seconds": str(DEADLINE_SECONDS), "postgres__max_requests": "16", "pool_size": str(POOL_SIZE)}
MOST_CONNECTIONS = 4 * POOL_SIZE
"""Of both processes: their pools, and what listens, probes and runs jobs."""
WARM_SHARE, LONG_RUN = 0.3, 20_000
"""How much of a run is left out of the slope, and how many requests tell one from noise."""
MOST_GROWTH = 10.0
"""Megabytes in 100,000 requests: a hundred bytes of each."""
TABLES = "select sum(pg_total_relation_size(relid))::bigint from pg_stat_user_tables"
CONNECTED = "select count(*) from pg_stat_activity where datname = current_database() and usename = 'recollect_service'"
LEAK = """
from recollect.doors.http.middleware import Call
kept, finish = [], Call.finish
def finish_and_keep(call):
    kept.append(b"x" * 20_000)
    finish(call)
Call.finish = finish_and_keep
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """What processes and database use after so many requests; sizes in megabytes."""

    requests: int
    served: float
    working: float
    files: int
    connections: int
    tables: float


class Meter:
    """Samples of a running service."""

    def __init__(self, server: Program, worker: Program, dsn: str, tolds: list[Told]) -> None:
        self._processes = [psutil.Process(each.process.pid) for each in (server, worker)]
        self._dsn, self._tolds = dsn, tolds
        self.samples: list[Sample] = []

    @property
    def answered(self) -> int:
        """Count what was answered to all tenants."""
        return sum(told.codes.total() for told in self._tolds)

    def take(self) -> None:
        """Measure."""
        with psycopg.connect(self._dsn) as owner:
            [(tables,), (connections,)] = (owner.execute(query).fetchone() for query in (TABLES, CONNECTED))
        served, working = (process.memory_info().rss / 2**20 for process in self._processes)
        files = sum(process.num_fds() for process in self._processes)
        self.samples.append(Sample(self.answered, served, working, files, connections, tables / 2**20))

    def slope(self, name: str) -> float:
        """Fit how much something grows in 100,000 requests, after a warm-up."""
        steady = self.samples[int(len(self.samples) * WARM_SHARE) :]
        line = np.polyfit([each.requests for each in steady], [getattr(each, name) for each in steady], 1)
        return float(line[0]) * 100_000

    def describe_slope(self, name: str) -> str:
        """Say how something grows, if the run was long enough to tell."""
        return f" ({self.slope(name):+.1f} MB in 100,000)" if self.answered >= LONG_RUN else ""

    def describe(self) -> str:
        """Say what was found."""
        first, last = self.samples[0], self.samples[-1]
        codes = sum((told.codes for told in self._tolds), start=type(self._tolds[0].codes)())
        failed = sum(count for status, count in codes.items() if status >= 500 and status != 503)
        grown = ", ".join(
            f"{word} {getattr(first, name):.0f} to {getattr(last, name):.0f} MB{self.describe_slope(name)}"
            for word, name in (("server", "served"), ("worker", "working"), ("tables", "tables"))
        )
        return (
            f"{self.answered} requests, {failed} answered 5xx but {codes[503]} 503, slowest "
            f"{max(told.slowest for told in self._tolds):.1f} s; {grown}; files {first.files} to {last.files}, "
            f"connections at most {max(each.connections for each in self.samples)}"
        )


@asynccontextmanager
async def running(addresses, seed, **variables: str):
    """Run a server, a worker and callers of several tenants; give their meter."""
    async with connected(Settings(embedder="fake"), addresses, FakeEmbedder()) as recollect:
        secrets = [(await new_key(recollect, f"tenant-{number}"))[1] for number in range(TENANTS)]
    with ExitStack() as programs:
        settings = settings_of(addresses, port=str(free_port()), **CHOSEN)
        server, worker = Program("serve", settings=settings | variables), Program("worker", settings=settings)
        for program in (server, worker):
            programs.callback(program.kill)
        await asyncio.to_thread(server.wait_until_ready)
        tolds = [Told(DEADLINE_SECONDS) for _ in secrets]
        async with AsyncExitStack() as callers:
            for number, (secret, told) in enumerate(zip(secrets, tolds, strict=True)):
                kinds, called = WRITES | READS, range(CALLERS)
                calling = traffic(server.url, secret, told, seed + number, callers=called, kinds=kinds)
                await callers.enter_async_context(calling)
            yield Meter(server, worker, addresses.owner, tolds)
        assert [told.wrong for told in tolds] == [[]] * TENANTS
        assert (server.process.poll(), worker.process.poll()) == (None, None)


async def measure(meter: Meter, rounds) -> None:
    """Take a sample after every round of requests."""
    for _ in rounds:
        wanted = meter.answered + BETWEEN
        while meter.answered < wanted:  # noqa: ASYNC110 - it may take as long as it takes
            await asyncio.sleep(0.02)
        await asyncio.to_thread(meter.take)


@pytest.mark.slow
@pytest.mark.skipif(not LEAKED.now, reason="a control that only a campaign runs")
@pytest.mark.promise("The soak test notices a server that keeps something of every request", LEAKED, part="soak")
async def test_a_server_that_keeps_something_of_every_request_is_found_out(addresses, tmp_path, rounds, seed, figure):
    (tmp_path / "sitecustomize.py").write_text(LEAK, encoding="utf-8")
    async with running(addresses, seed, PYTHONPATH=str(tmp_path)) as meter:
        await measure(meter, rounds(LEAKED, by=BETWEEN))
    figure(f"{meter.slope('served'):.0f} MB in 100,000 requests, as it must be")
    assert meter.slope("served") > MOST_GROWTH


@pytest.mark.slow
@pytest.mark.promise(
    "Under lasting traffic of several tenants neither memory, files nor connections grow with the requests",
    REQUESTS,
    part="soak",
)
async def test_nothing_grows_with_the_requests(addresses, rounds, seed, figure):
    async with running(addresses, seed) as meter:
        await measure(meter, rounds(REQUESTS, by=BETWEEN))
    figure(meter.describe())
    assert max(each.connections for each in meter.samples) <= MOST_CONNECTIONS
    # Files are connections, too: those of callers come and go.
    assert max(each.files for each in meter.samples) <= meter.samples[0].files + 4 * TENANTS * CALLERS
    if sizes.CHOSEN == "long" and meter.answered >= LONG_RUN:
        assert meter.slope("served") < MOST_GROWTH
        assert meter.slope("working") < MOST_GROWTH
