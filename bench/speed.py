"""Measure speed as ratios within one run: the vector channel, HTTP and bulk load against their bare counterparts.

    uv run python bench/speed.py                 # a table of 1,000,000 memories; about ten minutes
    uv run python bench/speed.py --rows 20000 --scopes 1000 --rounds 20      # the short form that CI runs

Machines are noisy: both sides of a ratio alternate call by call, and medians are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psycopg
import uvloop
from pgvector import HalfVector
from pgvector.psycopg import register_vector_async
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import filler
from ground import DIMENSIONS, LARGE_MACHINE, OUT, alternate, open_folder, running
from recollect import Mind, NewMemory, Recollect
from recollect.channels.vector import VectorChannel
from recollect.models import Cue
from recollect.store.embedded.cluster import Cluster
from space import VECTORS

LIMIT = 100
CHUNK = 2_000
console = Console()


async def load_scope(mind: Mind, size: int, randomness: np.random.Generator, progress: Progress) -> None:
    """Load a scope of the asked size with vectors of its own."""
    task = progress.add_task(f"a scope of {size:,}", total=size)
    for start in range(0, size, CHUNK):
        count = min(CHUNK, size - start)
        await mind.load(filler.memories(start, count, randomness, DIMENSIONS))
        progress.advance(task, count)


async def measure_vector(recollect: Recollect, mind: Mind, rounds: int) -> dict[str, float]:
    """Compare the vector channel with the same query sent bare by a role that no policy touches."""
    randomness = np.random.default_rng(1)
    cues = filler.unit_vectors(rounds + 3, DIMENSIONS, randomness)
    place = await filler.place_of(recollect, mind)
    channel = VectorChannel()
    async with await psycopg.AsyncConnection.connect(recollect.addresses.owner, autocommit=True) as bare:
        await register_vector_async(bare)
        query = (
            f"select id, -(embedding <#> %s::halfvec) as score from {VECTORS} where scope_id = {place.scope_id} "
            f"order by embedding <#> %s::halfvec limit {LIMIT}"
        )

        async def ask_bare(number: int) -> object:
            vector = HalfVector(cues[number])
            return await (await bare.execute(query, (vector, vector))).fetchall()

        async def ask_channel(number: int) -> object:
            return await filler.ask(recollect, channel, place, cues[number], LIMIT)

        bare_ms, channel_ms = await alternate(rounds, ask_bare, ask_channel)
    return {"bare_ms": bare_ms, "channel_ms": channel_ms, "ratio": channel_ms / bare_ms}


async def measure_http(recollect: Recollect, mind: Mind, rounds: int) -> dict[str, float]:
    """Compare recall over HTTP, from a server of its own process, with the verb in this one."""
    vectors = filler.unit_vectors(rounds + 3, DIMENSIONS, np.random.default_rng(2))
    # No worker folds the log of accesses here, so nothing is written on it.
    cues = [
        Cue(filler.sentence(number), embedding=vectors[number].tolist(), touch=False) for number in range(rounds + 3)
    ]
    bodies = [
        json.dumps(
            {"agent": mind.access.scope.agent, "text": cue.text, "embedding": cue.embedding, "touch": False}
        ).encode()
        for cue in cues
    ]
    caller = await recollect.operator.act_for("default")
    _, secret = await recollect.create_key(caller, "bench", ["read"], 100)
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    with serving(recollect.addresses.service) as port:
        client = http.client.HTTPConnection("127.0.0.1", port)

        async def over_http(number: int) -> object:
            client.request("POST", "/v1/recall", bodies[number], headers)
            answer = client.getresponse()
            assert answer.status == 200
            return answer.read()

        async def in_process(number: int) -> object:
            return await mind.recall(cues[number])

        http_ms, verb_ms = await alternate(rounds, over_http, in_process)
        client.close()
    return {"http_ms": http_ms, "verb_ms": verb_ms, "added_ms": http_ms - verb_ms}


@contextmanager
def serving(dsn: str) -> Iterator[int]:
    """Run `recollect serve` on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "RECOLLECT_DATABASE_URL": dsn, "RECOLLECT_EMBEDDER": "none", "RECOLLECT_PORT": str(port),
    }  # fmt: skip
    command = [sys.executable, "-c", "from recollect.doors.cli.main import main; main()", "serve"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(20)


async def measure_load(recollect: Recollect, chunks: int) -> dict[str, float]:
    """Compare bulk load with bare COPY of the same rows into the same tables and indexes, chunk by chunk."""
    randomness = np.random.default_rng(3)
    mind = await recollect.mind("loaded")
    twin = await recollect.mind("copied")
    await twin.remember("the first memory makes the scope")
    ours = bare = 0.0
    async with await psycopg.AsyncConnection.connect(recollect.addresses.owner, autocommit=True) as connection:
        await register_vector_async(connection)
        scope_id = (await filler.place_of(recollect, twin)).scope_id
        for number in range(chunks // 5):
            new: list[NewMemory] = filler.memories(number * 5 * CHUNK, 5 * CHUNK, randomness, DIMENSIONS)
            started = time.perf_counter()
            ids = await mind.load(new)
            ours += time.perf_counter() - started
            rows = await filler.fetch_rows(connection, ids, scope_id)
            bare += await filler.copy_bare(connection, rows)
    total = chunks // 5 * 5 * CHUNK
    return {"load_per_s": total / ours, "copy_per_s": total / bare, "ratio": bare / ours}


async def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="memories of other scopes in the same tables")
    parser.add_argument("--scopes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--chunks", type=int, default=10, help=f"chunks of {CHUNK} in the bulk load")
    asked = parser.parse_args()
    with open_folder("speed") as folder, Cluster(folder / "postgres", settings=LARGE_MACHINE) as cluster:
        async with running(cluster, "speed") as recollect:
            figures = await measure(recollect, asked)
    OUT.mkdir(exist_ok=True)
    (OUT / "speed.json").write_text(json.dumps(figures, indent=1))
    print_figures(figures, asked.rows)


async def measure(recollect: Recollect, asked: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Fill the tables, then measure every pair."""
    figures: dict[str, dict[str, float]] = {}
    randomness = np.random.default_rng(0)
    with Progress(console=console) as progress:
        await filler.fill(recollect, asked.rows, DIMENSIONS, progress)
        minds = {size: await recollect.mind(f"scope-{size}") for size in asked.scopes}
        for size, mind in minds.items():
            await load_scope(mind, size, randomness, progress)
    filler.vacuum(recollect)
    for size, mind in minds.items():
        figures[f"vector {size}"] = await measure_vector(recollect, mind, asked.rounds)
        figures[f"http {size}"] = await measure_http(recollect, mind, asked.rounds)
    figures["load"] = await measure_load(recollect, asked.chunks)
    return figures


def print_figures(figures: dict[str, dict[str, float]], rows: int) -> None:
    """Print what was measured next to the goal."""
    table = Table("pair", "bare", "ours", "figure", "goal", title=f"beside {rows:,} memories of other scopes")
    for name, row in figures.items():
        if name.startswith("vector"):
            cells = (f"{row['bare_ms']:.2f} ms", f"{row['channel_ms']:.2f} ms", f"{row['ratio']:.2f} x", "<= 1.2 x")
        elif name.startswith("http"):
            cells = (f"{row['verb_ms']:.2f} ms", f"{row['http_ms']:.2f} ms", f"+{row['added_ms']:.2f} ms", "<= +3 ms")
        else:
            copied, loaded = f"{row['copy_per_s']:,.0f}/s", f"{row['load_per_s']:,.0f}/s"
            cells = (copied, loaded, f"{row['ratio']:.2f} x", ">= 0.6 x")
        table.add_row(name, *cells)
    console.print(table)


if __name__ == "__main__":
    uvloop.run(main())  # the loop that the server runs on
