"""Measure what folding variants of characters costs: CPU per character of the terms of public texts, and the table.

make bench BENCH=terms

Rounds alternate between the ways, and the fastest round of each counts: others use the machine, too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from unittest.mock import patch

import psutil

from datasets import load
from recollect.core.text import terms
from recollect.core.text.variants import fold_characters, load_forms

CHARACTERS = 200_000
SETS: Mapping[str, str] = {
    "English (LoCoMo)": "locomo",
    "simplified (LifeBench)": "lifebench",
    "simplified (MADial)": "madial-zh",
    "traditional (MADial by OpenCC)": "madial-zh-memories",
}


def normalise(text: str) -> str:
    """Fold width alone by Unicode's normalisation."""
    return unicodedata.normalize("NFKC", text)


WAYS: Mapping[str, Callable[[str], str]] = {"width, ns": normalise, "width and variants, ns": fold_characters}
"""How texts are folded."""


def read_texts(name: str) -> list[str]:
    """Read contents of a set, about so many characters."""
    texts: list[str] = []
    left = CHARACTERS
    for conversation in load(name):
        for turn in conversation.turns:
            if left > 0:
                texts.append(turn.content)
                left -= len(turn.content)
    return texts


def measure(texts: Sequence[str], rounds: int) -> dict[str, float]:
    """Find the terms of texts by every way in turns; return the CPU time of a character in nanoseconds."""
    best = dict.fromkeys(WAYS, float("inf"))
    characters = sum(map(len, texts))
    for _ in range(rounds):
        for way, fold in WAYS.items():
            with patch.object(terms, "fold_characters", fold):
                started = time.process_time()
                for text in texts:
                    terms.analyse(text)
                best[way] = min(best[way], (time.process_time() - started) / characters * 1e9)
    return best


def weigh_table() -> str:
    """Load the table in this process, and say what that took."""
    process = psutil.Process()
    before, started = process.memory_info().rss, time.process_time()
    rows = len(load_forms())
    spent = (time.process_time() - started) * 1000
    return f"{rows} rows, {spent:.0f} ms of CPU, {(process.memory_info().rss - before) / 2**20:.1f} MB"


def main() -> None:
    """Print a row for each kind of text, and what the table costs in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--table", action="store_true", help="only load the table")
    arguments = parser.parse_args()
    if arguments.table:
        print(weigh_table())
        return
    print(f"| CPU of terms per character | {' | '.join(WAYS)} |")
    print("|---|" + "---|" * len(WAYS))
    for label, name in SETS.items():
        best = measure(read_texts(name), arguments.rounds)
        print(f"| {label} | {' | '.join(f'{best[way]:.0f}' for way in WAYS)} |", flush=True)
    command = [sys.executable, __file__, "--table"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    print(f"\nthe table: {told}")


if __name__ == "__main__":
    main()
