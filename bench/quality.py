"""Measure how well recall finds the evidence of public question sets, through the library on a real store.

uv run python bench/quality.py [--set locomo --set madial-zh] [--questions 200]

No model is asked but the embedder: the local one, which reads English and Chinese, or with RECOLLECT_EMBEDDER=openai
that of your own endpoint. The weights are those of core/recall/weights.py, which bench/learn.py learned on the half of
every set that is called training here.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median
from time import perf_counter

import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from datasets import CROSSED, FILES, LEARNED, SIMPLIFIED, TRADITIONAL, in_training, load
from ground import OUT
from recollect.core.recall import quality as measures
from recollect.doors.evaluations import write_change
from recollect.errors import SetupError
from recollect.llm.build import build_local, build_remote_embedder
from recollect.llm.embedder import GLOSS, Embedder
from recollect.models.evaluations import Quality
from recollect.settings import Settings
from stored import serving, store

BASELINES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "locomo": {
        "mem0, Chroma, LangGraph (MiniLM alone)": (0.445, 0.302),
        "BM25 alone": (0.556, 0.420),
        "reciprocal ranks of both": (0.563, 0.404),
        "best recipe so far": (0.750, 0.575),
    },
    "beam": {"BM25 alone": (0.428, 0.345), "MiniLM alone": (0.537, 0.428), "best recipe so far": (0.556, 0.454)},
    "madial-en": {"BM25 alone": (0.596, 0.496), "MiniLM alone": (0.740, 0.582), "best recipe so far": (0.776, 0.655)},
    "madial-zh": {"best recipe so far (BM25)": (0.627, 0.517), "BGE-M3, as published": (0.714, 0.593)},
    "lifebench": {"BM25 alone": (0.299, 0.324), "best recipe so far": (0.508, 0.517)},
    "locomo-learned": {},
    "memdaily": {},
    "madial-zh-cues": {},
    "madial-zh-memories": {},
}
"""Recall@10 and nDCG@10 as measured elsewhere on the same files: the baselines of the project's bench notes."""
GOALS: Mapping[str, float] = {"locomo": 0.80, "lifebench": 0.60, "madial-zh": 0.70, "beam": 0.62}
ALONE, EVERY_HIT = " by vector alone", " over all hits"
GOALS_ALONE = dict.fromkeys((f"{name}{ALONE}" for name in CROSSED), 0.60)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, and how it went."""

    category: str
    training: bool
    quality: Quality
    milliseconds: float


def recall_10(rows: Sequence[Asked]) -> list[float]:
    """List what is compared, question by question."""
    return [row.quality.recall_10 for row in rows]


def difference(rows: Sequence[Asked], base: Sequence[Asked]) -> str:
    """Say how much more of the evidence is found than in another run of the same questions, with 95 % of it."""
    return write_change(measures.draw_difference(recall_10(rows), recall_10(base)))


def describe_half(rows: Sequence[Asked], base: Sequence[Asked], *, training: bool, category: str = "") -> str:
    """Say what one half finds, and what it gains; nothing of a half without questions."""
    pairs = [
        (new, old)
        for new, old in zip(rows, base, strict=True)
        if new.training is training and category in {"", new.category}
    ]
    if not pairs:
        return ""
    news = [new for new, _ in pairs]
    return f"{average(news).recall_10:.3f}, {difference(news, [old for _, old in pairs])}"


async def measure(
    name: str, questions: int, embedder: Embedder | None, bar: Progress, channels: tuple[str, ...] = ()
) -> dict[str, list[Asked]]:
    """Store a set and ask all its questions, of the usual channels if none are named.

    Counted are hits that are turns. Where others stand among them, it is counted over all hits, too.
    """
    conversations = load(name, questions)
    rows: dict[str, list[Asked]] = {"": [], **({EVERY_HIT: []} if name == LEARNED else {})}
    task = bar.add_task(f"{name}: questions", total=sum(len(conversation.questions) for conversation in conversations))
    async with serving(embedder) as recollect:
        number = 0
        async for stored in store(recollect, name, conversations, embedder, bar):
            for question, cue in stored.cues:
                started = perf_counter()
                answer = await stored.mind.recall(replace(cue, channels=channels))
                milliseconds = (perf_counter() - started) * 1000
                found = [(stored.turns.get(hit.memory.id, ""), str(hit.memory.id)) for hit in answer.hits]
                for label, some in rows.items():
                    ranked = [turn or other for turn, other in found if turn or label]
                    quality = measures.measure(ranked, question.gold)
                    some.append(Asked(question.category, in_training(name, number), quality, milliseconds))
                bar.advance(task)
            number += 1
    bar.remove_task(task)
    return rows


def group(rows: Sequence[Asked]) -> dict[str, list[Asked]]:
    """Group the questions: all, each half, and each category."""
    halves = {"held out": [row for row in rows if not row.training], "training": [row for row in rows if row.training]}
    categories: defaultdict[str, list[Asked]] = defaultdict(list)
    for row in rows:
        categories[row.category].append(row)
    named = {f"  {name}": some for name, some in sorted(categories.items())} if len(categories) > 1 else {}
    return {"all": list(rows), **{name: some for name, some in halves.items() if some}, **named}


def render(name: str, rows: Sequence[Asked]) -> Table:
    """Draw one set's results beside what others reach on it."""
    wanted = {**GOALS, **GOALS_ALONE}.get(name)
    goal = f", goal {wanted:.2f}" if wanted else ""
    pace = median(row.milliseconds for row in rows)
    table = Table(title=f"{name}: {len(rows)} questions{goal}; {pace:.0f} ms each", title_justify="left")
    for column in ("", "questions", "R@5", "R@10", "95 % of R@10", "R@30", "nDCG@10"):
        table.add_column(column, justify="right" if column else "left")
    for label, (recall, ndcg) in BASELINES.get(name, {}).items():
        table.add_row(label, "", "", f"{recall:.3f}", "", "", f"{ndcg:.3f}", style="dim")
    for label, some in group(rows).items():
        mean, drawn = average(some), measures.draw_interval(recall_10(some))
        between = f"{drawn.low:.3f}-{drawn.high:.3f}"
        cells = (f"{mean.recall_5:.3f}", f"{mean.recall_10:.3f}", between, f"{mean.recall_30:.3f}")
        table.add_row(label, str(len(some)), *cells, f"{mean.ndcg_10:.3f}")
    return table


