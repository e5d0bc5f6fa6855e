"""Measure how much of LoCoMo's evidence 250 to 4,000 tokens hold, beside other ways to choose and other stores.

    uv run --with chromadb==1.5.9 --with mem0ai==2.2.1 --with langgraph-checkpoint-postgres==3.2.0 \
        python bench/budgets.py                                   # all questions; some ten minutes
    uv run python bench/budgets.py --conversations 1 --questions 200      # the short form that CI runs

Every turn costs the tokens of its day, speaker and text. Turns are taken in the order in which each finds them; one
that finds no room is passed over. The other stores are run for real, by their own retrieval, on the same texts and the
same model's vectors, each conversation in a store of its own; one that is not installed is left out and named.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from datasets import Conversation, load, read_moments
from ground import ONE_PROCESS, OUT, open_folder
from peers import OPENERS, Shelf
from quality import open_embedder
from recollect.core.recall.quality import BUDGETS, count_within, draw_difference, draw_interval, write_piece
from recollect.core.text.checks import MAX_HITS
from recollect.core.text.terms import indexed_text
from recollect.llm.embedder import Embedder
from recollect.llm.tokens.count import load_tokenizers
from recollect.store.embedded.cluster import Cluster
from stored import Vectors, embed_cached, name_of, serving, store

SET, TOKENIZER, OURS = "locomo", "o200k_base", "Recollect"
WAYS: Mapping[str, tuple[str, ...]] = {OURS: (), "BM25 alone": ("text",), "vectors alone": ("vector",)}
"""Ways of recalling in the same store: by all channels, or by one."""
SESSIONS = "whole sessions"
PEERS: Mapping[str, tuple[str, str]] = {
    "Chroma": ("Chroma", "chromadb"),
    "mem0": ("mem0", "mem0"),
    "LangGraph's store, exact": ("PostgresStore, exact", "langgraph.store.postgres"),
    "LangGraph's store, default index": ("PostgresStore, default index", "langgraph.store.postgres"),
}
"""Other stores: how bench/peers.py opens them, and the module that must be installed."""
Figures = dict[str, dict[str, dict[str, float]]]
Ranking = Sequence[frozenset[str]]
"""Names of turns, best first; a piece of a ranking may hold several."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The conversations, and the vectors of their turns and questions, embedded as other stores would: each alone."""

    conversations: Sequence[Conversation]
    turns: Vectors
    cues: Vectors


def texts_of(conversation: Conversation) -> list[str]:
    """Give the turns as every store is given them."""
    return [indexed_text(name_of(turn), turn.content) for turn in conversation.turns]


async def prepare(conversations: Sequence[Conversation], embedder: Embedder, bar: Progress) -> Ground:
    """Embed what the other stores are given."""
    said = [text for conversation in conversations for text in texts_of(conversation)]
    asked = [question.text for conversation in conversations for question in conversation.questions]
    return Ground(conversations, await embed_cached(said, embedder, bar), await embed_cached(asked, embedder, bar))


async def ask_ours(
    conversations: Sequence[Conversation], embedder: Embedder, bar: Progress
) -> dict[str, list[Ranking]]:
    """Ask every question in every way that the library has, and rank sessions by their best turn."""
    found: dict[str, list[Ranking]] = {who: [] for who in (*WAYS, SESSIONS)}
    task = bar.add_task(OURS, total=sum(len(conversation.questions) for conversation in conversations))
    async with serving(embedder) as recollect:
        async for stored in store(recollect, SET, conversations, embedder, bar):
            sessions = {turn.id: turn.session for turn in stored.conversation.turns}
            for _, cue in stored.cues:
                for who, channels in WAYS.items():
                    answer = await stored.mind.recall(replace(cue, limit=MAX_HITS, channels=channels))
                    found[who].append([frozenset({stored.turns[hit.memory.id]}) for hit in answer.hits])
                best = dict.fromkeys(sessions[name] for names in found[OURS][-1] for name in names)
                found[SESSIONS].append(
                    [frozenset(turn for turn in sessions if sessions[turn] == each) for each in best]
                )
                bar.advance(task)
    bar.remove_task(task)
    return found


