"""Measure the stream channel as ratios within one run, on made-up lives of growing length (see lives.py).

    uv run python bench/stream.py                # 1,000 to 1,000,000 memories; an hour, most of it to build one index
    uv run python bench/stream.py --folder DIR   # keep the lives and their indexes for another run
    uv run python bench/stream.py --sizes 300 --large 2000 --rounds 5 --cues 20      # the short form that CI runs

Machines are noisy: both sides of a ratio alternate call by call, and medians are compared. The index of a million
memories is built in 4 GB of shared memory.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean, median
from uuid import UUID

import numpy as np
import psycopg
import uvloop
from pgvector import HalfVector
from pgvector.psycopg import register_vector_async
from psycopg.rows import dict_row
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import elsewhere
import filler
from ground import DIMENSIONS, LARGE_MACHINE, OUT, WARMING, alternate, open_folder, processor_seconds, running
from lives import World, live
from recollect import Mind, Recollect
from recollect.channels.stream import StreamChannel
from recollect.models import Cue
from recollect.store.database.pool import Connection
from recollect.store.embedded.cluster import Cluster
from recollect.store.memories.accesses import fold
from recollect.store.service.scopes import ScopeHandle
from space import VECTORS

LIMIT = 30
BARE = f"select id from {VECTORS} where scope_id = %(scope)s order by embedding <=> %(cue)s::halfvec limit %(limit)s"
FOLD_EVERY = 16
"""So many rounds until the log is folded, outside of what is timed: a worker would do it."""
TURN = 10
"""So many calls in a row of either method: after a scan of everything, whoever comes next finds cold caches."""
ROWS_TO_PULL = 20_000
"""What is pulled out of the database is pulled as often as it takes to move so many rows, and at least once."""
SETTINGS = LARGE_MACHINE | {"maintenance_work_mem": "4GB"}
STREAM = StreamChannel()
console = Console()
Figures = dict[str, dict[str, float]]


async def measure_exact(recollect: Recollect, mind: Mind, rounds: int) -> dict[str, float]:
    """Compare the exact ranking, and the whole recall, with a bare search by vector."""
    cues = World.make(DIMENSIONS).draw(rounds + WARMING, np.random.default_rng(1))
    place = await filler.place_of(recollect, mind)

    async def ask_bare(number: int) -> object:
        async with recollect.parts.database.reading(mind.access.scope.tenant_id) as connection:
            found = await connection.execute(BARE, bare_parameters(place, cues[number]))
        return await found.fetchall()

    async def ask_channel(number: int) -> object:
        return await filler.ask(recollect, STREAM, place, cues[number], LIMIT)

    async def recall(number: int, *, touch: bool) -> object:
        return await mind.recall(Cue(embedding=cues[number], channels=(STREAM.name,), limit=LIMIT, touch=touch))

    async def fold_log(number: int) -> None:
        if number % FOLD_EVERY == 0:
            await fold(recollect.parts.database, [place.scope_id or 0])

    bare, channel, read, recalled, _ = await alternate(
        rounds, ask_bare, ask_channel, partial(recall, touch=False), partial(recall, touch=True), fold_log
    )
    return {
        "bare_ms": bare, "channel_ms": channel, "ratio": channel / bare,
        "recall_ms": recalled, "recall_ratio": recalled / bare, "access_ms": recalled - read,
    }  # fmt: skip


async def measure_engine(recollect: Recollect, mind: Mind, rounds: int) -> dict[str, float]:
    """Compare what both cost the server alone: one plain connection, and the time it is on a processor."""
    cues = World.make(DIMENSIONS).draw(rounds + WARMING, np.random.default_rng(1))
    place = await filler.place_of(recollect, mind)
    async with plainly(recollect, mind) as plain:

        async def ask_bare(number: int) -> object:
            return await (await plain.execute(BARE, bare_parameters(place, cues[number]))).fetchall()

        async def ask_channel(number: int) -> object:
            answer = await STREAM.send_query(plain, place, filler.reading(cues[number]), LIMIT)
            return await answer()

        clock = partial(processor_seconds, plain.info.backend_pid)
        bare, ranked = await alternate(rounds, ask_bare, ask_channel, clock=clock)
    return {"bare_cpu_ms": bare, "stream_cpu_ms": ranked, "cpu_ratio": ranked / bare}


@asynccontextmanager
async def plainly(recollect: Recollect, mind: Mind) -> AsyncIterator[Connection]:
    """Connect as the service's role, bound to the tenant once and for all, with nothing prepared."""
    async with await psycopg.AsyncConnection.connect(
        recollect.addresses.service, autocommit=True, prepare_threshold=None, row_factory=dict_row
    ) as connection:
        await register_vector_async(connection)
        await connection.execute("select set_config('recollect.tenant', %s, false)", [str(mind.access.scope.tenant_id)])
        yield connection


