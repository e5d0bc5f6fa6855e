"""Ask one very large scope by our own index, by an OpenSearch mirror and by both, and compare with the exact answer.

    make bench BENCH=mirror_scope                                  # 1,000,000 memories; an hour or two on two cores
    make bench BENCH=mirror_scope ARGS="--size 2000 --cues 20"     # a short form

The exact answer is taken before the scope has an index. Methods alternate call by call, and medians are compared.
Vectors are those of made-up lives (lives.py): they cluster as texts do.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from statistics import fmean, median
from uuid import UUID

import numpy as np
import uvloop
from rich.console import Console
from rich.progress import Progress

from ground import DIMENSIONS, LARGE_MACHINE, OUT, WARMING, open_folder, running
from lives import World, live
from mirrors import MIRROR, searching
from recollect import Mind, Recollect
from recollect.models import Cue
from recollect.store.embedded.cluster import Cluster

LIMIT = 30
METHODS: Mapping[str, tuple[str, ...]] = {
    "our index": ("vector",),
    "opensearch": (MIRROR,),
    "both": ("vector", MIRROR),
}
USED = {"vector": "approximate", MIRROR: "mirror"}
console = Console(width=120)


async def find(mind: Mind, cue: np.ndarray, channels: tuple[str, ...]) -> tuple[frozenset[UUID], Mapping[str, str]]:
    """Recall by meaning alone, and say how."""
    answer = await mind.recall(Cue(embedding=cue, channels=channels, limit=LIMIT, touch=False))
    return frozenset(hit.memory.id for hit in answer.hits), answer.methods


async def fill(recollect: Recollect, mind: Mind, size: int) -> World:
    """Make the life."""
    world = World.make(DIMENSIONS)
    with Progress(console=console) as progress:
        await live(recollect, mind, size, world, progress)
    return world


async def compare(mind: Mind, cues: np.ndarray, truth: list[frozenset[UUID]]) -> dict[str, dict[str, float]]:
    """Put every cue to each method in turn."""
    times: dict[str, list[float]] = {label: [] for label in METHODS}
    found: dict[str, list[int]] = {label: [] for label in METHODS}
    for number, cue in enumerate(cues):
        hits: dict[str, frozenset[UUID]] = {}
        for label, channels in METHODS.items():
            started = time.perf_counter()
            hits[label], methods = await find(mind, cue, channels)
            times[label].append((time.perf_counter() - started) * 1000)
            assert all(methods[each] == USED[each] for each in channels), methods
        # Two channels are ranked by more than meaning: what counts is what they propose together.
        hits["both"] = hits["our index"] | hits["opensearch"]
        for label, ids in hits.items():
            found[label].append(len(ids & truth[number]))
    return {
        label: {"milliseconds": median(times[label][WARMING:]), "share": fmean(found[label]) / LIMIT,
                "worst": min(found[label]) / LIMIT}
        for label in METHODS
    }  # fmt: skip


@asynccontextmanager
async def opened() -> AsyncIterator[Recollect]:
    """Run a server and an OpenSearch node of their own."""
    with (
        open_folder("scope") as folder,
        Cluster(folder / "postgres", settings=LARGE_MACHINE) as cluster,
        searching() as settings,
    ):
        async with running(cluster, "scope", **settings) as recollect:
            yield recollect


async def measure(size: int, count: int) -> dict[str, dict[str, float]]:
    """Fill, answer exactly, build the index and the mirror, and compare."""
    async with opened() as recollect:
        mind = await recollect.mind("life")
        world = await fill(recollect, mind, size)
        cues = world.draw(count + WARMING, np.random.default_rng(3))
        started = time.perf_counter()
        truth = [(await find(mind, cue, ("vector",)))[0] for cue in cues]
        exact = (time.perf_counter() - started) * 1000 / len(cues)
        started = time.perf_counter()
        with console.status(f"building the index of {size:,} memories"):
            await recollect.operator.spaces.index_large_scopes(size)
        console.print(f"the index was built in {time.perf_counter() - started:,.0f} s")
        started = time.perf_counter()
        with console.status(f"filling the mirror with {size:,} memories"):
            await recollect.operator.mirrors.build(MIRROR, lambda _: None)
        console.print(f"the mirror was filled in {time.perf_counter() - started:,.0f} s")
        figures = await compare(mind, cues, truth)
    return {"exact": {"milliseconds": exact, "share": 1.0, "worst": 1.0}} | figures


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--cues", type=int, default=100)
    asked = parser.parse_args()
    figures = uvloop.run(measure(asked.size, asked.cues))
    print(f"| {asked.size:,} memories | ms | of the exact 30 | worst cue |\n|---|---|---|---|")
    for label, row in figures.items():
        print(f"| {label} | {row['milliseconds']:,.1f} | {row['share']:.3f} | {row['worst']:.2f} |")
    OUT.mkdir(exist_ok=True)
    (OUT / "mirror_scope.json").write_text(json.dumps({"size": asked.size, **figures}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