def ask_peer(opener: str, ground: Ground, bar: Progress) -> list[Ranking]:
    """Fill another store with each conversation, and ask all questions of it."""
    found: list[Ranking] = []
    turn_at = cue_at = 0
    task = bar.add_task(opener, total=len(ground.cues))
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder("budgets"))
        cluster = stack.enter_context(Cluster(folder / "postgres", settings={**ONE_PROCESS, "fsync": "off"}))
        for number, conversation in enumerate(ground.conversations):
            texts, count = texts_of(conversation), len(conversation.questions)
            own = folder / str(number)
            own.mkdir()
            shelf = Shelf(
                texts,
                ground.turns[turn_at : turn_at + len(texts)],
                [question.text for question in conversation.questions],
                ground.cues[cue_at : cue_at + count],
                own,
                cluster,
                MAX_HITS,
                f"_{number}",
            )
            names: dict[str, frozenset[str]] = {}
            for text, turn in zip(texts, conversation.turns, strict=True):
                names[text] = names.get(text, frozenset()) | {turn.id}
            peer = OPENERS[opener](shelf, stack)
            for place in range(count):
                found.append([names[text] for text in peer.search(place)])
                bar.advance(task)
            turn_at, cue_at = turn_at + len(texts), cue_at + count
    bar.remove_task(task)
    return found


def weigh(conversations: Sequence[Conversation], rankings: Sequence[Ranking]) -> list[dict[int, float]]:
    """Say for every question which share of its evidence each budget holds."""
    tokenizer = load_tokenizers([TOKENIZER])[0]
    shares: list[dict[int, float]] = []
    answers = iter(rankings)
    for conversation in conversations:
        moments = read_moments(conversation.turns)
        costs = {
            turn.id: tokenizer.count(write_piece(moment, name_of(turn), turn.content))
            for turn, moment in zip(conversation.turns, moments, strict=True)
        }
        for question in conversation.questions:
            pieces = [(names, sum(costs[name] for name in names)) for names in next(answers)]
            shares.append(count_within(pieces, question.gold))
    return shares


def summarise(shares: Mapping[str, Sequence[Mapping[int, float]]]) -> Figures:
    """Sum up for everybody: the mean within each budget, and the paired difference from ours."""
    figures: Figures = {}
    for who, some in shares.items():
        figures[who] = {}
        for budget in BUDGETS:
            values = [each[budget] for each in some]
            mean = draw_interval(values)
            change = draw_difference(values, [each[budget] for each in shares[OURS]])
            figures[who][str(budget)] = {
                "mean": mean.mean,
                "low": mean.low,
                "high": mean.high,
                "difference": change.mean,
                "difference_low": change.low,
                "difference_high": change.high,
            }
    return figures


def draw(figures: Figures, questions: int) -> list[Table]:
    """Draw the shares, and what others lack."""
    title = f"LoCoMo, {questions} questions: evidence within so many tokens ({TOKENIZER})"
    shares = Table("", *(f"{budget:,}" for budget in BUDGETS), title=title, title_justify="left")
    title = f"against {OURS}, paired by question, 95 % in brackets"
    lacks = Table("", *(f"{budget:,}" for budget in BUDGETS), title=title, title_justify="left")
    for who, row in figures.items():
        shares.add_row(who, *(f"{each['mean']:.3f}" for each in row.values()))
        if who != OURS:
            lacks.add_row(who, *(write_difference(each) for each in row.values()))
    own = figures[OURS].values()
    shares.add_row(f"{OURS}, 95 %", *(f"{each['low']:.3f}-{each['high']:.3f}" for each in own), style="dim")
    return [shares, lacks]


def write_difference(cell: Mapping[str, float]) -> str:
    """Write a paired difference."""
    return f"{cell['difference']:+.3f} [{cell['difference_low']:+.3f}, {cell['difference_high']:+.3f}]"


def is_installed(module: str) -> bool:
    """Tell whether a module can be imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def main() -> None:
    """Ask everybody, print the tables and write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=0, help="about so many; 0 = all")
    parser.add_argument("--conversations", type=int, default=None, help="only the first so many")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    arguments = parser.parse_args()
    console = Console(width=170)
    embedder = open_embedder(console)
    if embedder is None:
        raise SystemExit("without vectors there is nothing to compare")
    conversations = load(SET, arguments.questions)[: arguments.conversations]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        rankings = uvloop.run(ask_ours(conversations, embedder, bar))
        missing = [who for who in arguments.peers if not is_installed(PEERS[who][1])]
        for who in missing:
            console.print(f"{who}: not run, {PEERS[who][1]} is not installed")
        if present := [who for who in arguments.peers if who not in missing]:
            ground = uvloop.run(prepare(conversations, embedder, bar))
            rankings |= {who: ask_peer(PEERS[who][0], ground, bar) for who in present}
    figures = summarise({who: weigh(conversations, some) for who, some in rankings.items()})
    for table in draw(figures, len(rankings[OURS])):
        console.print(table)
    OUT.mkdir(exist_ok=True)
    (OUT / "budgets.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
