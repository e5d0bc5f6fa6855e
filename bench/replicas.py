"""Measure whether what is written is found at once through a replica, and how many recalls the replica serves.

    make bench BENCH=replicas ARGS="--pairs 100000"
    uv run python bench/replicas.py --pairs 40 --clients 2        # the short form that CI runs

A primary and one replica of it, which streams, on one machine, as they are installed (with fsync). Two API processes:
every client writes through one of them, and recalls through the other what it wrote, by the SDK and at once. Nothing is
embedded: what is recalled is found by its words. A client takes another scope after some pairs, so that all recalls
cost the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx
import uvloop
from rich.console import Console
from rich.table import Table

from ground import OUT, open_folder
from recollect import Settings
from recollect.client import Client
from recollect.client.transport import Transport
from recollect.mind.service import Addresses
from recollect.models.recall import Cue
from recollect.models.service import Right
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, update_schema

SUPPORT = Path(__file__).resolve().parents[1] / "tests" / "support"
PROGRAM = "from recollect.doors.cli.main import main; main()"
DATABASE, SERVICE = "recollect", "recollect_service"
SCOPE_PAIRS = 50
START_SECONDS = 120.0
LEAST_SHARE = 0.9
"""The bar: so many of the recalls are to be served by the replica."""
console = Console(width=120)


@dataclass(slots=True)
class Outcome:
    """What clients saw, and how long they may go on."""

    until: float = float("inf")
    found: int = 0
    missing: list[str] = field(default_factory=list[str])
    writes: list[float] = field(default_factory=list[float])
    recalls: list[float] = field(default_factory=list[float])


class TwoServers(Transport):
    """Writes to one server, and reads from another."""

    def __init__(self, url: str, key: str, timeout_seconds: float) -> None:
        self.writing, self.reading = url.split()
        super().__init__(self.writing, key, timeout_seconds)

    async def _request(self, method: str, path: str, **content: Any) -> httpx.Response:  # noqa: ANN401
        server = self.writing if path == "/v1/memories" else self.reading
        return await super()._request(method, server + path, **content)


@contextmanager
def replicated(folder: Path) -> Iterator[tuple[Cluster, Cluster]]:
    """Run a primary with an empty schema, and a replica."""
    sys.path.append(str(SUPPORT))
    standby = import_module("standby")
    with Cluster(folder / "primary") as primary:
        asyncio.run(ensure_database(primary.dsn(), DATABASE))
        asyncio.run(update_schema(addresses_of(primary)))
        with standby.replicated(primary, folder / "standby", {}) as replica:
            yield primary, replica


def addresses_of(cluster: Cluster) -> Addresses:
    """Name the database."""
    return Addresses(cluster.dsn(DATABASE, SERVICE), cluster.dsn(DATABASE))


@contextmanager
def serving(primary: Cluster, replica: Cluster) -> Iterator[str]:
    """Run an API process, and give its address."""
    port = import_module("ports").free_port()
    chosen = {"database_url": primary.dsn(DATABASE, SERVICE), "replica_urls": replica.dsn(DATABASE, SERVICE)}
    chosen |= {"port": str(port), "embedder": "none"}
    environment = os.environ | {f"RECOLLECT_{name.upper()}": value for name, value in chosen.items()}
    command = [sys.executable, "-c", PROGRAM, "serve"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(url, process)
        yield url
    finally:
        process.terminate()
        process.wait()


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Return when a server is ready."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(f"{url}/health/ready", trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise SystemExit("a server does not start")


async def make_key(primary: Cluster) -> str:
    """Make a key for the clients."""
    async with connected(Settings(embedder="none"), addresses_of(primary), None) as recollect:
        caller = await recollect.operator.act_for("default")
        return (await recollect.create_key(caller, "bench", (Right.READ, Right.WRITE), 50))[1]


async def write_and_recall(client: Client, name: str, pairs: int, outcome: Outcome) -> None:
    """Write, recall what was written, and look whether it is there, while there is time."""
    for number in range(pairs):
        if time.perf_counter() > outcome.until:
            return
        mind = await client.mind("bench", f"{name}-{number // SCOPE_PAIRS}")
        words = f"note{number} of {name} says that word{number * 7919 % 1_000_003} stands alone"
        begun = time.perf_counter()
        [receipt] = await mind.remember(words)
        written = time.perf_counter()
        made = await mind.recall(Cue(words, limit=3))
        outcome.recalls.append(time.perf_counter() - written)
        outcome.writes.append(written - begun)
        if any(hit.memory.id == receipt.id for hit in made.hits):
            outcome.found += 1
        else:
            outcome.missing.append(str(receipt.id))


async def run(urls: list[str], key: str, clients: int, pairs: int, outcome: Outcome) -> Outcome:
    """Let clients work side by side, each over both servers, half of them the other way round."""
    name = secrets.token_hex(4)
    async with asyncio.TaskGroup() as tasks:
        for number in range(clients):
            one, other = urls if number % 2 else reversed(urls)
            client = Client(f"{one} {other}", key, timeout_seconds=60, transport=TwoServers)
            share = pairs // clients + (number < pairs % clients)
            tasks.create_task(write_and_recall(client, f"{name}{number}", share, outcome))
    return outcome


def count_served(urls: list[str]) -> dict[str, float]:
    """Add up from the metrics how many recalls the primary and the replica have served."""
    served = {"primary": 0.0, "replica": 0.0}
    for url in urls:
        for line in httpx.get(f"{url}/metrics", trust_env=False).text.splitlines():
            if line.startswith('recollect_reads_total{route="/v1/recall"'):
                served[line.split('server="')[1].split('"')[0]] += float(line.split()[-1])
    return served


def summarise(outcome: Outcome, served: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Sum up a run."""
    pairs, asked = outcome.found + len(outcome.missing), sum(served.values())
    figures = {"pairs": pairs, "found": outcome.found, "by_replica": served["replica"] / asked, "seconds": seconds}
    for name, times in (("write", outcome.writes), ("recall", outcome.recalls)):
        parts = quantiles(times, n=100)
        figures |= {f"{name}_p50_ms": parts[49] * 1000, f"{name}_p99_ms": parts[98] * 1000}
    return figures | {"per_second": pairs / seconds}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=600.0, help="the longest that it takes, with fewer pairs")
    asked = parser.parse_args()
    with open_folder("replicas") as folder, replicated(folder) as (primary, replica), ExitStack() as stack:
        urls = [stack.enter_context(serving(primary, replica)) for _ in range(2)]
        key = asyncio.run(make_key(primary))
        # The first who need a replica do not wait for its connections: they are not counted.
        uvloop.run(run(urls, key, asked.clients, asked.clients * 4, Outcome()))
        before, begun = count_served(urls), time.perf_counter()
        outcome = uvloop.run(run(urls, key, asked.clients, asked.pairs, Outcome(begun + asked.seconds)))
        seconds, after = time.perf_counter() - begun, count_served(urls)
    figures = summarise(outcome, {name: after[name] - before[name] for name in after}, seconds)
    OUT.mkdir(exist_ok=True)
    (OUT / "replicas.json").write_text(json.dumps(figures, indent=1))
    table = Table("", "figure")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.3f}" if value % 1 else f"{value:,.0f}")
    console.print(table)
    console.print(
        f"goal: {LEAST_SHARE:.0%} by the replica: {'met' if figures['by_replica'] >= LEAST_SHARE else 'missed'}"
    )
    if outcome.missing:
        sys.exit(f"{len(outcome.missing)} were not found: {', '.join(outcome.missing[:5])}")


if __name__ == "__main__":
    main()
