"""Measure how well recall finds the evidence of public question sets, in memory, with the pure parts alone.

uv run python bench/quality.py [--set locomo --set madial-zh] [--questions 200] [--depth 100]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from datasets import FILES, Conversation, Question, load
from recollect.core.fusion import default_weights, fuse
from recollect.core.terms import (
    analyse,
    analyse_cue,
    average_length,
    indexed_text,
    inverse_frequency,
    script_of,
    weigh,
)
from recollect.errors import SetupError
from recollect.models import Candidate

if TYPE_CHECKING:
    from recollect.llm.embedder import Embedder

MOST = 30
"""Hits asked for; the deepest recall that is reported."""
OUT = Path(__file__).resolve().parent / "out"

Scores = NDArray[np.float64]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Quality:
    """How well one ranking, or the mean of many, meets the gold evidence."""

    recall_5: float
    recall_10: float
    recall_30: float
    ndcg_10: float


def score(ranked: Sequence[str], gold: frozenset[str]) -> Quality:
    """Compare ranked ids, best first, with the gold ones."""
    found = [name in gold for name in dict.fromkeys(ranked)]
    gain = math.fsum(hit / math.log2(place + 2) for place, hit in enumerate(found[:10]))
    ideal = math.fsum(1 / math.log2(place + 2) for place in range(min(len(gold), 10)))
    at_5, at_10, at_30 = (sum(found[:depth]) / len(gold) for depth in (5, 10, 30))
    return Quality(at_5, at_10, at_30, gain / ideal)


def average(rows: Sequence[Quality]) -> Quality:
    """Return the mean over questions."""
    return Quality(*(math.fsum(getattr(row, name.name) for row in rows) / len(rows) for name in fields(Quality)))


class TextIndex:
    """The text channel in memory: terms are weighed as each turn comes in, as a store would do."""

    def __init__(self, conversation: Conversation) -> None:
        self.size = len(conversation.turns)
        places: defaultdict[str, list[int]] = defaultdict(list)
        weights: defaultdict[str, list[float]] = defaultdict(list)
        term_count = 0
        for place, turn in enumerate(conversation.turns):
            terms = analyse(indexed_text(turn.speaker, turn.content))
            term_count += len(terms)
            for term, weight in weigh(Counter(terms), average_length(term_count, place + 1)).items():
                places[term].append(place)
                weights[term].append(weight)
        self.postings = {term: (np.array(places[term]), np.array(weights[term])) for term in places}

    def search(self, cue: str) -> Scores:
        """Score every turn; those that share no term with the cue get 0."""
        total = np.zeros(self.size)
        for term in analyse_cue(cue):
            if term in self.postings:
                places, weights = self.postings[term]
                total[places] += weights * inverse_frequency(self.size, len(places))
        return total


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the channels say of every turn for one question."""

    text: Scores
    vector: Scores | None
    weights: dict[str, float]
    depth: int

    def propose(self, *, complete: bool) -> dict[str, list[Candidate]]:
        """List each channel's best turns; if complete, each also scores what the other one found."""
        scores = {"text": self.text} | ({} if self.vector is None else {"vector": self.vector})
        tops = {name: np.argsort(-values, kind="stable")[: self.depth] for name, values in scores.items()}
        tops["text"] = tops["text"][self.text[tops["text"]] > 0]
        if complete:
            union = np.unique(np.concatenate(list(tops.values())))
            tops = dict.fromkeys(tops, union)
        return {name: [_candidate(place, scores[name]) for place in tops[name]] for name in scores}

    def rank(self, weights: dict[str, float], *, complete: bool = False) -> list[int]:
        """Return the places of the best turns under these weights."""
        return [hit.id.int - 1 for hit in fuse(self.propose(complete=complete), weights, MOST)]


def _candidate(place: int, scores: Scores) -> Candidate:
    return Candidate(UUID(int=int(place) + 1), float(scores[place]))


SYSTEMS: dict[str, Callable[[Evidence], list[int]]] = {
    "text only": lambda evidence: evidence.rank({"text": 1.0}),
    "vector only": lambda evidence: evidence.rank({"vector": 1.0}),
    "fused": lambda evidence: evidence.rank(evidence.weights),
    "fused, each channel scores all": lambda evidence: evidence.rank(evidence.weights, complete=True),
}


@dataclass(frozen=True, slots=True)
class Dense:
    """Vectors of every turn and question of a set, in the order of the set."""

    embedder: Embedder
    turns: Vectors
    questions: Vectors


