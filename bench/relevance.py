"""Learn how likely a hit helps, and measure how well the number in use holds on questions it was not learned from.

uv run python bench/relevance.py [--set locomo --set madial-zh] [--questions 300]

Every scope is asked its own questions, and as many about somebody else: nothing it has answers those. For each set and
each of its halves: how far the stated relevance is from the share of evidence, in ten bins of equal count; and the area
under the curve by which relevance, the cosine alone and BM25 alone part evidence from the rest. Then what the least
relevance of a prompt saves, in the tokens of a context of the usual budget, and what it loses. The tables that are
printed are learned on one half alone; core/recall/relevance.py has them, rounded.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import uvloop
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from datasets import ADVERSARIAL, DIALOGUES, Question, in_training, load
from ground import OUT
from quality import open_embedder
from recollect.core.recall.columns import to_uuids
from recollect.core.recall.fitting import area, expected_error, fit_table
from recollect.core.recall.fusion import fuse, measure, rate
from recollect.core.recall.relevance import MEASURES, WITH_VECTOR, WITHOUT_VECTOR
from recollect.llm.embedder import Embedder
from recollect.models.recall import Cue, Script
from recollect.store.recall import saved_recalls
from stored import Stored, serving, store

Matrix = NDArray[np.float64]
DEPTH, BUDGET = 20, 4_000
SETS: Mapping[str, Script] = {
    "locomo": Script.WORDS,
    "beam": Script.WORDS,
    "madial-en": Script.WORDS,
    "lifebench": Script.CJK,
    "madial-zh": Script.CJK,
}
REPEATED: Mapping[str, int] = {"madial-zh": 4}
"""How often each question of a small set is learned from, as in bench/learn.py, where a large one would drown it."""
COSINE, WORDS = MEASURES.index("vector"), MEASURES.index("words")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is asked of a set: about so many questions, of so many scopes, with so many contexts; 0 is all."""

    questions: int
    scopes: int
    contexts: int


@dataclass(frozen=True, slots=True)
class Answered:
    """One question as it was answered: what was measured of every hit, what was said of it, and what is true."""

    training: bool
    foreign: bool
    category: str
    measures: Matrix
    relevance: Matrix
    evidence: NDArray[np.bool_]
    spent: tuple[float, float, float, float] | None = None
    """Tokens of a context with and without a least relevance, and the part of the evidence that each shows."""


async def ask_all(
    name: str, sizes: Sizes, embedder: Embedder | None, bar: Progress, *, with_contexts: bool
) -> list[Answered]:
    """Store a set, and put to every scope its own questions and those of the next."""
    conversations = load(name, sizes.questions, adversarial=True)[: sizes.scopes or None]
    contexts = sizes.contexts if with_contexts else 0
    answered: list[Answered] = []
    async with serving(embedder) as recollect:
        scopes = [each async for each in store(recollect, name, conversations, embedder, bar)]
        task = bar.add_task(f"{name}: asking", total=2 * sum(len(each.cues) for each in scopes))
        for number, (own, other) in enumerate(zip(scopes, scopes[1:] + scopes[:1], strict=True)):
            for question, cue, foreign in list_cues(own, other):
                made = await answer(own, question, cue, foreign=foreign)
                if made is not None:
                    made = replace(made, training=in_training(name, number))
                    if contexts and not made.training and not foreign and question.category != ADVERSARIAL:
                        made = replace(made, spent=await spend(own, question, cue))
                        contexts -= 1
                    answered.append(made)
                bar.advance(task)
        bar.remove_task(task)
    return answered


def list_cues(own: Stored, other: Stored) -> Iterator[tuple[Question, Cue, bool]]:
    """Give a scope's own questions, and as many of somebody else."""
    for question, cue in own.cues:
        yield question, cue, False
    now = own.cues[0][1].now if own.cues else None
    for question, cue in other.cues:
        yield question, replace(cue, now=now), True


async def answer(stored: Stored, question: Question, cue: Cue, *, foreign: bool) -> Answered | None:
    """Ask one question, and lay out what the ranking was made from."""
    access = stored.mind.access
    found = await stored.mind.recall(replace(cue, limit=DEPTH, keep=True))
    kept = found.recall_id and await saved_recalls.fetch(access.parts.database, access.scope, found.recall_id)
    if not kept:
        return None
    inputs = replace(kept.inputs, limit=DEPTH)
    ranked, rated = fuse(inputs), rate(inputs)
    if not ranked:
        return None
    places = {each: place for place, each in enumerate(to_uuids(rated.ids))}
    order = np.array([places[each.id] for each in ranked], dtype=np.intp)
    gold = frozenset[str]() if foreign else question.gold
    return Answered(
        training=False,
        foreign=foreign,
        category=question.category,
        measures=measure(rated, order),
        relevance=np.array([each.relevance for each in ranked]),
        evidence=np.array([stored.turns.get(each.id) in gold for each in ranked]),
    )


