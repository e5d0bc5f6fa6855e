"""Measure what it is worth that the first of two speakers whom a question names is taken for who did it.

make bench BENCH=speakers

LoCoMo's questions that name two of those who spoke are asked by each share of the others, with all else as it is;
what they gain is paired by question, for the half that weights were learned on and for the half held out.
"""

from __future__ import annotations

from collections import defaultdict
from unittest.mock import patch

import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from datasets import in_training, load
from quality import Asked, average, difference, open_embedder
from recollect.core.recall import preferences
from recollect.core.recall.quality import measure as measure_ranking
from stored import serving, store

SET = "locomo"
EQUAL = 1.0
SHARES = (EQUAL, 0.75, 0.5, 0.25)
"""What others than the first count; with the first of these shares, all count alike."""


async def measure(console: Console, bar: Progress) -> tuple[dict[float, list[Asked]], int]:
    """Ask every question that names two speakers by each share; return how many questions there are in all."""
    embedder = open_embedder(console)
    rows: defaultdict[float, list[Asked]] = defaultdict(list)
    conversations = load(SET)
    task = bar.add_task("questions", total=sum(len(conversation.questions) for conversation in conversations))
    async with serving(embedder) as recollect:
        number = total = 0
        async for stored in store(recollect, SET, conversations, embedder, bar):
            for question, cue in stored.cues:
                total += 1
                bar.advance(task)
                for share in SHARES:
                    with patch.object(preferences, "OTHERS", share):
                        answer = await stored.mind.recall(cue)
                    if len(answer.facets.names) < 2:
                        break
                    ranked = [stored.turns[hit.memory.id] for hit in answer.hits]
                    quality = measure_ranking(ranked, question.gold)
                    rows[share].append(Asked(question.category, in_training(SET, number), quality, 0.0))
            number += 1
    return rows, total


def main() -> None:
    """Print a row for each share."""
    console = Console(width=120)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        rows, total = uvloop.run(measure(console, bar))
    print(f"{len(rows[EQUAL])} of {total} questions name two speakers; R@10 and what it gains, with 95 %\n")
    print("| others count | all | gain | training half | held-out half |")
    print("|---|---|---|---|---|")
    for share, asked in rows.items():
        gains = [difference(asked, rows[EQUAL])]
        for training in (True, False):
            pairs = [(new, old) for new, old in zip(asked, rows[EQUAL], strict=True) if new.training is training]
            gains.append(difference([new for new, _ in pairs], [old for _, old in pairs]))
        print(f"| {share:g} | {average(asked).recall_10:.3f} | {' | '.join(gains)} |")


if __name__ == "__main__":
    main()
