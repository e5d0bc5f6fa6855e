"""Measure how well and how fast the times that a text names are found.

uv run python bench/dates.py            # the phrases of the tests, and what a cue costs
uv run python bench/dates.py --misses   # and which phrases are read otherwise than written down
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from datasets import DATA, Conversation, load
from recollect.core.dates.find import find_periods
from recollect.core.dates.periods import rate_moments, to_microseconds

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from support.memories.date_phrases import NOW, ZONES, Spans, find, read_phrases

OUT = Path(__file__).parent / "out" / "dates.json"
LABELS = {"en": "English", "zh": "Chinese", "traps": "name no time"}
SETS = ("locomo", "lifebench")
"""Sets of questions about turns whose time is known."""
console = Console()


def list_misses(name: str) -> list[tuple[str, Spans, Spans]]:
    """List the phrases that are read otherwise than written down."""
    return [(text, meant, found) for text, meant in read_phrases(name) if (found := find(text, name)) != meant]


def time_phrases(name: str, rounds: int) -> Iterator[float]:
    """Time each phrase in microseconds: the fastest of some rounds, because the others were disturbed."""
    now = NOW.replace(tzinfo=ZONES[name])
    for text, _ in read_phrases(name):
        spent = list[float]()
        for _ in range(rounds):
            begun = time.perf_counter()
            find_periods(text, now, ZONES[name])
            spent.append(time.perf_counter() - begun)
        yield min(spent) * 1e6


def show(spans: Spans) -> str:
    """Write spans as the tables have them."""
    return ", ".join("/".join(moment.isoformat()[:16].removesuffix("T00:00") for moment in span) for span in spans)


def main() -> None:
    """Print one row for each table of phrases, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="so often each phrase is timed")
    parser.add_argument("--misses", action="store_true", help="list what is read otherwise than written down")
    arguments = parser.parse_args()
    figures = measure_phrases(arguments.rounds, misses=arguments.misses)
    if DATA.is_dir():
        figures |= measure_sets()
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def measure_phrases(rounds: int, *, misses: bool) -> dict[str, dict[str, float]]:
    """Read the tables of phrases, and time them."""
    figures = dict[str, dict[str, float]]()
    table = Table("phrases", "right", "of", "share", "median, us", "slowest, us")
    for name, label in LABELS.items():
        missed, times = list_misses(name), sorted(time_phrases(name, rounds))
        count, right = len(times), len(times) - len(missed)
        figures[name] = {"right": right, "of": count, "median_us": times[count // 2], "slowest_us": times[-1]}
        share = f"{100 * right / count:.1f} %"
        table.add_row(label, str(right), str(count), share, f"{times[count // 2]:.0f}", f"{times[-1]:.0f}")
        for text, meant, found in missed if misses else []:
            console.print(f"{text}\n    meant {show(meant)}\n    found {show(found)}", markup=False)
    console.print(table)
    return figures


def measure_sets() -> dict[str, dict[str, float]]:
    """See where the evidence of questions lies that name a time."""
    figures = dict[str, dict[str, float]]()
    table = Table("questions", "all", "name a time", *("some evidence within", "or soon after", "all turns within"))
    for name in SETS:
        rows = [row for conversation in load(name) for row in weigh(conversation)]
        named = [row for row in rows if row]
        within, echo, turns = (mean(column) for column in zip(*named, strict=True))
        figures[name] = {"of": len(rows), "named": len(named), "within": within, "echo": echo, "turns": turns}
        shares = [f"{100 * value:.1f} %" for value in (within, echo, turns)]
        table.add_row(name, str(len(rows)), str(len(named)), *shares)
    console.print(table)
    return figures


def weigh(conversation: Conversation) -> Iterator[tuple[float, float, float] | None]:
    """Tell of each question whether evidence lies in its periods, or soon after, and which share of everything does."""
    moments = {turn.id: read_when(turn.when) for turn in conversation.turns}
    now = max(moments.values())
    for question in conversation.questions:
        periods = find_periods(question.text, now, UTC)
        if not periods:
            yield None
            continue
        within = {key for key, at in moments.items() if any(each.start <= at < each.end for each in periods)}
        evidence = np.array([to_microseconds(moments[key]) for key in question.gold], dtype=np.int64)
        echoed = rate_moments(periods, evidence).any()
        yield float(bool(question.gold & within)), float(echoed), len(within) / len(moments)


def read_when(when: str) -> datetime:
    """Read "1:56 pm on 8 May, 2023", "2025-01-01" or "2025-01-01 06:00:00"."""
    if " on " in when:
        return datetime.strptime(f"{when} +0000", "%I:%M %p on %d %B, %Y %z")
    return datetime.fromisoformat(when).replace(tzinfo=UTC)


def mean(values: Iterable[float]) -> float:
    """Take the mean."""
    listed = list(values)
    return sum(listed) / len(listed)


if __name__ == "__main__":
    main()
