"""Measure processor time of recalls and writes against the bare engine, and against an earlier commit, in one run.

    uv run python bench/yardstick.py --before add10ea            # 1,000, 10,000 and 100,000 memories; about an hour
    uv run python bench/yardstick.py --scopes 300 --rounds 2     # the short form that CI runs

Every side has a server of its own: the bare tables of bench/bare.py, the code of this checkout, and that of the commit
named by --before. They take turns, call by call. What is compared is processor time of program and server together,
on both sides.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import filler
from bare import WINNERS, Bare, Vectors
from datasets import DATA, FILES, load
from ground import DIMENSIONS, ONE_PROCESS, OUT, WARMING, open_folder
from recollect.llm.build import has_minilm
from recollect.llm.local.minilm import load_minilm
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster

ROOT = Path(__file__).resolve().parents[1]
CHANNELS = ("vector", "text")
console = Console()
Figures = dict[str, dict[str, float]]


def read_texts(count: int) -> tuple[list[tuple[str, str]], list[str]]:
    """Give who said what, and questions: turns of real conversations and, beyond them, pieces of two joined."""
    if not (DATA / FILES["locomo"]).exists():
        return [("", filler.sentence(number)) for number in range(count)], [filler.sentence(n) for n in range(200)]
    conversations = load("locomo")
    said = [(turn.speaker, turn.content) for each in conversations for turn in each.turns]
    chosen = random.Random(7)
    for number in range(len(said), count):
        speaker, first = said[number % len(said)]
        left, right = first.split(), chosen.choice(said)[1].split()
        cut = chosen.randrange(len(left) + 1)
        said.append((speaker, " ".join([*left[:cut], *right[chosen.randrange(len(right) + 1) :]]) or first))
    questions = [question.text for each in conversations for question in each.questions]
    chosen.shuffle(questions)
    return said[:count], questions


async def embed(texts: Sequence[str]) -> Vectors:
    """Embed real texts, once; directions at chance where there is no model."""
    if not has_minilm():
        return filler.unit_vectors(len(texts), DIMENSIONS, np.random.default_rng(0))
    path = OUT / f"yardstick-{hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:20]}.npy"
    if not path.exists():
        OUT.mkdir(exist_ok=True)
        embedder = load_minilm()
        chunks = [list(texts[start : start + 256]) for start in range(0, len(texts), 256)]
        rows = [await embedder.embed(chunk) for chunk in track(chunks, "embedding", console=console)]
        np.save(path, np.concatenate(rows))
    vectors: Vectors = np.load(path)
    return vectors


async def prepare(folder: Path, count: int, cues: int) -> tuple[list[tuple[str, str]], list[str], Vectors, Vectors]:
    """Write texts, questions and their vectors where every side reads them."""
    texts, questions = read_texts(count)
    questions = (questions * (cues // len(questions) + 1))[:cues]
    own = list(dict.fromkeys(f"{speaker}: {content}" for speaker, content in texts[:6_000]))
    known = dict(zip(own, await embed(own), strict=True))
    noise = np.random.default_rng(1)
    vectors = np.empty((count, DIMENSIONS), dtype=np.float32)
    for number, (speaker, content) in enumerate(texts):
        base = known.get(f"{speaker}: {content}")
        if base is None:
            base = known[own[number % len(own)]] + 0.5 / np.sqrt(DIMENSIONS) * noise.standard_normal(DIMENSIONS)
        vectors[number] = base / np.linalg.norm(base)
    cue_vectors = await embed(questions)
    (folder / "texts.json").write_text(json.dumps(texts))
    (folder / "cues.json").write_text(json.dumps(questions))
    np.save(folder / "vectors.npy", vectors)
    np.save(folder / "cue_vectors.npy", cue_vectors)
    return texts, questions, vectors, cue_vectors


class Side:
    """A checkout that runs in a process of its own."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        path = os.pathsep.join([str(checkout / "src"), str(ROOT / "bench")])
        environment = {**os.environ, "PYTHONPATH": path, "RECOLLECT_EMBEDDER": "none"}
        command = [sys.executable, str(ROOT / "bench" / "arm.py"), str(folder)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
        self._read()

    def __call__(self, call: str, **order: object) -> dict[str, Any]:
        """Let it do something, and give what it took."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"call": call, **order}) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("A side of the bench ended: see above.")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it, and its server."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(60)


@contextmanager
def check_out(commit: str, folder: Path) -> Iterator[Path]:
    """Check an earlier commit out beside this one."""
    target = folder / commit
    subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", target, commit], check=True)
    try:
        yield target
    finally:
        subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", target], check=True)


@contextmanager
def open_sides(before: str, folder: Path) -> Iterator[dict[str, Side]]:
    """Run this checkout, and that of an earlier commit if one is named."""
    with ExitStack() as stack:
        checkouts = {"now": ROOT}
        if before:
            checkouts = {"before": stack.enter_context(check_out(before, folder)), **checkouts}
        sides: dict[str, Side] = {}
        for name, checkout in checkouts.items():
            sides[name] = Side(checkout, folder)
            stack.callback(sides[name].close)
        yield sides


def sum_up(spent: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Give the medians of what calls took."""
    counted = spent[WARMING:]
    both = [each["program"] + each["server"] for each in counted]
    return {"cpu": median(both)} | {
        name: median(each[name] for each in counted) for name in ("program", "server", "wall")
    }


def measure_recall(
    bare: Bare, sides: dict[str, Side], scope: int, cues: Sequence[str], vectors: Vectors, rounds: int
) -> Figures:
    """Ask every side the same questions in turns, by the usual channels and by each leading one alone."""
    spent: dict[str, list[dict[str, Any]]] = {}
    same = 0
    for number in track(range(rounds + WARMING), f"recalls of {scope:,}", console=console):
        parts = bare.search(scope, cues[number], vectors[number])
        for name, part in parts.items():
            spent.setdefault(f"bare {name}", []).append(asdict(part))
        spent.setdefault("bare", []).append(
            {key: sum(asdict(part)[key] for part in parts.values()) for key in ("program", "server", "wall")}
        )
        hits: list[Any] = []
        for name, side in sides.items():
            taken = side("recall", scope=f"scope-{scope}", number=number, channels=[])
            spent.setdefault(name, []).append(taken)
            hits.append(taken["answer"])
            for channel in CHANNELS:
                alone = side("recall", scope=f"scope-{scope}", number=number, channels=[channel])
                spent.setdefault(f"{name} {channel}", []).append(alone)
        same += all(each == hits[0] for each in hits)
    figures = {name: sum_up(taken) for name, taken in spent.items()}
    for name in sides:
        figures[name]["ratio"] = figures[name]["cpu"] / figures["bare"]["cpu"]
        for channel in CHANNELS:
            needed = figures[f"bare {channel}"]["cpu"] + figures["bare rows"]["cpu"]
            figures[f"{name} {channel}"]["ratio"] = figures[f"{name} {channel}"]["cpu"] / needed
    figures["same"] = {"share": same / (rounds + WARMING)}
    return figures


def measure_writes(
    bare: Bare, sides: dict[str, Side], texts: Sequence[tuple[str, str]], vectors: Vectors, rounds: int
) -> Figures:
    """Insert, remember and append in turns."""
    spent: dict[str, list[dict[str, Any]]] = {}
    for number in track(range(rounds + WARMING), "writes", console=console):
        taken = bare.insert(-1, number, texts[number], vectors[number])
        spent.setdefault("bare insert", []).append(asdict(taken))
        for name, side in sides.items():
            spent.setdefault(f"{name} remember", []).append(side("remember", scope="writes", number=number))
            spent.setdefault(f"{name} turn", []).append(side("append", scope="writes", number=2 * number, size=2))
    figures = {name: sum_up(each) for name, each in spent.items()}
    for name in sides:
        figures[f"{name} remember"]["ratio"] = figures[f"{name} remember"]["cpu"] / figures["bare insert"]["cpu"]
    return figures


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default="", help="a commit to compare with")
    parser.add_argument("--scopes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=60)
    asked = parser.parse_args()
    figures: Figures = {}
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder("yardstick"))
        calls = asked.rounds + WARMING
        most = max(*asked.scopes, 2 * calls + 2)
        texts, cues, vectors, cue_vectors = asyncio.run(prepare(folder, most, calls))
        cluster = stack.enter_context(Cluster(folder / "postgres", settings=ONE_PROCESS))
        asyncio.run(ensure_database(cluster.dsn(), "bare"))
        bare = Bare(cluster.dsn("bare"))
        stack.callback(bare.connection.close)
        sides = stack.enter_context(open_sides(asked.before, folder))
        for scope in asked.scopes:
            bare.fill(scope, texts[:scope], vectors[:scope])
            for name, side in sides.items():
                console.print(f"{name}: a scope of {scope:,}")
                side("load", scope=f"scope-{scope}", count=scope)
        bare.connection.execute("vacuum analyze")
        for side in sides.values():
            side("vacuum")
        for scope in asked.scopes:
            made = measure_recall(bare, sides, scope, cues, cue_vectors, asked.rounds)
            figures |= {f"{scope} {name}": row for name, row in made.items()}
        figures |= measure_writes(bare, sides, texts, vectors, asked.rounds)
    OUT.mkdir(exist_ok=True)
    (OUT / "yardstick.json").write_text(json.dumps(figures, indent=1))
    print_figures(figures)


def print_figures(figures: Figures) -> None:
    """Print what was measured: processor time of program and server, and the ratio to the bare engine."""
    table = Table("", "program ms", "server ms", "both", "wall", "of the bare engine", title=f"medians; {WINNERS} hits")
    for name, row in figures.items():
        if name.endswith("same"):
            table.add_row(name, "", "", "", "", f"{row['share']:.0%} the same hits")
            continue
        cells = (f"{row[key]:.2f}" for key in ("program", "server", "cpu", "wall"))
        table.add_row(name, *cells, f"{row['ratio']:.2f} x" if "ratio" in row else "")
    console.print(table)


if __name__ == "__main__":
    main()