def measure(
    conversations: Sequence[Conversation], dense: Dense | None, depth: int, bar: Progress
) -> dict[str, Quality]:
    """Ask every question of every system and return the means."""
    systems = SYSTEMS if dense else {"text only": SYSTEMS["text only"]}
    rows: dict[str, list[Quality]] = {name: [] for name in systems}
    task = bar.add_task("questions", total=sum(len(conversation.questions) for conversation in conversations))
    for conversation, question, evidence in _gather(conversations, dense, depth):
        for name, rank in systems.items():
            places = rank(evidence)
            rows[name].append(score([conversation.turns[place].id for place in places], question.gold))
        bar.advance(task)
    bar.remove_task(task)
    return {name: average(values) for name, values in rows.items()}


def _gather(
    conversations: Sequence[Conversation], dense: Dense | None, depth: int
) -> Iterator[tuple[Conversation, Question, Evidence]]:
    turn_at = question_at = 0
    scripts = dense.embedder.scripts if dense else frozenset()
    for conversation in conversations:
        index = TextIndex(conversation)
        turn_end = turn_at + len(conversation.turns)
        for question in conversation.questions:
            vector = None
            if dense:
                vector = (dense.turns[turn_at:turn_end] @ dense.questions[question_at]).astype(np.float64)
            weights = default_weights(script_of(question.text), scripts)
            yield conversation, question, Evidence(index.search(question.text), vector, weights, depth)
            question_at += 1
        turn_at = turn_end


def embed(conversations: Sequence[Conversation], embedder: Embedder, bar: Progress) -> Dense:
    """Embed a set, or take its vectors from bench/out where the same texts were embedded before."""
    turns = [indexed_text(turn.speaker, turn.content) for talk in conversations for turn in talk.turns]
    cues = [question.text for talk in conversations for question in talk.questions]
    return Dense(embedder, _embed_cached(turns, embedder, bar), _embed_cached(cues, embedder, bar))


def _embed_cached(texts: list[str], embedder: Embedder, bar: Progress) -> Vectors:
    digest = hashlib.sha256("\0".join((embedder.model, *texts)).encode()).hexdigest()[:20]
    path = OUT / f"vectors-{digest}.npy"
    if not path.exists():
        OUT.mkdir(exist_ok=True)
        np.save(path, asyncio.run(_embed(texts, embedder, bar)))
    vectors: Vectors = np.load(path)
    return vectors


async def _embed(texts: list[str], embedder: Embedder, bar: Progress) -> Vectors:
    task = bar.add_task("embedding", total=len(texts))
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    vectors = np.empty((len(texts), embedder.dimensions), dtype=np.float32)
    for start in range(0, len(order), 256):
        places = order[start : start + 256]
        vectors[places] = await embedder.embed([texts[place] for place in places])
        bar.advance(task, len(places))
    bar.remove_task(task)
    return vectors


def open_embedder(console: Console) -> Embedder | None:
    """Open the local model, or say why the dense rows are missing."""
    try:
        from recollect.llm.minilm import load_minilm

        return load_minilm()
    except (ImportError, SetupError) as error:
        console.print(f"no dense rows: {error}")
        return None


def readable(conversations: Sequence[Conversation], embedder: Embedder) -> bool:
    """Tell whether the embedder reads the script of any cue, so that embedding the set is worth the while."""
    return any(script_of(question.text) in embedder.scripts for talk in conversations for question in talk.questions)


def render(name: str, results: dict[str, Quality], conversations: Sequence[Conversation]) -> Table:
    """Draw one set's results."""
    count = sum(len(conversation.questions) for conversation in conversations)
    table = Table(title=f"{name}: {count} questions", title_justify="left")
    for column in ("", "R@5", "R@10", "R@30", "nDCG@10"):
        table.add_column(column, justify="right" if column else "left")
    for system, quality in results.items():
        table.add_row(system, *(f"{getattr(quality, field.name):.3f}" for field in fields(quality)))
    return table


def main() -> None:
    """Run the sets asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", choices=FILES, dest="sets", help="default: all of them")
    parser.add_argument("--questions", type=int, default=0, help="about so many per set; 0 = all")
    parser.add_argument("--depth", type=int, default=100, help="candidates that each channel proposes")
    parser.add_argument("--text-only", action="store_true", help="leave the embedder alone")
    arguments = parser.parse_args()
    console = Console()
    embedder = None if arguments.text_only else open_embedder(console)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        for name in arguments.sets or FILES:
            conversations = load(name, arguments.questions)
            reads = embedder is not None and readable(conversations, embedder)
            dense = embed(conversations, embedder, bar) if embedder and reads else None
            results = measure(conversations, dense, arguments.depth, bar)
            console.print(render(name, results, conversations))
            if embedder and not reads:
                console.print("no dense rows: the embedder does not read these cues' script, its weight is 0")


if __name__ == "__main__":
    main()
