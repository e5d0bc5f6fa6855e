"""Measure the tokenizers: how fast they count, how long a vocabulary takes to load, and what it keeps in memory."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import psutil

from recollect.core.text.tokens import TOKENIZERS
from recollect.llm.tokens.count import load_tokenizers

ROOT = Path(__file__).parents[1]
DEFAULT = "o200k_base cl100k_base"
SECONDS = 1.0
LONGEST = 32_000
HARD = {"a": "a" * 200_000, "blanks": " " * 200_000 + "x", "emoji": "😀" * 200_000, "Chinese": "的" * 200_000}


def main() -> None:
    """Print one row for each tokenizer, each measured in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", help="measure these tokenizers in this process")
    names = parser.parse_args().one
    if names:
        print(measure(names.split()))
        return
    hard = " | ".join(f"200,000 x {label}, ms" for label in HARD)
    print(f"| tokenizer | load, CPU s | resident, MB | English, Mchar/s | Chinese, Mchar/s | code, Mchar/s | {hard} |")
    print("|" + "---|" * (6 + len(HARD)))
    for name in (*TOKENIZERS, DEFAULT):
        command = [sys.executable, __file__, "--one", name]
        print(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip(), flush=True)


def measure(names: list[str]) -> str:
    """Load the tokenizers, let all of them count, and give the row."""
    import tiktoken  # noqa: F401 - the library is not part of a vocabulary's weight

    process = psutil.Process()
    before, start = process.memory_info().rss, time.process_time()
    tokenizers = load_tokenizers(names)
    for tokenizer in tokenizers:
        tokenizer.count("first")
    load, resident = time.process_time() - start, (process.memory_info().rss - before) / 2**20

    def count(text: str) -> None:
        for tokenizer in tokenizers:
            tokenizer.count(text)

    speeds = [f"{speed(count, text) / 1e6:.1f}" for text in texts()]
    hard = [f"{milliseconds(count, text):.0f}" for text in HARD.values()]
    return "| " + " | ".join([" + ".join(names), f"{load:.2f}", f"{resident:.0f}", *speeds, *hard]) + " |"


def texts() -> list[str]:
    """Give English, Chinese and code of this repository, as long as the longest memory."""
    english = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "docs" / "explanation").glob("*.md")))
    chinese = (ROOT / "README.zh.md").read_text("utf-8")
    code = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py"))[:40])
    return [(text * (LONGEST // len(text) + 1))[:LONGEST] for text in (english, chinese, code)]


def speed(count, text: str) -> float:  # noqa: ANN001 - a function of this file
    """Give characters counted a second of this process's own time."""
    start, rounds = time.process_time(), 0
    while time.process_time() - start < SECONDS:
        count(text)
        rounds += 1
    return rounds * len(text) / (time.process_time() - start)


def milliseconds(count, text: str) -> float:  # noqa: ANN001 - a function of this file
    """Give how long one count takes."""
    start = time.process_time()
    count(text)
    return 1000 * (time.process_time() - start)


if __name__ == "__main__":
    main()
