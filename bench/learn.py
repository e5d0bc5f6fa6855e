"""Learn what channels and preferences should weigh, from questions whose answers are known, and print the tables.

uv run python bench/learn.py [--set locomo --set beam --set madial-en] [--questions 600]

Every question is asked with its recall kept; a kept recall holds all that its ranking was made from, so that any other
weights can be tried on it. Learned is on one half of every set: the weights that make the evidence as likely as they
can under a softmax over the candidates. core/recall/weights.py has the tables, rounded; see bench/quality.py for what
they are worth on the other half.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
import uvloop
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from datasets import FILES, in_training, load
from quality import open_embedder
from recollect.core.recall.columns import RankingInput, to_uuids
from recollect.core.recall.fusion import rate
from recollect.core.recall.weights import LEARNED
from recollect.llm.embedder import Embedder
from recollect.models.recall import Script
from recollect.store.recall import saved_recalls
from stored import serving, store

Matrix = NDArray[np.float64]
NAMES = tuple(name for name in LEARNED[Script.WORDS] if name != "diversity")
REPEATED: Mapping[str, int] = {"beam": 4, "madial-en": 3, "madial-zh": 4}
"""How often each question of a small set is shown, so that a large one does not drown it."""
LANGUAGES: Mapping[Script, tuple[str, ...]] = {
    Script.WORDS: ("locomo", "beam", "madial-en"),
    Script.CJK: ("lifebench", "madial-zh"),
}
FIXED: Mapping[Script, frozenset[str]] = {
    Script.WORDS: frozenset({"session_best"}),
    Script.CJK: frozenset({"tells_number", "question", "instruction", "answer", "session", "session_meaning"}),
}
"""Left at nothing: they came out against sense or within chance, or there was nothing to learn them from."""
EPOCHS, BATCH, RATE, DECAY, PULL = 25, 32, 0.08, 0.92, 1e-4


@dataclass(frozen=True, slots=True)
class Lesson:
    """One question: what is said of every candidate, and which of them are the evidence."""

    features: Matrix
    evidence: NDArray[np.intp]


async def gather(name: str, questions: int, embedder: Embedder | None, bar: Progress) -> list[Lesson]:
    """Ask the questions of a set's first half, and keep what each ranking was made from."""
    lessons: list[Lesson] = []
    conversations = load(name, questions)
    task = bar.add_task(f"{name}: asking", total=sum(len(conversation.questions) for conversation in conversations))
    async with serving(embedder) as recollect:
        number = 0
        async for stored in store(recollect, name, conversations, embedder, bar):
            for question, cue in stored.cues if in_training(name, number) else ():
                answer = await stored.mind.recall(replace(cue, keep=True))
                kept = answer.recall_id and await saved_recalls.fetch(
                    recollect.parts.database, stored.mind.access.scope, answer.recall_id
                )
                if kept:
                    gold = {each for each, turn in stored.turns.items() if turn in question.gold}
                    lessons.append(to_lesson(kept.inputs, gold))
                bar.advance(task)
            number += 1
    bar.remove_task(task)
    return [lesson for lesson in lessons if len(lesson.evidence)]


def to_lesson(inputs: RankingInput, gold: set[UUID]) -> Lesson:
    """Lay out what channels and preferences say."""
    rated = rate(replace(inputs, weights={**inputs.weights, **dict.fromkeys(inputs.candidates, 1.0)}))
    features = np.zeros((len(rated.ids), len(NAMES)))
    for column, name in enumerate(NAMES):
        if name in rated.columns:
            features[:, column] = np.nan_to_num(rated.columns[name].scaled)
        elif name in rated.preferences:
            features[:, column] = rated.preferences[name]
    return Lesson(features, np.flatnonzero([each in gold for each in to_uuids(rated.ids)]))


def learn(lessons: Sequence[Lesson], fixed: frozenset[str]) -> Matrix:
    """Find the weights by gradient descent (Adam); what is fixed stays at nothing."""
    free = np.array([0.0 if name in fixed else 1.0 for name in NAMES])
    weights, drift, spread = free.copy(), np.zeros(len(NAMES)), np.zeros(len(NAMES))
    order, step, pace = np.random.default_rng(0), 0, RATE
    for _ in range(EPOCHS):
        for batch in np.array_split(order.permutation(len(lessons)), max(1, len(lessons) // BATCH)):
            slope = sum(descend(lessons[each], weights) for each in batch) / len(batch)
            slope = (slope + PULL * weights) * free
            step += 1
            drift, spread = 0.9 * drift + 0.1 * slope, 0.999 * spread + 0.001 * slope**2
            weights -= pace * drift / (1 - 0.9**step) / (np.sqrt(spread / (1 - 0.999**step)) + 1e-8)
        pace *= DECAY
    return weights


def descend(lesson: Lesson, weights: Matrix) -> Matrix:
    """Give the slope of the loss at one question."""
    scores = lesson.features @ weights
    chances = np.exp(scores - scores.max())
    slope: Matrix = chances / chances.sum() @ lesson.features - lesson.features[lesson.evidence].mean(axis=0)
    return slope


def render(script: Script, weights: Matrix) -> Table:
    """Draw what was learned beside what is in use."""
    table = Table("", "learned", "in use", title=f"{script}", title_justify="left")
    for name, weight in zip(NAMES, weights, strict=True):
        table.add_row(name, f"{weight:.2f}", f"{LEARNED[script][name]:.2f}")
    return table


def main() -> None:
    """Learn from the sets asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", choices=FILES, dest="sets", help="default: all that have a language")
    parser.add_argument("--questions", type=int, default=0, help="about so many per set; 0 = all")
    arguments = parser.parse_args()
    console = Console(width=100)
    embedder = open_embedder(console)
    with Progress(console=console, transient=True) as bar:
        for script, names in LANGUAGES.items():
            chosen = [name for name in names if name in (arguments.sets or names)]
            lessons: list[Lesson] = []
            for name in chosen:
                found = uvloop.run(gather(name, arguments.questions, embedder, bar))
                lessons += found * REPEATED.get(name, 1)
            if lessons:
                console.print(render(script, learn(lessons, FIXED[script])))


if __name__ == "__main__":
    main()
