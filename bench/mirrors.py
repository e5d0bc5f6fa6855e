"""Measure mirrors against the record: what they add to recall, and how far they lag while it is written to.

make bench BENCH=mirrors [ARGS="--set lifebench --questions 300 --seconds 30"]

An OpenSearch node is started from its packages as the tests start it (a JDK of 21 or later, and Maven). Questions are
asked of our channels, of ours with the mirror beside them, and of the mirror in place of words and meaning. Writes have
their vectors; a worker in a process of its own feeds the mirror.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import numpy as np
import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from datasets import FILES, in_training, load
from ground import DIMENSIONS, OUT, NoEmbedder, open_folder
from quality import Asked, average, difference, open_embedder
from recollect import Recollect, Settings
from recollect.core.recall.quality import measure as measure_ranking
from recollect.core.recall.weights import DEFAULT_CHANNELS
from recollect.jobs.mirror import feed_tenant
from recollect.llm.embedder import Embedder
from recollect.mind.service import Addresses
from recollect.models.memories import NewMemory
from recollect.settings import to_variable
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare
from stored import serving, store

TESTS = Path(__file__).resolve().parents[1] / "tests"
MIRROR = "opensearch"
OTHERS = tuple(name for name in DEFAULT_CHANNELS if name not in {"text", "vector"})
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "ours": (),
    "ours and opensearch": (*DEFAULT_CHANNELS, MIRROR),
    "opensearch for words and meaning": (MIRROR, *OTHERS),
    "opensearch alone": (MIRROR,),
}
SCOPES, TOGETHER = 40, 4
"""Writes go to so many scopes in turn, so many memories a call: one process cannot make 200 calls a second."""


@contextmanager
def searching() -> Iterator[dict[str, Any]]:
    """Run an OpenSearch node, and give the settings of a mirror in it."""
    sys.path.append(str(TESTS))
    running = import_module("support.engines.servers").running
    with open_folder("mirrors") as folder, running("search", folder / "search") as node:
        yield {
            "opensearch": {"url": node.url, "replicas": 0, "shards": 2},
            "mirrors": {"timeout_seconds": 120},
        }


async def measure(name: str, questions: int, embedder: Embedder | None, bar: Progress) -> dict[str, list[Asked]]:
    """Ask every question of a set of each variant."""
    rows: dict[str, list[Asked]] = {label: [] for label in VARIANTS}
    conversations = load(name, questions)
    task = bar.add_task("questions", total=sum(len(each.questions) for each in conversations))
    with searching() as settings:
        async with serving(embedder, **settings) as recollect:
            await recollect.operator.mirrors.build(MIRROR, lambda _: None)
            number = 0
            async for stored in store(recollect, name, conversations, embedder, bar):
                await feed_tenant(recollect.parts.database, recollect.parts.mirrors, stored.mind.access.scope.tenant_id)
                for question, cue in stored.cues:
                    for label, channels in VARIANTS.items():
                        started = perf_counter()
                        answer = await stored.mind.recall(replace(cue, channels=channels))
                        milliseconds = (perf_counter() - started) * 1000
                        assert not channels or answer.methods[MIRROR] == "mirror", answer.methods
                        ranked = [stored.turns[hit.memory.id] for hit in answer.hits]
                        quality = measure_ranking(ranked, question.gold)
                        rows[label].append(Asked(question.category, in_training(name, number), quality, milliseconds))
                    bar.advance(task)
                number += 1
    bar.remove_task(task)
    return rows


@asynccontextmanager
async def written_to(settings: Mapping[str, Any]) -> AsyncIterator[Recollect]:
    """Open Recollect with a mirror on a database of its own, and a worker in a process of its own."""
    with open_folder("lag") as folder, Cluster(folder / "postgres") as cluster:
        await ensure_database(cluster.dsn(), "lag")
        addresses = Addresses(cluster.dsn("lag", "recollect_service"), cluster.dsn("lag"))
        await prepare(addresses, NoEmbedder())  # type: ignore[arg-type]
        async with connected(
            Settings(request_timeout_seconds=60, enrich_steps="", **settings), addresses, None
        ) as recollect:
            await recollect.operator.mirrors.build(MIRROR, lambda _: None)
            variables = {
                "RECOLLECT_DATABASE_URL": addresses.service,
                "RECOLLECT_OWNER_DATABASE_URL": addresses.owner,
                **{
                    to_variable(f"{group}.{name}"): str(table[name])
                    for group, table in settings.items()
                    for name in table
                },
            }
            command = [sys.executable, "-c", "from recollect.doors.cli.main import main; main()", "worker"]
            process = subprocess.Popen(command, env={**os.environ, **variables}, stderr=subprocess.DEVNULL)  # noqa: ASYNC220
            try:
                yield recollect
            finally:
                process.terminate()
                process.wait()


async def measure_lag(rate: int, seconds: float) -> dict[str, float]:
    """Write at a rate, and look at the lag four times a second."""
    with searching() as settings:
        async with written_to(settings) as recollect:
            minds = [await recollect.mind("bench", f"user-{number}") for number in range(SCOPES)]
            rng = np.random.default_rng(7)
            for mind in minds:
                await mind.remember(make_notes(0, rng))
            # The worker takes its time to start.
            await catch_up(recollect)
            lags: list[float] = []
            watching = asyncio.create_task(watch(recollect, lags))
            began, calls, writing = perf_counter(), 0, set[asyncio.Task[Any]]()
            while (passed := perf_counter() - began) < seconds:
                while calls < passed * rate / TOGETHER:
                    notes = make_notes(calls, rng)
                    writing.add(asyncio.create_task(minds[calls % SCOPES].remember(notes)))
                    calls += 1
                await asyncio.sleep(0.01)
                writing = {task for task in writing if not task.done()}
            await asyncio.gather(*writing)
            reached = calls * TOGETHER / (perf_counter() - began)
            stopped = perf_counter()
            await catch_up(recollect)
            drained = perf_counter() - stopped
            watching.cancel()
            found = await recollect.operator.mirrors.verify(MIRROR, lambda _: None)
    twentieths = quantiles(lags, n=20)
    return {
        "memories a second": reached,
        "median lag": median(lags),
        "p95 lag": twentieths[-1],
        "largest lag": max(lags),
        "even with the record after": drained,
        "rows differing": found.differing,
    }


async def catch_up(recollect: Recollect) -> None:
    """Wait until the mirror lacks nothing."""
    while any(each.behind for each in await recollect.operator.mirrors.status(probe=False)):  # noqa: ASYNC110
        await asyncio.sleep(0.1)


def make_notes(call: int, rng: np.random.Generator) -> list[NewMemory]:
    """Make the memories of one call, with vectors of chance."""
    vectors = rng.normal(size=(TOGETHER, DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        NewMemory(f"note {call} {each} of the harbour", embedding=vector.tolist())
        for each, vector in enumerate(vectors)
    ]


async def watch(recollect: Recollect, lags: list[float]) -> None:
    """Note the lag, as the metric has it."""
    while True:
        [standing] = await recollect.operator.mirrors.status(probe=False)
        lags.append(standing.lag_seconds)
        await asyncio.sleep(0.25)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=FILES, default="locomo", dest="name")
    parser.add_argument("--questions", type=int, default=0, help="about so many; 0 = all")
    parser.add_argument("--rate", type=int, default=200, help="memories a second")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--part", choices=["quality", "lag"], action="append")
    arguments = parser.parse_args()
    parts = arguments.part or ["quality", "lag"]
    console = Console(width=120)
    figures: dict[str, Any] = {}
    if "quality" in parts:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            rows = uvloop.run(measure(arguments.name, arguments.questions, open_embedder(console), bar))
        print(f"| {arguments.name} | questions | R@5 | R@10 | against ours | nDCG@10 | ms |")
        print("|---|---|---|---|---|---|---|")
        for label, some in rows.items():
            mean, pace = average(some), median(each.milliseconds for each in some)
            gained = "" if label == "ours" else difference(some, rows["ours"])
            cells = (f"{mean.recall_5:.3f}", f"{mean.recall_10:.3f}", gained, f"{mean.ndcg_10:.3f}", f"{pace:.0f}")
            print(f"| {label} | {len(some)} | {' | '.join(cells)} |")
            figures[label] = {"recall_10": mean.recall_10, "ndcg_10": mean.ndcg_10, "milliseconds": pace}
    if "lag" in parts:
        figures["lag"] = uvloop.run(measure_lag(arguments.rate, arguments.seconds))
        for name, value in figures["lag"].items():
            print(f"| {name} | {value:.2f} |")
    OUT.mkdir(exist_ok=True)
    (OUT / "mirrors.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
