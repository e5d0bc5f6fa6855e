"""Measure scopes that go to object storage and come back: bytes, time of a move, and the first recall afterwards.

    uv run python bench/cold.py                                           # 10,000 scopes of 20 memories
    uv run python bench/cold.py --scopes 20 --recalls 5                   # the short form that CI runs
    uv run python bench/cold.py --url s3://bucket/x --options "endpoint=http://127.0.0.1:7070 ..."

A scope, half of it messages, is written through the library and copied into others. The export of all of them, with
all vectors, is made before they leave and after the last is back: the two must be the same to the byte. Objects go to
a folder of this machine unless a storage is named.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import psycopg
import uvloop
from rich.console import Console
from rich.table import Table

import filler
from ground import DIMENSIONS, LARGE_MACHINE, OUT, open_folder, running
from growth import ROUNDS, TENANT, divide_sizes, grow, measure_sizes, write_scope
from recollect import Mind, Recollect
from recollect.models import Cue
from recollect.models.imports import ExportRequest
from recollect.models.service import Caller
from recollect.store.embedded.cluster import Cluster
from yardstick import read_texts

AGENT, OTHERS = "template", "others"
console = Console()


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    scopes: int
    memories: int
    recalls: int


class HashedFile:
    """A file of which only the hash is kept."""

    def __init__(self) -> None:
        self.hash, self.bytes = hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        """Take data."""
        self.hash.update(data)
        self.bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing."""


async def export_all(recollect: Recollect, caller: Caller) -> tuple[str, float]:
    """Export every scope with its vectors; return the hash and the seconds."""
    file, begun = HashedFile(), time.perf_counter()
    await recollect.operator.exports.write_export_file(caller, ExportRequest(vectors=("all",)), file)  # type: ignore[arg-type]
    return file.hash.hexdigest(), time.perf_counter() - begun


async def recall_twice(mind: Mind, cue: Cue) -> tuple[float, float]:
    """Recall from a scope that may be cold, and again; return the milliseconds of each."""
    times = []
    for _ in range(2):
        begun = time.perf_counter()
        found = await mind.recall(cue)
        times.append((time.perf_counter() - begun) * 1000)
        assert found.hits
    return times[0], times[1]


def quantiles(times: list[float]) -> dict[str, float]:
    """Give the median and the 95th percentile."""
    return {"p50": float(np.quantile(times, 0.5)), "p95": float(np.quantile(times, 0.95))}


async def measure(recollect: Recollect, owner: psycopg.Connection, sizes: Sizes) -> dict[str, dict[str, float]]:
    """Send scopes out, recall from some, bring the others back, and compare."""
    texts, _ = read_texts(sizes.memories + sizes.recalls)
    await write_scope(await recollect.mind(AGENT), texts[: sizes.memories], 0)
    [(number,)] = owner.execute("select id from scopes").fetchall()
    owner.execute("vacuum analyze")
    empty = measure_sizes(owner)
    grow(owner, number, 0, sizes.scopes, sizes.memories)
    total = sizes.scopes * sizes.memories
    hot = sum(divide_sizes(owner, empty, total).values())
    caller = replace(await recollect.operator.act_for("default"), tenant_id=TENANT)
    before, exporting = await export_all(recollect, caller)
    cold = replace(recollect.operator.cold, deadline_seconds=0)
    begun = time.perf_counter()
    moved = await cold.out(caller, AGENT)
    out = time.perf_counter() - begun
    assert moved.moved == sizes.scopes, moved
    owner.execute("vacuum full")
    left = sum(divide_sizes(owner, empty, total).values())
    first, second = [], []
    cues = filler.unit_vectors(sizes.recalls, DIMENSIONS, np.random.default_rng(7))
    for place in range(sizes.recalls):
        mind = await recollect.mind(AGENT, str(place), tenant=OTHERS)
        cue = Cue(texts[sizes.memories + place][1], embedding=cues[place], touch=False)
        once, again = await recall_twice(mind, cue)
        first.append(once)
        second.append(again)
    begun = time.perf_counter()
    returned = await cold.back(caller, AGENT)
    back = time.perf_counter() - begun
    assert returned.moved == sizes.scopes - sizes.recalls, returned
    after, _ = await export_all(recollect, caller)
    assert after == before, "the export is another after the return"
    return {
        "scopes": {"out and back": sizes.scopes, "memories": total, "exports that differ": 0},
        "bytes a memory": {"hot": hot, "cold": moved.bytes / total, "left in the database": left},
        "ms a scope": {
            "export": exporting / sizes.scopes * 1000,
            "out": out / sizes.scopes * 1000,
            "back": back / max(returned.moved, 1) * 1000,
        },
        "ms of the first recall": quantiles(first),
        "ms of the second": quantiles(second),
    }


async def run(cluster: Cluster, sizes: Sizes, url: str, options: str) -> dict[str, dict[str, float]]:
    """Measure on a database of its own."""
    async with running(cluster, "cold", cold={"url": url, "options": options}) as recollect:
        with psycopg.connect(recollect.addresses.owner, autocommit=True) as owner:
            return await measure(recollect, owner, sizes)


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scopes", type=int, default=10_000)
    parser.add_argument("--memories", type=int, default=2 * ROUNDS, help="of a scope; a multiple of 20")
    parser.add_argument("--recalls", type=int, default=500, help="scopes that come back by a recall")
    parser.add_argument("--url", default="", help="of an object storage; a folder of this machine if not given")
    parser.add_argument("--options", default="", help="as RECOLLECT_COLD__OPTIONS")
    asked = parser.parse_args()
    sizes = Sizes(asked.scopes, asked.memories, min(asked.recalls, asked.scopes))
    with open_folder("cold") as folder, Cluster(folder / "postgres", settings=LARGE_MACHINE) as cluster:
        url = asked.url or f"file://{Path(folder) / 'objects'}"
        figures = uvloop.run(run(cluster, sizes, url, asked.options))
    for title, rows in figures.items():
        table = Table("", "", title=title)
        for name, value in rows.items():
            table.add_row(name, f"{value:,.1f}")
        console.print(table)
    OUT.mkdir(exist_ok=True)
    (OUT / "cold.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