def average(rows: Sequence[Asked]) -> Quality:
    """Return the mean over questions."""
    return measures.average([row.quality for row in rows])


def summarise(rows: Sequence[Asked]) -> dict[str, dict[str, float]]:
    """Write the figures down."""
    return {
        label.strip(): {
            "questions": len(some),
            **{field.name: getattr(average(some), field.name) for field in fields(Quality)},
            "low": (drawn := measures.draw_interval(recall_10(some))).low,
            "high": drawn.high,
        }
        for label, some in group(rows).items()
    }


def open_embedder(console: Console) -> Embedder | None:
    """Open the endpoint of the settings, else the local model that reads Chinese, too; or say why there is none."""
    settings = Settings()
    try:
        return build_remote_embedder(settings) if settings.embedder == "openai" else build_local(GLOSS)
    except SetupError as error:
        console.print(f"no vectors: {error}")
        return None


def main() -> None:
    """Run the sets asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = (*FILES, *CROSSED)
    parser.add_argument("--set", action="append", choices=choices, dest="sets", help="default: all of them")
    parser.add_argument("--questions", type=int, default=0, help="about so many per set; 0 = all")
    parser.add_argument("--text-only", action="store_true", help="leave the embedder alone")
    arguments = parser.parse_args()
    console = Console(width=120)
    embedder = None if arguments.text_only else open_embedder(console)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    figures, asked = {}, dict[str, list[Asked]]()
    with Progress(*columns, console=console, transient=True) as bar:
        for name in arguments.sets or choices:
            for label, channels in (("", ()), (ALONE, ("vector",))):
                if not label or (name in CROSSED and embedder is not None):
                    measured = uvloop.run(measure(name, arguments.questions, embedder, bar, channels))
                    for counted, rows in measured.items():
                        asked[name + label + counted] = rows
                        console.print(render(name + label + counted, rows))
                        figures[name + label + counted] = summarise(rows)
            if name in TRADITIONAL and SIMPLIFIED in asked:
                console.print(f"against {SIMPLIFIED} in one script: {difference(asked[name], asked[SIMPLIFIED])}\n")
    OUT.mkdir(exist_ok=True)
    (OUT / "quality.json").write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
