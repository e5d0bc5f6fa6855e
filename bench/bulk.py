"""Measure bulk loads against bare COPY, and imports against an earlier commit, by processor time, in one run.

    uv run python bench/bulk.py --before 7758b5b
    uv run python bench/bulk.py --memories 2000 --conversations 4 --rounds 1      # the short form that CI runs

Every side runs in a process of its own, on a server of its own; they take turns. The bare COPY is that of
bench/speed.py: the driver copies the rows that were just loaded, as values that are ready, into the same tables of
another scope. What is compared is processor time of program and server together.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from ground import OUT, open_folder
from imports import speak
from yardstick import Side, open_sides

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from support.imports.foreign_exports import chatgpt_line

MESSAGES = 40
console = Console()
Spent = dict[str, list[dict[str, Any]]]


def write_export(path: Path, number: int, conversations: int) -> None:
    """Write a ChatGPT export of conversations that no other one has."""
    first = number * conversations
    names = range(first, first + conversations)
    path.write_text(json.dumps([chatgpt_line(f"t{each}", speak(each, MESSAGES)) for each in names]))


def measure(sides: dict[str, Side], folder: Path, memories: int, conversations: int, rounds: int) -> Spent:
    """Let all sides load, copy and import the same, in turns."""
    spent: Spent = {}
    for number in track(range(rounds + 1), "rounds", console=console):
        file = f"export-{number}.json"
        write_export(folder / file, number, conversations)
        for name, side in sides.items():
            side("make", first=number * memories, count=memories)
            taken = {"load": side("load_made")}
            side("fetch_loaded")
            taken |= {"copy": side("copy_ready"), "import": side("bring", file=file)}
            if number:  # the first round warms
                for what, each in taken.items():
                    spent.setdefault(f"{name}: {what}", []).append(each)
    return spent


def sum_up(spent: Spent, counts: dict[str, int]) -> dict[str, dict[str, float]]:
    """Give the median microseconds of a row."""
    figures: dict[str, dict[str, float]] = {}
    for name, rows in spent.items():
        count = counts[name.split(": ")[1]]
        row = {key: median(each[key] for each in rows) / count * 1000 for key in ("program", "server", "wall")}
        row["cpu"] = median(each["program"] + each["server"] for each in rows) / count * 1000
        figures[name] = row
    return figures


def compare(spent: Spent, names: list[str]) -> dict[str, float]:
    """Give the ratios, each the median of those of the rounds."""

    def relate(one: str, other: str, keys: tuple[str, ...]) -> float:
        pairs = zip(spent[one], spent[other], strict=True)
        return median(sum(a[key] for key in keys) / sum(b[key] for key in keys) for a, b in pairs)

    both, found = ("program", "server"), dict[str, float]()
    for name in names:
        found[f"{name}: rate of load, of COPY"] = relate(f"{name}: copy", f"{name}: load", both)
        found[f"{name}: rate of load, of COPY, by the clock"] = relate(f"{name}: copy", f"{name}: load", ("wall",))
    if "before" in names:
        for what in ("load", "import"):
            found[f"{what}: now against before"] = relate(f"before: {what}", f"now: {what}", both)
    return found


def main() -> None:
    """Measure and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default="", help="a commit to compare with")
    parser.add_argument("--memories", type=int, default=10_000, help="of one load")
    parser.add_argument("--conversations", type=int, default=50, help=f"of one import, with {MESSAGES} messages each")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    counts = {"load": asked.memories, "copy": asked.memories, "import": asked.conversations * MESSAGES}
    with open_folder("bulk") as folder, open_sides(asked.before, folder) as sides:
        spent = measure(sides, folder, asked.memories, asked.conversations, asked.rounds)
        held = {name: side("digest")["answer"] for name, side in sides.items()}
        names = list(sides)
    figures = sum_up(spent, counts)
    ratios = compare(spent, names)
    different = [table for table, found in held["now"].items() if any(each[table] != found for each in held.values())]
    OUT.mkdir(exist_ok=True)
    (OUT / "bulk.json").write_text(json.dumps({"rows": figures, "ratios": ratios, "different": different}, indent=1))
    table = Table("us a row", "program", "server", "both", "wall", title="medians")
    for name, row in figures.items():
        table.add_row(name, *(f"{row[key]:.0f}" for key in ("program", "server", "cpu", "wall")))
    console.print(table)
    for name, ratio in ratios.items():
        console.print(f"{name}: {ratio:.2f} x")
    console.print(f"tables that differ: {', '.join(different) or 'none'}")


if __name__ == "__main__":
    main()
