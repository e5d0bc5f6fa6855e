"""Judge where talks are cut, on talks that are made up of stretches of others: there it is known where topics end.

    uv run python bench/segments.py                # 100 talks of every sort
    uv run python bench/segments.py --talks 5      # the short form that CI runs

Each talk has six stretches: of one speaker's turns of LoCoMo, of both speakers' turns of it, of the English and of the
Chinese dialogues of MADial. Their times are left out, because the stretches lie days apart. The rules were chosen by
one half of each set; the other half is held out. For every depth: how many cuts there are for each end, how many of
them are right, and how many ends are found. Then, for as many cuts as there are ends, how many are right, beside chance
and beside other windows and terms.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import TypeAlias
from uuid import UUID

import uvloop
from rich.console import Console
from rich.progress import track
from rich.table import Table

from datasets import Conversation, in_training, load
from ground import OUT
from recollect import Settings
from recollect.core.knowledge.segments import DEFAULT, DepthRule, SegmentRules, segment, to_turn
from recollect.llm.build import build_embedder
from recollect.llm.embedder import Embedder
from recollect.models.knowledge import SegmentEnd, Turn

console = Console()
MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)
STRETCHES, SHORTEST = 6, 4
ASSISTANT = "Assistant"
DEPTHS = (0.3, 0.4, 0.5, 0.6, 0.7)
Line: TypeAlias = tuple[str, str]
"""Who says it, and what."""
Stretch: TypeAlias = Sequence[Line]


@dataclass(frozen=True)
class Talk:
    """Turns, and the positions at which another stretch begins."""

    turns: list[Turn]
    ends: set[int]


def read_locomo(conversation: Conversation, *, one: bool) -> list[Stretch]:
    """Read the sessions of a conversation, of one speaker or of both."""
    sessions: dict[str, list[Line]] = {}
    for turn in conversation.turns:
        if not one or turn.speaker == conversation.turns[0].speaker:
            sessions.setdefault(turn.session, []).append((turn.speaker, turn.content))
    return [session for session in sessions.values() if len(session) >= SHORTEST]


def read_madial(conversation: Conversation) -> list[Stretch]:
    """Read the dialogues that its questions are."""
    dialogues = [
        [(who, said.strip('"')) for who, _, said in (line.partition(": ") for line in question.text.split("\n"))]
        for question in conversation.questions
    ]
    return [dialogue for dialogue in dialogues if len(dialogue) >= SHORTEST]


SETS: Mapping[str, tuple[str, Callable[[Conversation], list[Stretch]]]] = {
    "LoCoMo, one speaker": ("locomo", lambda conversation: read_locomo(conversation, one=True)),
    "LoCoMo, both": ("locomo", lambda conversation: read_locomo(conversation, one=False)),
    "MADial en": ("madial-en", read_madial),
    "MADial zh": ("madial-zh", read_madial),
}


def make_up(lots: random.Random, stretches: Sequence[Stretch]) -> list[Stretch]:
    """Join a few turns each of some stretches, from anywhere in them, but for an answer."""
    chosen = []
    for stretch in lots.sample(stretches, STRETCHES):
        size = min(lots.randint(4, 8), len(stretch))
        first = lots.choice([place for place in range(len(stretch) - size + 1) if stretch[place][0] != ASSISTANT])
        chosen.append(stretch[first : first + size])
    return chosen


def list_talks(number: int) -> dict[tuple[str, str], list[list[Stretch]]]:
    """Make up so many talks of every sort, for both halves of its set."""
    talks = {}
    for name, (file, read) in SETS.items():
        for half in ("chosen by", "held out"):
            lots = random.Random(7)
            sources = [
                read(each) for place, each in enumerate(load(file)) if in_training(file, place) == (half == "chosen by")
            ]
            talks[name, half] = [make_up(lots, lots.choice(sources)) for _ in range(number)]
    return talks


async def embed_all(embedder: Embedder, texts: Sequence[str]) -> dict[str, object]:
    """Embed the texts that the model reads, each once."""
    read = sorted({text for text in texts if embedder.reads(text)})
    batches = [read[first : first + 64] for first in range(0, len(read), 64)]
    rows = [row for batch in track(batches, "embedding", console=console) for row in await embedder.embed(batch)]
    return dict(zip(read, rows, strict=True))


def to_talk(stretches: Sequence[Stretch], vectors: Mapping[str, object]) -> Talk:
    """Make a talk of stretches; only what a user says begins a segment."""
    lines = [line for stretch in stretches for line in stretch]
    turns = [
        to_turn(UUID(int=place + 1), MIDNIGHT, said, vectors.get(said), opens=who != ASSISTANT)  # type: ignore[arg-type]
        for place, (who, said) in enumerate(lines)
    ]
    return Talk(turns, set(accumulate(map(len, stretches[:-1]))))


def cut(talk: Talk, rules: SegmentRules) -> set[int]:
    """Cut a talk; return the positions at which segments begin."""
    closed, _ = segment(talk.turns, rules, SegmentEnd.ASKED)
    return set(accumulate(len(each.turns) for each in closed[:-1]))


def judge(talks: Sequence[Talk], rules: SegmentRules) -> dict[str, float]:
    """Say how many cuts there are for each end, which part of them is right, and which part of the ends is found."""
    cuts = ends = right = places = 0
    for talk in talks:
        found = cut(talk, rules)
        cuts, ends, right = cuts + len(found), ends + len(talk.ends), right + len(found & talk.ends)
        places += len(talk.turns) - 1
    return {
        "cuts": cuts,
        "ends": ends,
        "right": right / max(cuts, 1),
        "found": right / ends,
        "chance": ends / places,
    }


def as_many_as_ends(talks: Sequence[Talk], rules: SegmentRules) -> dict[str, float]:
    """Judge at the depth at which there are about as many cuts as ends."""
    low, high = 0.0, 2.0
    for _ in range(12):
        middle = (low + high) / 2
        found = judge(talks, deepen(rules, middle))
        low, high = (middle, high) if found["cuts"] > found["ends"] else (low, middle)
    return judge(talks, deepen(rules, high)) | {"depth": high}


def deepen(rules: SegmentRules, depth: float) -> SegmentRules:
    """Ask for another depth."""
    return replace(rules, vectors=replace(rules.vectors, depth=depth), terms=replace(rules.terms, depth=depth))


def tried() -> dict[str, SegmentRules]:
    """List the rules that were tried, the usual ones first."""
    return {
        f"{window} turns, {reach} places": replace(DEFAULT, vectors=DepthRule(window, reach, 0.5))
        for window, reach in ((2, 3), (1, 3), (2, 2), (3, 3), (4, 4))
    }


def print_depths(judged: Mapping[tuple[str, str], Mapping[float, Mapping[str, float]]]) -> None:
    """Print cuts for each end, right and found for every depth."""
    table = Table(
        "made-up talks", "", "chance", *(f"depth {depth:g}" for depth in DEPTHS), title="cuts an end / right / found"
    )
    for (name, half), row in judged.items():
        cells = (
            f"{each['cuts'] / each['ends']:.2f} / {each['right']:.2f} / {each['found']:.2f}" for each in row.values()
        )
        table.add_row(name, half, f"{row[DEPTHS[0]]['chance']:.2f}", *cells)
    console.print(table)


def print_tried(judged: Mapping[str, Mapping[tuple[str, str], Mapping[str, float]]]) -> None:
    """Print which part of as many cuts as there are ends is right."""
    places = list(next(iter(judged.values())))
    title = "right, of as many cuts as ends"
    table = Table("", *(f"{name}\n{half}" for name, half in places), title=title)
    for name, row in judged.items():
        table.add_row(name, *(f"{row[place]['right']:.2f}" for place in places))
    table.add_row("chance", *(f"{next(iter(judged.values()))[place]['chance']:.2f}" for place in places))
    console.print(table)


async def main() -> None:
    """Judge everything and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--talks", type=int, default=100, help="how many talks of every sort")
    asked = parser.parse_args()
    made = list_talks(asked.talks)
    embedder = build_embedder(Settings(embedder="local"))
    if embedder is None:
        raise SystemExit("No embedder is installed: pip install 'recollect-memory[local]'.")
    said = [text for talks in made.values() for talk in talks for stretch in talk for _, text in stretch]
    vectors = await embed_all(embedder, said)
    await embedder.close()
    talks = {key: [to_talk(talk, vectors) for talk in some] for key, some in made.items()}
    depths = {
        key: {depth: judge(some, replace(DEFAULT, vectors=replace(DEFAULT.vectors, depth=depth))) for depth in DEPTHS}
        for key, some in talks.items()
    }
    compared = {
        name: {key: as_many_as_ends(some, rules) for key, some in talks.items()} for name, rules in tried().items()
    }
    bare = {
        key: [replace(talk, turns=[replace(turn, embedding=None) for turn in talk.turns]) for talk in some]
        for key, some in talks.items()
    }
    compared["by terms"] = {key: as_many_as_ends(some, DEFAULT) for key, some in bare.items()}
    OUT.mkdir(exist_ok=True)
    written = {
        "depths": {" ".join(key): row for key, row in depths.items()},
        "tried": {name: {" ".join(key): each for key, each in row.items()} for name, row in compared.items()},
    }
    (OUT / "segments.json").write_text(json.dumps(written, indent=1))
    print_depths(depths)
    print_tried(compared)


if __name__ == "__main__":
    uvloop.run(main())  # the loop that the server runs on
