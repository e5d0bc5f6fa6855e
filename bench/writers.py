"""Measure turns a second of several writers at the same time, in one scope and in several, against an earlier commit.

    uv run python bench/writers.py --before add10ea
    uv run python bench/writers.py --turns 4 --rounds 1           # the short form that CI runs

Every side runs in a process of its own, on a server of its own; they take turns. Vectors are given.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from statistics import median

from rich.console import Console
from rich.progress import track
from rich.table import Table

from ground import OUT, open_folder
from yardstick import Side, open_sides, prepare

SETTINGS = ((1, 1), (1, 8), (8, 8))
"""How many scopes, and how many writers."""
console = Console()


def measure(sides: dict[str, Side], turns: int, rounds: int) -> dict[str, dict[str, float]]:
    """Let all sides append the same turns, one after the other."""
    spent: dict[str, list[dict[str, float]]] = {}
    most = max(writers for _, writers in SETTINGS)
    for number in track(range(rounds + 1), "turns", console=console):
        for scopes, writers in SETTINGS:
            for name, side in sides.items():
                took = side("append_at_once", scopes=scopes, writers=writers, turns=turns, first=number * most * turns)
                if number:  # the first round warms
                    spent.setdefault(f"{name}: {writers} writers, {scopes} scopes", []).append(took)
    figures: dict[str, dict[str, float]] = {}
    for name, rows in spent.items():
        count = turns * int(name.split(": ")[1].split()[0])
        figures[name] = {
            "per_second": median(count / row["wall"] * 1000 for row in rows),
            "program": median(row["program"] / count for row in rows),
            "server": median(row["server"] / count for row in rows),
        }
    return figures


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default="", help="a commit to compare with")
    parser.add_argument("--turns", type=int, default=40, help="of each writer in a round")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    most = max(writers for _, writers in SETTINGS)
    with open_folder("writers") as folder:
        asyncio.run(prepare(folder, 2 * most * asked.turns * (asked.rounds + 1), 1))
        with open_sides(asked.before, folder) as sides:
            figures = measure(sides, asked.turns, asked.rounds)
    OUT.mkdir(exist_ok=True)
    (OUT / "writers.json").write_text(json.dumps(figures, indent=1))
    table = Table("", "turns a second", "program ms a turn", "server ms")
    for name, row in figures.items():
        table.add_row(name, *(f"{row[key]:.2f}" for key in ("per_second", "program", "server")))
    console.print(table)


if __name__ == "__main__":
    main()