def bare_parameters(place: ScopeHandle, cue: np.ndarray) -> dict[str, object]:
    """Give what the bare search asks for."""
    return {"scope": place.scope_id, "cue": HalfVector(cue), "limit": LIMIT}


async def measure_elsewhere(recollect: Recollect, mind: Mind, size: int) -> dict[str, float]:
    """Time rankings outside of the database in the same tables, which must come to the same hits."""
    rounds = max(1, min(5, ROWS_TO_PULL // size))
    cues = World.make(DIMENSIONS).draw(rounds, np.random.default_rng(2))
    place = await filler.place_of(recollect, mind)
    owner, scope_id = recollect.addresses.owner, place.scope_id or 0
    ways: dict[str, Callable[[str, int, np.ndarray], list[UUID]]] = {
        "python_ms": elsewhere.rank_in_python, "numpy_ms": elsewhere.rank_in_numpy,
    }  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in ways}
    for cue in cues:
        exact = {each.id for each in (await filler.ask(recollect, STREAM, place, cue, LIMIT)).candidates}
        for name, way in ways.items():
            started = time.perf_counter()
            hits = way(owner, scope_id, cue)
            times[name].append((time.perf_counter() - started) * 1000)
            # The last two may change places by how numbers are rounded.
            assert len(exact.intersection(hits)) >= len(exact) - 1, f"{name} ranks differently"
    return {name: median(measured) for name, measured in times.items()}


async def measure_coarse(recollect: Recollect, mind: Mind, rounds: int) -> dict[str, float]:
    """Count how many of the true hits are found where a search by vector goes first, and scaling is among its own."""
    place = await filler.place_of(recollect, mind)
    kept = []
    for cue in World.make(DIMENSIONS).draw(rounds, np.random.default_rng(4)):
        exact = {each.id for each in (await filler.ask(recollect, STREAM, place, cue, LIMIT)).candidates}
        coarse = elsewhere.rank_in_numpy(recollect.addresses.owner, place.scope_id or 0, cue, coarsely=True)
        kept.append(len(exact.intersection(coarse)))
    return {"coarse": fmean(kept)}


async def measure_large(recollect: Recollect, mind: Mind, world: World, count: int) -> dict[str, float]:
    """Compare the method for large scopes with the exact one: which hits it finds, and how soon."""
    cues = world.draw(count + WARMING, np.random.default_rng(3))
    indexed = await filler.place_of(recollect, mind)
    places = {"exact": replace(indexed, approximate_space=None), "near-exact": indexed}
    hits: dict[str, list[frozenset[UUID]]] = {method: [] for method in places}
    times: dict[str, list[float]] = {method: [] for method in places}
    with Progress(console=console) as progress:
        for turn in progress.track(range(0, len(cues), TURN), description=f"{count} cues"):
            for (method, place), cue in product(places.items(), cues[turn : turn + TURN]):
                started = time.perf_counter()
                proposal = await filler.ask(recollect, STREAM, place, cue, LIMIT)
                times[method].append((time.perf_counter() - started) * 1000)
                hits[method].append(frozenset(each.id for each in proposal.candidates))
                assert proposal.method == method
    overlaps = [len(exact & near) for exact, near in zip(*hits.values(), strict=True)]
    exact_ms, near_ms = (median(measured[WARMING:]) for measured in times.values())
    return {
        "exact_ms": exact_ms, "near_ms": near_ms, "ratio": near_ms / exact_ms,
        "overlap": fmean(overlaps), "worst": min(overlaps), "complete": overlaps.count(LIMIT) / len(overlaps),
    }  # fmt: skip


async def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000], help="lives ranked exactly")
    parser.add_argument("--large", type=int, nargs="*", default=[100_000, 1_000_000], help="lives given an index")
    parser.add_argument("--noise", type=int, nargs="*", default=[], help="indexed lives of vectors that are pure noise")
    parser.add_argument("--rounds", type=int, default=60, help="calls of each sort on every exact life")
    parser.add_argument("--cues", type=int, default=200, help="cues put to every indexed life")
    parser.add_argument("--folder", type=Path, help="keep the database here, and use what is there")
    asked = parser.parse_args()
    figures: Figures = {}
    with kept_or_new(asked.folder) as folder, Cluster(folder / "postgres", settings=SETTINGS) as cluster:
        async with running(cluster, "exact") as recollect:
            figures |= await measure_sizes(recollect, asked)
        async with running(cluster, "large") as recollect:
            figures |= await measure_indexed(recollect, asked)
    OUT.mkdir(exist_ok=True)
    (OUT / "stream.json").write_text(json.dumps(figures, indent=1))
    print_figures(figures)


