"""Measure what one channel or preference should weigh: every question is asked by each weight, with all else as it is.

make bench BENCH=weighing ARGS="vector 0 1 2 2.5 3 4 --set madial-zh"

Gains are paired by question against the weight in use, apart for the half that weights are chosen on and for the half
held out. With RECOLLECT_EMBEDDER=openai it is your own model that is measured.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from datasets import FILES, in_training, load
from quality import Asked, average, describe_half, open_embedder
from recollect.core.recall.quality import measure as measure_ranking
from recollect.llm.embedder import Embedder
from stored import serving, store

IN_USE = "in use"


async def measure(
    name: str, weights: Mapping[str, Mapping[str, float]], questions: int, embedder: Embedder | None, bar: Progress
) -> dict[str, list[Asked]]:
    """Ask every question of a set by each of some weights."""
    rows: defaultdict[str, list[Asked]] = defaultdict(list)
    conversations = load(name, questions)
    task = bar.add_task(name, total=sum(len(conversation.questions) for conversation in conversations))
    async with serving(embedder) as recollect:
        number = 0
        async for stored in store(recollect, name, conversations, embedder, bar):
            for question, cue in stored.cues:
                for label, tried in weights.items():
                    answer = await stored.mind.recall(replace(cue, weights=tried))
                    ranked = [stored.turns[hit.memory.id] for hit in answer.hits]
                    quality = measure_ranking(ranked, question.gold)
                    rows[label].append(Asked(question.category, in_training(name, number), quality, 0.0))
                bar.advance(task)
            number += 1
    bar.remove_task(task)
    return dict(rows)


def main() -> None:
    """Print a table for each set, a row for each weight."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="a channel or a preference")
    parser.add_argument("weights", type=float, nargs="+")
    parser.add_argument("--set", action="append", choices=FILES, dest="sets", required=True)
    parser.add_argument("--questions", type=int, default=0, help="about so many per set; 0 = all")
    arguments = parser.parse_args()
    console = Console(width=120)
    embedder = open_embedder(console)
    weights = {IN_USE: {}, **{f"{each:g}": {arguments.name: each} for each in arguments.weights}}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        for name in arguments.sets:
            found = uvloop.run(measure(name, weights, arguments.questions, embedder, bar))
            print(f"{name}, {len(found[IN_USE])} questions: R@10 by the weight of {arguments.name}, and its gain\n")
            print("| weight | training half | held-out half | all |\n|---|---|---|---|")
            for label, rows in found.items():
                halves = [describe_half(rows, found[IN_USE], training=training) for training in (True, False)]
                print(f"| {label} | {' | '.join(halves)} | {average(rows).recall_10:.3f} |")
            print()


if __name__ == "__main__":
    main()
