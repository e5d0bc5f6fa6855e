"""Measure what one tenant's load costs another one: the times of its calls, and when its first job starts.

    uv run python bench/fairness.py                                     # five alternations, 100,000 jobs
    uv run python bench/fairness.py --rounds 1 --seconds 1 --jobs 500 --connections 8      # CI's short form

One tenant asks over many connections from a process of its own, again as soon as it is answered: it ignores
`Retry-After`. The other tenant makes plain calls, one after the other. Loaded and unloaded times alternate in one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

import psycopg
import uvloop
from rich.console import Console
from rich.table import Table

from ground import ONE_PROCESS, OUT, open_folder
from load import PROGRAM, START_SECONDS, Client, is_ready, process_seconds
from recollect import Settings
from recollect.llm.fake import FakeEmbedder
from recollect.mind.service import Addresses
from recollect.models.service import Right
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare

TENANTS = ("loud", "quiet")
PAUSE_SECONDS = 0.02
"""Between two calls of the quiet tenant."""
SETTLE_SECONDS = 1.0
"""After the load has begun, or has ended, before calls count."""
MOST_TIMES, MOST_START_SECONDS = 2.0, 10.0
"""The bar: the quiet tenant's p95 by that without load, and when its first job starts."""
console = Console(width=140)


async def fill(addresses: Addresses, memories: int) -> dict[str, str]:
    """Give both tenants the same memories, and a key each."""
    keys: dict[str, str] = {}
    async with connected(
        Settings(embedder="fake", request_timeout_seconds=120), addresses, FakeEmbedder()
    ) as recollect:
        for tenant in TENANTS:
            mind = await recollect.mind("ada", "li", tenant=tenant)
            for number in range(memories):
                await mind.remember(f"Li watered plant {number} of the garden on day {number % 7}.")
            caller = await recollect.operator.act_for(tenant)
            keys[tenant] = (await recollect.create_key(caller, tenant, tuple(Right), 100))[1]
    return keys