@contextmanager
def kept_or_new(folder: Path | None) -> Iterator[Path]:
    """Give the folder that was asked for, or one that is removed afterwards."""
    if folder is None:
        with open_folder("stream") as made:
            yield made
    else:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        yield folder


async def measure_sizes(recollect: Recollect, asked: argparse.Namespace) -> Figures:
    """Make the lives that are ranked exactly, then measure each."""
    minds = {size: await recollect.mind(f"life-{size}") for size in asked.sizes}
    with Progress(console=console) as progress:
        for size, mind in minds.items():
            await live(recollect, mind, size, World.make(DIMENSIONS), progress)
    figures: Figures = {}
    for size, mind in minds.items():
        console.print(f"ranking {size:,} memories, inside and outside of the database")
        figures[f"exact {size}"] = (
            await measure_exact(recollect, mind, asked.rounds)
            | await measure_engine(recollect, mind, asked.rounds)
            | await measure_elsewhere(recollect, mind, size)
            | await measure_coarse(recollect, mind, asked.rounds)
        )
    return figures


async def measure_indexed(recollect: Recollect, asked: argparse.Namespace) -> Figures:
    """Make the lives that are given an index, then measure each."""
    wanted = [("large", size) for size in asked.large] + [("noise", size) for size in asked.noise]
    figures: Figures = {}
    for name, size in wanted:
        world = World.make(DIMENSIONS, isotropic=name == "noise")
        mind = await recollect.mind(f"{name}-{size}")
        with Progress(console=console) as progress:
            await live(recollect, mind, size, world, progress)
        with console.status(f"building the index of {size:,} memories"):
            await recollect.operator.spaces.index_large_scopes(size)
        figures[f"{name} {size}"] = await measure_large(recollect, mind, world, asked.cues)
    return figures


def print_figures(figures: Figures) -> None:
    """Print what was measured next to the goal, a column for each life."""
    lines: dict[str, dict[str, Callable[[dict[str, float]], str]]] = {
        "exact": {
            "bare search by vector": lambda row: in_time(row["bare_ms"]),
            "stream, goal 3 x": lambda row: in_time(row["channel_ms"], row["ratio"]),
            "bare, server alone": lambda row: in_time(row["bare_cpu_ms"]),
            "stream, server alone": lambda row: in_time(row["stream_cpu_ms"], row["cpu_ratio"]),
            "whole recall": lambda row: in_time(row["recall_ms"], row["recall_ratio"]),
            "of it, recording access": lambda row: in_time(row["access_ms"]),
            "all rows to numpy": lambda row: in_time(row["numpy_ms"]),
            "all rows to Python": lambda row: in_time(row["python_ms"]),
            "right, nearest 100 first": lambda row: f"{row['coarse']:.1f} of {LIMIT}",
        },
        "indexed": {
            "exact": lambda row: in_time(row["exact_ms"]),
            "near-exact, goal 0.25 x": lambda row: in_time(row["near_ms"], row["ratio"]),
            "right, goal 29 of 30": lambda row: f"{row['overlap']:.2f}, worst {row['worst']:.0f}",
            "answers wholly right": lambda row: f"{row['complete']:.0%}",
        },
    }
    for sort, measured in lines.items():
        lives = {name: row for name, row in figures.items() if name.startswith("exact") == (sort == "exact")}
        table = Table("memories", *(f"{int(name.split()[1]):,} {name.split()[0]}" for name in lives))
        for title, show in measured.items():
            table.add_row(title, *map(show, lives.values()))
        if lives:
            console.print(table)


def in_time(milliseconds: float, ratio: float | None = None) -> str:
    """Write a time, and how it compares, with as many digits as mean something."""
    time_taken = f"{milliseconds:,.0f} ms" if milliseconds >= 100 else f"{milliseconds:.3g} ms"
    return time_taken if ratio is None else f"{time_taken}, {ratio:.2f} x"


if __name__ == "__main__":
    uvloop.run(main())  # the loop that the server runs on
