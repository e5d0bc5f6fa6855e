"""Measure how much of the evidence that a recall finds stands in the block that is made of it, on LoCoMo.

    uv run python bench/blocks.py                       # all questions, four budgets
    uv run python bench/blocks.py --conversations 1             # the short form that CI runs

A question counts if all of its evidence is among the first hits of its recall, and is answered if the block shows all
of that evidence in full: a turn that was shortened does not count, although it may hold the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import mean
from uuid import UUID

import numpy as np
import uvloop
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

import filler
from datasets import Conversation, load
from ground import OUT, open_folder, running
from recollect import Mind, NewMemory
from recollect.core.text.terms import indexed_text
from recollect.llm.embedder import Embedder
from recollect.llm.local.minilm import load_minilm
from recollect.models import Cue, Kind
from recollect.models.blocks import DetailLevel, MemoryBlock
from recollect.store.embedded.cluster import Cluster

BUDGETS = (500, 1_000, 2_000, 4_000)
DEPTH = 100
"""So many hits a recall may have for evidence to be retrieved at all."""
GOAL_BUDGET, GOAL = 2_000, 0.8
Vectors = NDArray[np.float32]
console = Console()


@dataclass(slots=True)
class Tally:
    """What was counted for one budget."""

    held: list[bool] = field(default_factory=list[bool])
    """Of questions whose evidence was all retrieved: whether the block shows all of it in full."""
    shown: list[bool] = field(default_factory=list[bool])
    """Of the same: whether it shows all of it at some level."""
    some: list[bool] = field(default_factory=list[bool])
    """Of questions of which some evidence was retrieved: whether the block shows all that was, in full."""
    tokens: list[int] = field(default_factory=list[int])
    lines: list[int] = field(default_factory=list[int])
    full: list[float] = field(default_factory=list[float])


async def embed(texts: Sequence[str], embedder: Embedder) -> Vectors:
    """Embed texts, or take their vectors from bench/out where the same ones were embedded before."""
    digest = hashlib.sha256("\0".join((embedder.model, *texts)).encode()).hexdigest()[:20]
    path = OUT / f"vectors-{digest}.npy"
    if not path.exists():
        OUT.mkdir(exist_ok=True)
        chunks = [texts[start : start + 256] for start in range(0, len(texts), 256)]
        rows = [await embedder.embed(chunk) for chunk in track(chunks, "embedding", console=console, transient=True)]
        np.save(path, np.concatenate(rows))
    vectors: Vectors = np.load(path)
    return vectors


async def store(mind: Mind, conversation: Conversation, vectors: Vectors) -> dict[UUID, str]:
    """Remember a conversation turn by turn; give the turns' own ids by those of their memories."""
    new = [
        NewMemory(
            turn.content,
            Kind.MESSAGE,
            speaker=turn.speaker,
            occurred_at=datetime.strptime(turn.when, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            + timedelta(seconds=place),
            embedding=vector,
        )
        for place, (turn, vector) in enumerate(zip(conversation.turns, vectors, strict=True))
    ]
    ids = [receipt.id for start in range(0, len(new), 500) for receipt in await mind.remember(new[start : start + 500])]
    return {memory_id: turn.id for memory_id, turn in zip(ids, conversation.turns, strict=True)}


async def ask(mind: Mind, cue: Cue, gold: frozenset[str], turns: dict[UUID, str], tallies: dict[int, Tally]) -> bool:
    """Ask one question at every budget; tell whether all of its evidence was retrieved."""
    hits = (await mind.recall(cue, limit=DEPTH)).hits
    retrieved = gold & {turns[hit.memory.id] for hit in hits}
    for budget, tally in tallies.items() if retrieved else ():
        block = await mind.blocks.show(cue, budget)
        whole = {turns[line.memory_id] for line in block.lines if line.level is DetailLevel.FULL}
        tally.some.append(retrieved <= whole)
        if retrieved == gold:
            tally.held.append(gold <= whole)
            tally.shown.append(gold <= {turns[line.memory_id] for line in block.lines})
        note_size(block, tally)
    return retrieved == gold


def note_size(block: MemoryBlock, tally: Tally) -> None:
    """Note how large a block is, and how much of it is in full."""
    assert block.tokens <= block.budget
    tally.tokens.append(block.tokens)
    tally.lines.append(len(block.lines))
    tally.full.append(mean(line.level is DetailLevel.FULL for line in block.lines))


async def measure(conversations: Sequence[Conversation]) -> tuple[int, int, dict[int, Tally]]:
    """Store every conversation in a scope of its own and ask its questions."""
    embedder = load_minilm()
    said = await embed(
        [indexed_text(turn.speaker, turn.content) for conversation in conversations for turn in conversation.turns],
        embedder,
    )
    asked = await embed(
        [question.text for conversation in conversations for question in conversation.questions], embedder
    )
    tallies = {budget: Tally() for budget in BUDGETS}
    count = retrieved = turn_at = 0
    with open_folder("blocks") as folder, Cluster(folder / "postgres", settings={"fsync": "off"}) as cluster:
        async with running(cluster, "blocks") as recollect:
            for conversation in track(conversations, "asking", console=console, transient=True):
                mind = await recollect.mind(conversation.id)
                turns = await store(mind, conversation, said[turn_at : turn_at + len(conversation.turns)])
                turn_at += len(conversation.turns)
                filler.vacuum(recollect)
                for question in conversation.questions:
                    cue = Cue(question.text, embedding=asked[count], touch=False)
                    retrieved += await ask(mind, cue, question.gold, turns, tallies)
                    count += 1
    return count, retrieved, tallies


def to_figures(count: int, retrieved: int, tallies: dict[int, Tally]) -> dict[str, dict[str, float]]:
    """Sum up what was counted."""
    figures: dict[str, dict[str, float]] = {
        "questions": {"all": count, f"evidence among {DEPTH} hits": retrieved},
    }
    for budget, tally in tallies.items():
        figures[f"{budget} tokens"] = {
            "held": round(mean(tally.held), 4) if tally.held else 0.0,
            "shown": round(mean(tally.shown), 4) if tally.shown else 0.0,
            "all that was retrieved": round(mean(tally.some), 4) if tally.some else 0.0,
            "lines": round(mean(tally.lines), 1) if tally.lines else 0.0,
            "in full": round(mean(tally.full), 4) if tally.full else 0.0,
            "tokens": round(mean(tally.tokens), 1) if tally.tokens else 0.0,
        }
    return figures


def draw(figures: dict[str, dict[str, float]]) -> Table:
    """Draw the figures of every budget."""
    rows = {name: row for name, row in figures.items() if name != "questions"}
    columns = list(next(iter(rows.values())))
    counts = ", ".join(f"{name}: {value:.0f}" for name, value in figures["questions"].items())
    table = Table("", *columns, title=f"LoCoMo questions, {counts}", title_justify="left")
    for name, row in rows.items():
        table.add_row(name, *(f"{value:.3f}" if value <= 1 else f"{value:.1f}" for value in row.values()))
    return table


def main() -> None:
    """Measure, print and write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=0, help="about so many; 0 = all")
    parser.add_argument("--conversations", type=int, default=None, help="only the first so many")
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        figures = to_figures(*runner.run(measure(load("locomo", arguments.questions)[: arguments.conversations])))
    console.print(draw(figures))
    held = figures[f"{GOAL_BUDGET} tokens"]["held"]
    console.print(
        f"goal: {GOAL:.0%} at {GOAL_BUDGET} tokens; {'reached' if held >= GOAL else 'missed'} with {held:.1%}"
    )
    OUT.mkdir(exist_ok=True)
    (OUT / "blocks.json").write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
