"""Measure processor time of a recall with a filter against one without, in one run.

    uv run python bench/filters.py                              # scopes of 1,000 and 10,000 memories; about a minute
    uv run python bench/filters.py --scopes 300 --rounds 2      # the short form that CI runs

Each filter admits about one memory in fifty, unless its name says otherwise. All are asked the same questions in turns,
with their vectors; what is compared is processor time of program and server together.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import uvloop
from rich.console import Console
from rich.progress import track
from rich.table import Table

from arm import CHUNK, NOW, Arm
from ground import LARGE_MACHINE, OUT, WARMING, open_folder, running
from recollect import NewMemory
from recollect.models import Cue
from recollect.models.memories import Kind
from recollect.store.embedded.cluster import Cluster
from yardstick import Figures, prepare, sum_up

SHARE, TURNS = 50, 10
FILTERS: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    "since": {"since": NOW - timedelta(days=365) / SHARE},
    "until": {"until": NOW - timedelta(days=365) * (1 - 1 / SHARE)},
    "kinds": {"kinds": (Kind.THOUGHT,)},
    "speakers": {"speakers": ("Ann",)},
    "min_importance": {"min_importance": 9.0},
    "pinned": {"pinned": True},
    "conversations": {"conversations": ("c0",)},
    "topics_only": {"topics": ("travel->Japan",), "topics_only": True},
    "topics first": {"topics": ("travel->Japan",)},
    "where": {"where": ("project == alpha",)},
    "since, where": {"since": NOW - timedelta(days=36), "where": ("project == alpha",)},
    "half: since": {"since": NOW - timedelta(days=182)},
    "all: min_importance": {"min_importance": 2.0},
}
console = Console()


class FilteredArm(Arm):
    """Scopes of which every fiftieth memory has something of its own."""

    async def load(self, scope: str, count: int) -> None:
        """Load texts into a scope, one after the other over a year, and a conversation."""
        mind = await self.mind(scope)
        for start in range(0, count, CHUNK):
            await mind.load([self.make(number, count) for number in range(start, min(count, start + CHUNK))])
        for number in range(0, 2 * TURNS, 2):
            await self.append(scope, number * 10, 2)

    def make(self, number: int, count: int) -> NewMemory:
        """Make one memory."""
        own = number * 7 % SHARE
        return NewMemory(
            self.texts[number][1],
            Kind.THOUGHT if own == 0 else Kind.EVENT,
            "Ann" if own == 1 else self.texts[number][0],
            9.0 if own == 2 else 5.0,
            topic="travel->Japan" if own == 3 else "",
            metadata={"project": "alpha" if own == 4 else "beta"},
            pinned=own == 5,
            occurred_at=NOW - timedelta(days=365) * ((count - number) / count),
            embedding=self.vectors[number].tolist(),
        )

    async def recall_by(self, scope: str, number: int, only: str) -> int:
        """Recall by one cue and a filter."""
        vector = self.cue_vectors[number].tolist()
        cue = Cue(self.cues[number], embedding=vector, touch=False, now=NOW, **FILTERS[only])
        return len((await (await self.mind(scope)).recall(cue)).hits)


async def measure(arm: FilteredArm, scope: int, rounds: int) -> Figures:
    """Ask by every filter in turns."""
    spent: dict[str, list[dict[str, Any]]] = {name: [] for name in FILTERS}
    for number in track(range(rounds + WARMING), f"recalls of {scope:,}", console=console):
        for name, taken in spent.items():
            taken.append(await arm.obey({"call": "recall_by", "scope": str(scope), "number": number, "only": name}))
    figures = {name: sum_up(taken) for name, taken in spent.items()}
    for name, taken in spent.items():
        figures[name] |= {"ratio": figures[name]["cpu"] / figures["none"]["cpu"], "hits": taken[-1]["answer"]}
    return {f"{scope} {name}": row for name, row in figures.items()}


async def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scopes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=40)
    asked = parser.parse_args()
    figures: Figures = {}
    with open_folder("filters") as folder, Cluster(folder / "postgres", settings=LARGE_MACHINE) as cluster:
        await prepare(folder, max(asked.scopes), asked.rounds + WARMING)
        async with running(cluster, "filters") as recollect:
            arm = FilteredArm(recollect, folder)
            for scope in asked.scopes:
                await arm.load(str(scope), scope)
            await arm.vacuum()
            for scope in asked.scopes:
                figures |= await measure(arm, scope, asked.rounds)
            arm.watcher.close()
    OUT.mkdir(exist_ok=True)
    (OUT / "filters.json").write_text(json.dumps(figures, indent=1))
    table = Table("filter", "program ms", "server ms", "both", "of none", "hits", title="medians")
    for name, row in figures.items():
        cells = (f"{row[key]:.2f}" for key in ("program", "server", "cpu", "ratio"))
        table.add_row(name, *cells, f"{row['hits']:g}")
    console.print(table)


if __name__ == "__main__":
    uvloop.run(main())