@contextmanager
def started(addresses: Addresses, *command: str, port: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of Recollect until the context ends."""
    environment = os.environ | {
        "RECOLLECT_DATABASE_URL": addresses.service,
        "RECOLLECT_EMBEDDER": "fake",
        "RECOLLECT_PORT": str(port),
        "RECOLLECT_RECALL__CHANNEL_TIMEOUT_SECONDS": "30",
    }
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, *command], env=environment, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def make_body(number: int) -> bytes:
    """Make a recall."""
    asked = {"agent": "ada", "user": "li", "text": f"Which plant was watered on day {number % 7}?", "touch": False}
    return json.dumps(asked).encode()


async def generate(port: int, key: str, connections: int) -> None:
    """Ask over many connections until the input ends; tell what was answered, and what it cost this process."""
    statuses: Counter[str] = Counter()
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

    async def ask_on(number: int) -> None:
        client = Client(port, key)
        while not ended.done():
            try:
                status, _ = await client.send("POST", "/v1/recall", make_body(number))
                statuses[str(status)] += 1
            except (OSError, asyncio.IncompleteReadError):
                await client.close()
            number += 1

    asking = [asyncio.create_task(ask_on(number)) for number in range(connections)]
    print("asking", flush=True)
    begun = used_seconds()
    await ended
    await asyncio.wait(asking, timeout=1.0)
    for task in asking:
        task.cancel()
    print(json.dumps({"statuses": statuses, "cpu_seconds": used_seconds() - begun}))


def used_seconds() -> float:
    """Say how long this process has been on a processor."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def call_plainly(port: int, key: str, seconds: float) -> tuple[list[float], int]:
    """Make one call after the other; return the seconds of each, and how many were refused."""
    client, spent, refused = Client(port, key), list[float](), 0
    begins = time.perf_counter() + SETTLE_SECONDS
    number = 0
    while (began := time.perf_counter()) < begins + seconds:
        status, headers = await client.send("POST", "/v1/recall", make_body(number))
        if began >= begins:
            refused += status != 200
            spent.append(time.perf_counter() - began)
        number += 1
        await asyncio.sleep(float(headers.get("retry-after", PAUSE_SECONDS)))
    await client.close()
    return spent, refused


def measure_calls(port: int, server: int, keys: dict[str, str], asked: argparse.Namespace) -> dict[str, Any]:
    """Time the quiet tenant's calls without load and with it, in turns."""
    spent: dict[str, list[list[float]]] = {"unloaded": [], "loaded": []}
    refused, statuses, generator, served = Counter[str](), Counter[str](), 0.0, 0.0
    loaded_seconds = 0.0
    command = [sys.executable, __file__, "--generate", str(port), keys["loud"], str(asked.connections)]
    for _ in range(asked.rounds):
        for side, rounds in spent.items():
            with ExitStack() as stack:
                if side == "loaded":
                    load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                    assert load.stdout and load.stdout.readline(), "the generator did not start"
                    began, before = time.perf_counter(), process_seconds(server)
                    stack.callback(load.wait)
                times, count = uvloop.run(call_plainly(port, keys["quiet"], asked.seconds))
                rounds.append(sorted(times))
                refused[side] += count
                if side == "loaded":
                    served += process_seconds(server) - before
                    loaded_seconds += time.perf_counter() - began
                    told = json.loads(load.communicate()[0])
                    statuses.update(told["statuses"])
                    generator += told["cpu_seconds"]
    figures: dict[str, Any] = {side: sum_up(rounds) | {"refused": refused[side]} for side, rounds in spent.items()}
    figures["generator"] = {
        "statuses": dict(statuses),
        "cpu_share": generator / loaded_seconds,
        "server_cpu_share": served / loaded_seconds,
    }
    figures["times"] = {key: figures["loaded"][key] / figures["unloaded"][key] for key in ("p50_ms", "p95_ms")}
    return figures


def sum_up(rounds: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return the middle of the rounds."""
    return {
        "p50_ms": median(times[len(times) // 2] for times in rounds) * 1000,
        "p95_ms": median(times[int(len(times) * 0.95)] for times in rounds) * 1000,
        "calls": sum(map(len, rounds)),
    }


def measure_jobs(addresses: Addresses, jobs: int) -> dict[str, float]:
    """Let many jobs of the loud tenant wait, enqueue one of the quiet tenant, and see when it starts."""
    with psycopg.connect(addresses.owner, autocommit=True) as owner:
        scopes = dict(owner.execute("select name, scopes.id from tenants join scopes on tenant_id = tenants.id"))  # type: ignore[arg-type]
        owner.execute(
            """insert into procrastinate_jobs (queue_name, task_name, lock, args)
            select 'fold', 'fold', 'fold:loud:' || number, jsonb_build_object('scope_id', %s::bigint)
            from generate_series(1, %s) number""",
            [scopes["loud"], jobs],
        )
        with started(addresses, "worker"):
            wait_for(owner, "select min(at) from procrastinate_events where type = 'started'")
            defer = """insert into procrastinate_jobs (queue_name, task_name, lock, args)
                       values ('rederive', 'rederive', 'first', jsonb_build_object('scope_id', %s::bigint))
                       returning id, clock_timestamp()"""
            found = owner.execute(defer, [scopes["quiet"]]).fetchone()
            assert found
            left = "select count(*) from procrastinate_jobs where status = 'todo'"
            waiting = owner.execute(left).fetchone()
            # The job is gone when it is done, and with it what was noted of it: so the moment is seen from outside.
            there = f"select from procrastinate_jobs where id = {int(found[0])} and status = 'todo'"
            gone = f"select clock_timestamp() where not exists ({there})"
            start = wait_for(owner, gone)
        return {"seconds": (start - found[1]).total_seconds(), "waiting": waiting[0] if waiting else 0}


def wait_for(owner: psycopg.Connection[Any], query: str) -> Any:  # noqa: ANN401 - what the query returns
    """Repeat a query until it returns something."""
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit:
        row = owner.execute(query.encode()).fetchone()
        if row and row[0] is not None:
            return row[0]
        time.sleep(0.01)
    raise SystemExit("Nothing was started in time.")


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="alternations")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each side of an alternation")
    parser.add_argument("--connections", type=int, default=64, help="of the tenant that makes the load")
    parser.add_argument("--memories", type=int, default=300, help="of each tenant")
    parser.add_argument("--jobs", type=int, default=100_000, help="of one tenant that wait")
    parser.add_argument("--generate", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.generate:
        port, key, connections = asked.generate
        uvloop.run(generate(int(port), key, int(connections)))
        return
    with open_folder("fairness") as folder, Cluster(folder / "postgres", settings=ONE_PROCESS) as cluster:
        figures = measure(cluster, asked)
    OUT.mkdir(exist_ok=True)
    (OUT / "fairness.json").write_text(json.dumps(figures, indent=1))
    print_figures(figures)


def measure(cluster: Cluster, asked: argparse.Namespace) -> dict[str, Any]:
    """Measure calls, then jobs, on a database of their own."""
    asyncio.run(ensure_database(cluster.dsn(), "fairness"))
    addresses = Addresses(cluster.dsn("fairness", "recollect_service"), cluster.dsn("fairness"))
    asyncio.run(prepare(addresses, FakeEmbedder()))
    keys = uvloop.run(fill(addresses, asked.memories))
    port = find_port()
    with started(addresses, "serve", port=port) as server:
        limit = time.monotonic() + START_SECONDS
        while asyncio.run(is_ready(port)) is False:
            assert server.poll() is None and time.monotonic() < limit, "the server did not start"
            time.sleep(0.2)
        figures = measure_calls(port, server.pid, keys, asked)
    return figures | {"first_job": measure_jobs(addresses, asked.jobs)}


def find_port() -> int:
    """Find a port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def print_figures(figures: dict[str, Any]) -> None:
    """Print what was measured."""
    table = Table("the quiet tenant", "p50 ms", "p95 ms", "calls", "refused")
    for side in ("unloaded", "loaded"):
        row = figures[side]
        table.add_row(side, f"{row['p50_ms']:.1f}", f"{row['p95_ms']:.1f}", str(row["calls"]), str(row["refused"]))
    times = figures["times"]
    table.add_row(f"times (bar {MOST_TIMES:g})", *(f"{times[key]:.2f}" for key in ("p50_ms", "p95_ms")))
    console.print(table)
    load, job = figures["generator"], figures["first_job"]
    shares = f"generator {load['cpu_share']:.2f}, server {load['server_cpu_share']:.2f}"
    console.print(f"The load was answered {load['statuses']}; shares of a processor: {shares}.")
    late = f"another's first starts after {job['seconds']:.2f} s (bar {MOST_START_SECONDS:g} s)"
    console.print(f"With {job['waiting']:,} jobs of one tenant waiting, {late}.")


if __name__ == "__main__":
    main()
