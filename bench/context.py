"""Measure one call for a prompt against the recall that it holds, as ratios within one run.

    uv run python bench/context.py                                                  # 10,000 memories, 1,000 messages
    uv run python bench/context.py --memories 500 --messages 100 --rounds 5         # the short form that CI runs

Machines are noisy: the calls alternate, and the same percentiles of each are compared.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np
import psycopg
import uvloop
from rich.console import Console
from rich.table import Table

import filler
from ground import DIMENSIONS, LARGE_MACHINE, OUT, WARMING, open_folder, running
from recollect import Mind, Recollect
from recollect.models import Cue
from recollect.models.conversations import HistoryOptions, NewMessage
from recollect.models.memories import Role
from recollect.store.embedded.cluster import Cluster
from recollect.store.memories.accesses import fold

CHUNK = 2_000
BUDGET = 4_000
FOLD_EVERY = 16
"""So many rounds until the log of accesses is folded, outside of what is timed: a worker would do it."""
console = Console()


async def prepare(mind: Mind, memories: int, messages: int) -> None:
    """Load memories and append a conversation, all with vectors of their own."""
    randomness = np.random.default_rng(0)
    for start in range(0, memories, CHUNK):
        await mind.load(filler.memories(start, min(CHUNK, memories - start), randomness, DIMENSIONS))
    vectors = filler.unit_vectors(messages, DIMENSIONS, randomness)
    roles = (Role.USER, Role.ASSISTANT)
    said = [
        NewMessage(roles[number % 2], filler.sentence(memories + number), embedding=vectors[number])
        for number in range(messages)
    ]
    for start in range(0, messages, 100):
        await mind.conversation("talk").append(said[start : start + 100])


def vacuum(recollect: Recollect) -> None:
    """Do what autovacuum would have done by now."""
    filler.vacuum(recollect)
    with psycopg.connect(recollect.addresses.owner, autocommit=True) as connection:
        for table in ("messages", "conversations"):
            connection.execute(f"vacuum analyze {table}")


async def measure(recollect: Recollect, mind: Mind, rounds: int) -> dict[str, list[float]]:
    """Time a recall, a recall of as many hits as a prompt looks at, a history and a prompt, in turns."""
    vectors = filler.unit_vectors(rounds + WARMING, DIMENSIONS, np.random.default_rng(1))
    cues = [Cue(filler.sentence(number), embedding=vector) for number, vector in enumerate(vectors)]
    conversation, place = mind.conversation("talk"), await filler.place_of(recollect, mind)
    calls: dict[str, Callable[[Cue], Awaitable[object]]] = {
        "recall": mind.recall,
        # Without a trace, or the log would grow by more than any prompt shows.
        "recall of 200": lambda cue: mind.recall(replace(cue, touch=False), limit=200),
        "history": lambda _: conversation.history(HistoryOptions(BUDGET)),
        "context": lambda cue: conversation.context(cue, BUDGET),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number, cue in enumerate(cues):
        if number % FOLD_EVERY == 0:
            await fold(recollect.parts.database, [place.scope_id or 0])
        for name, call in calls.items():
            started = time.perf_counter()
            await call(cue)
            times[name].append((time.perf_counter() - started) * 1000)
    return {name: measured[WARMING:] for name, measured in times.items()}


def conclude(times: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Take percentiles, and compare each with the recall's."""
    figures = {}
    for name, measured in times.items():
        p50, p95 = np.percentile(measured, [50, 95])
        base50, base95 = np.percentile(times["recall"], [50, 95])
        figures[name] = {"p50_ms": p50, "p95_ms": p95, "ratio_p50": p50 / base50, "ratio_p95": p95 / base95}
    return figures


async def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=300)
    asked = parser.parse_args()
    with open_folder("context") as folder, Cluster(folder / "postgres", settings=LARGE_MACHINE) as cluster:
        async with running(cluster, "context") as recollect:
            mind = await recollect.mind("bench")
            await prepare(mind, asked.memories, asked.messages)
            vacuum(recollect)
            made = await mind.conversation("talk").context(Cue(filler.sentence(7), touch=False), BUDGET)
            figures = conclude(await measure(recollect, mind, asked.rounds))
    OUT.mkdir(exist_ok=True)
    (OUT / "context.json").write_text(json.dumps(figures, indent=1))
    table = Table("call", "p50", "p95", "by recall's p50", "by recall's p95")
    table.title = f"{asked.memories:,} memories, {asked.messages:,} messages, {BUDGET:,} tokens"
    table.caption = f"{len(made.hits)} memories and {len(made.history.messages)} messages in a prompt"
    for name, row in figures.items():
        ratios = (f"{row['ratio_p50']:.2f} x", f"{row['ratio_p95']:.2f} x")
        table.add_row(name, f"{row['p50_ms']:.2f} ms", f"{row['p95_ms']:.2f} ms", *ratios)
    console.print(table)


if __name__ == "__main__":
    uvloop.run(main())
