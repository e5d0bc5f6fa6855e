"""Does it help to prefer what was accessed lately? Ask questions in any order, each noting its hits, and try weights.

uv run python bench/accesses.py [--set locomo --set lifebench] [--questions 600]

Every scope is asked its questions in a shuffled order with `touch=True`, so what one recall found is fresh for the
next. The recalls are kept, and ranked again with each weight of the preference `accessed`. The weight is chosen on one
half of a set and reported on the other, with the interval that chance explains (bootstrap over questions).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import uvloop
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from datasets import FILES, in_training, load
from ground import OUT
from quality import open_embedder
from recollect.core.recall.fusion import fuse
from recollect.core.recall.quality import draw_interval
from recollect.llm.embedder import Embedder
from recollect.store.recall import saved_recalls
from stored import Stored, serving, store

WEIGHTS = (0.0, 0.1, 0.2, 0.35, 0.7, 1.5, 3.0)
HARDLY = 1e-9
"""A weight with which accesses are read, and rank nothing."""
DEPTH = 10


@dataclass(frozen=True, slots=True)
class Tried:
    """One question: the share of its evidence among the first hits, for every weight."""

    training: bool
    found: NDArray[np.float64]


async def ask_all(name: str, questions: int, embedder: Embedder | None, bar: Progress) -> list[Tried]:
    """Store a set, and ask its questions scope by scope."""
    conversations = load(name, questions)
    tried: list[Tried] = []
    async with serving(embedder) as recollect:
        number = 0
        async for stored in store(recollect, name, conversations, embedder, bar):
            tried += [replace(each, training=in_training(name, number)) for each in await ask_scope(stored)]
            number += 1
    return tried


async def ask_scope(stored: Stored) -> list[Tried]:
    """Ask the questions of one scope in a shuffled order; each notes what it found."""
    cues, access = list(stored.cues), stored.mind.access
    Random(7).shuffle(cues)
    tried: list[Tried] = []
    for question, cue in cues:
        asked = replace(cue, limit=DEPTH, keep=True, touch=True, weights={"accessed": HARDLY})
        recall_id = (await stored.mind.recall(asked)).recall_id
        kept = recall_id and await saved_recalls.fetch(access.parts.database, access.scope, recall_id)
        if not kept or not question.gold:
            continue
        found: list[float] = []
        for weight in WEIGHTS:
            inputs = replace(kept.inputs, limit=DEPTH, weights={**kept.inputs.weights, "accessed": weight})
            turns = {stored.turns.get(each.id) for each in fuse(inputs)}
            found.append(len(question.gold & turns) / len(question.gold))
        tried.append(Tried(training=False, found=np.array(found)))
    return tried


def summarise(tried: Sequence[Tried]) -> dict[str, float]:
    """Choose the weight on one half, and say what it is worth on the other."""
    training = np.array([each.found for each in tried if each.training])
    held_out = np.array([each.found for each in tried if not each.training])
    chosen = int(training.mean(axis=0).argmax())
    gain = held_out[:, chosen] - held_out[:, 0]
    drawn = draw_interval(gain.tolist())
    heaviest = held_out[:, -1] - held_out[:, 0]
    return {
        "questions": len(held_out),
        "chosen": WEIGHTS[chosen],
        "without": float(held_out[:, 0].mean()),
        "gain": float(gain.mean()),
        "low": drawn.low,
        "high": drawn.high,
        "gain at 3": float(heaviest.mean()),
    }


def main() -> None:
    """Try the sets asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", choices=FILES, dest="sets", help="default: locomo, lifebench")
    parser.add_argument("--questions", type=int, default=0, help="about so many per set; 0 = all")
    arguments = parser.parse_args()
    console = Console(width=120)
    embedder = open_embedder(console)
    figures: dict[str, dict[str, float]] = {}
    with Progress(console=console, transient=True) as bar:
        for name in arguments.sets or ("locomo", "lifebench"):
            figures[name] = summarise(uvloop.run(ask_all(name, arguments.questions, embedder, bar)))
    table = Table("set", *next(iter(figures.values())))
    for name, each in figures.items():
        table.add_row(name, *(f"{value:.3f}" if value % 1 else f"{value:g}" for value in each.values()))
    console.print(table)
    OUT.mkdir(exist_ok=True)
    (OUT / "accesses.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