async def spend(stored: Stored, question: Question, cue: Cue) -> tuple[float, float, float, float]:
    """Say what a context costs and shows, with all that is recalled and with what is worth its tokens."""
    told: list[float] = []
    for least in (0.0, None):
        made = await stored.mind.conversation("new").context(replace(cue, limit=None, min_relevance=least), BUDGET)
        shown = {stored.turns.get(hit.memory.id) for hit in made.hits}
        told += [made.spending.total, len(question.gold & shown) / len(question.gold)]
    return told[0], told[2], told[1], told[3]


def learn(rows: Sequence[Answered], *, with_vector: bool) -> Matrix:
    """Find the table that makes the evidence most likely."""
    truth = np.concatenate([each.evidence for each in rows]).astype(np.float64)
    return fit_table(np.concatenate([each.measures for each in rows]), truth, with_vector=with_vector)


def report(rows: Sequence[Answered]) -> dict[str, float]:
    """Sum up one half of a set."""
    plain = [each for each in rows if each.category != ADVERSARIAL and len(each.relevance)]
    stated = np.concatenate([each.relevance for each in plain])
    truth = np.concatenate([each.evidence for each in plain])
    measures = np.concatenate([each.measures for each in plain])
    best = np.array([each.relevance.max() for each in plain])
    figures = {
        "questions": float(len(plain)),
        "expected error": expected_error(stated, truth.astype(np.float64)),
        "area": area(stated, truth),
        "area of cosine": area(measures[:, COSINE], truth),
        "area of BM25": area(measures[:, WORDS], truth),
        "answered or not": area(best, np.array([not each.foreign for each in plain])),
    }
    trick = [each.relevance.max() for each in rows if each.category == ADVERSARIAL and not each.foreign]
    own = [each.relevance.max() for each in plain if not each.foreign]
    if trick:
        which = np.array([False] * len(trick) + [True] * len(own))
        figures["adversarial or not"] = area(np.array(trick + own), which)
    spent = np.array([each.spent for each in rows if each.spent is not None])
    if len(spent):
        whole, floored, shown, kept = spent.sum(axis=0)
        figures |= {"contexts": float(len(spent)), "tokens": floored / whole, "evidence": kept / max(shown, 1e-9)}
    return figures


def tabulate(figures: Mapping[str, Mapping[str, float]]) -> Table:
    """Draw the figures, a column for each set."""
    table = Table("", *figures, title="held out", title_justify="left")
    for name in dict.fromkeys(name for each in figures.values() for name in each):
        cells = [f"{each[name]:.3f}".rstrip("0").rstrip(".") if name in each else "" for each in figures.values()]
        table.add_row(name, *cells)
    return table


async def run(
    names: Sequence[str], sizes: Sizes, embedder: Embedder | None, bar: Progress
) -> AsyncIterator[tuple[str, Script, bool, list[Answered]]]:
    """Ask each set with vectors, where there are any, and without."""
    for name in names:
        script = SETS[name]
        for used in (None,) if embedder is None else (embedder, None):
            asked = name in DIALOGUES and (used is not None or embedder is None)
            yield name, script, used is not None, await ask_all(name, sizes, used, bar, with_contexts=asked)


async def compare(names: Sequence[str], sizes: Sizes, console: Console) -> None:
    """Ask, learn, print and write."""
    embedder = open_embedder(console)
    figures: dict[str, dict[str, float]] = {}
    lessons: dict[tuple[Script, bool], list[Answered]] = {}
    with Progress(console=console, transient=True) as bar:
        async for name, script, with_vector, rows in run(names, sizes, embedder, bar):
            half = [each for each in rows if not each.training]
            if half:
                figures[name if with_vector else f"{name}, words alone"] = report(half)
            taught = [each for each in rows if each.training and each.category != ADVERSARIAL]
            lessons.setdefault((script, with_vector), []).extend(taught * REPEATED.get(name, 1))
    console.print(tabulate(figures))
    for (script, with_vector), rows in lessons.items():
        used = WITHOUT_VECTOR[script]
        if with_vector and embedder is not None:
            used = WITH_VECTOR.get(embedder.model, {}).get(script, used)
        title = f"{script}, {'with a vector' if with_vector else 'words alone'}"
        table = Table("", "learned", "in use", title=title, title_justify="left")
        for name, found, present in zip(MEASURES, learn(rows, with_vector=with_vector), used, strict=True):
            table.add_row(name, f"{found:.2f}", f"{present:.2f}")
        console.print(table)
    OUT.mkdir(exist_ok=True)
    (OUT / "relevance.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Measure the sets asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", choices=[*SETS], dest="sets", help="default: all")
    parser.add_argument("--questions", type=int, default=0, help="about so many per set; 0 = all")
    parser.add_argument("--contexts", type=int, default=400, help="make so many contexts of a set of conversations")
    parser.add_argument("--scopes", type=int, default=0, help="only the first so many scopes of each set; 0 = all")
    asked = parser.parse_args()
    sizes = Sizes(asked.questions, asked.scopes, asked.contexts)
    uvloop.run(compare([name for name in SETS if name in (asked.sets or SETS)], sizes, Console(width=140)))


if __name__ == "__main__":
    main()
