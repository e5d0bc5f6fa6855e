"""Measure what it is worth that facts and summaries which are found lend their scores to the messages behind them.

make bench BENCH=learned [ARGS="--questions 300 --weights 0 4"]

LoCoMo with the observations and session summaries of its own file, as a stand-in for what a model would learn: once
with the evidence that the file names, and once with facts that rest on the whole run of messages around it, as
enrichment stores them. Every question is asked by each weight. What is gained is paired by question, against
LoCoMo alone.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from datasets import LEARNED, Conversation, LearnedText, in_training, load
from quality import Asked, average, describe_half, open_embedder
from recollect.core.recall.evidence_scores import EVIDENCE
from recollect.core.recall.quality import measure as measure_ranking
from recollect.llm.embedder import Embedder
from recollect.models.memories import Kind
from stored import serving, store

WEIGHTS = (0.0, 2.0, 3.0, 4.0, 5.0)
RUN = 6
"""Messages in a run that a fact rests on, as enrichment would have it."""
MULTI_HOP = "multi-hop"


def widen(conversation: Conversation) -> Conversation:
    """Let every fact rest on the whole run of messages that its evidence stands in."""
    learned = [rest_on_runs(conversation, each) if each.kind is Kind.FACT else each for each in conversation.learned]
    return replace(conversation, learned=tuple(learned))


def rest_on_runs(conversation: Conversation, fact: LearnedText) -> LearnedText:
    """Add the other messages of the runs; a session begins a new one."""
    runs: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    counts: defaultdict[str, int] = defaultdict(int)
    names = []
    for place, turn in enumerate(conversation.turns):
        names.append((turn.session, counts[turn.session] // RUN))
        runs[names[-1]].append(place)
        counts[turn.session] += 1
    chosen = {place for each in fact.evidence for place in runs[names[each]]}
    return replace(fact, evidence=tuple(sorted(chosen)))


async def measure(
    label: str,
    conversations: Sequence[Conversation],
    weights: Sequence[float],
    embedder: Embedder | None,
    bar: Progress,
) -> dict[str, tuple[list[Asked], list[Asked]]]:
    """Ask every question by each weight; count over messages, and over all hits."""
    found: defaultdict[str, tuple[list[Asked], list[Asked]]] = defaultdict(lambda: ([], []))
    task = bar.add_task(label, total=sum(len(conversation.questions) for conversation in conversations))
    async with serving(embedder) as recollect:
        number = 0
        async for stored in store(recollect, LEARNED, conversations, embedder, bar):
            turns = {*stored.turns.values()}
            for question, cue in stored.cues:
                for weight in weights:
                    answer = await stored.mind.recall(replace(cue, weights={EVIDENCE: weight}))
                    hits = [stored.turns.get(hit.memory.id, str(hit.memory.id)) for hit in answer.hits]
                    messages = [hit for hit in hits if hit in turns]
                    for rows, ranked in zip(found[f"{label}, {weight:g}"], (messages, hits), strict=True):
                        quality = measure_ranking(ranked, question.gold)
                        rows.append(Asked(question.category, in_training(LEARNED, number), quality, 0.0))
                bar.advance(task)
            number += 1
    bar.remove_task(task)
    return dict(found)


def main() -> None:
    """Print a row for each weight."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=0, help="about so many; 0 = all")
    parser.add_argument("--weights", type=float, nargs="+", default=WEIGHTS)
    arguments = parser.parse_args()
    console = Console(width=120)
    embedder = open_embedder(console)
    named = load(LEARNED, arguments.questions)
    sets = {
        "nothing learned": [replace(each, learned=()) for each in named],
        "evidence as named": named,
        f"runs of {RUN}": [widen(each) for each in named],
    }
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    found: dict[str, tuple[list[Asked], list[Asked]]] = {}
    with Progress(*columns, console=console, transient=True) as bar:
        for label, conversations in sets.items():
            weights = arguments.weights if conversations[0].learned else (0.0,)
            found |= uvloop.run(measure(label, conversations, weights, embedder, bar))
    base = next(iter(found.values()))[0]
    print("R@10 over messages, and what it gains with 95 % of it\n")
    print("| evidence, weight | training half | held-out half | multi-hop, held out | multi-hop, all | over all hits |")
    print("|---|---|---|---|---|---|")
    for label, (messages, hits) in found.items():
        multi_hop = [row for row in messages if row.category == MULTI_HOP]
        cells = (
            describe_half(messages, base, training=True),
            describe_half(messages, base, training=False),
            describe_half(messages, base, training=False, category=MULTI_HOP),
            f"{average(multi_hop).recall_10:.3f}",
            f"{average(hits).recall_10:.3f}",
        )
        print(f"| {label} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
