"""The command `recollect admin bench`: how long writes and recalls of this installation take."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import quantiles
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from recollect.doors.cli.terminal import err, out, with_mind

if TYPE_CHECKING:
    from recollect.mind.mind import Mind

commands = typer.Typer()

WORDS = ["apple", "river", "mountain", "coffee", "letter", "train", "garden", "winter", "music", "bridge"]


async def measure(mind: Mind, count: int, report: Callable[[], None]) -> Table:
    """Write and recall `count` memories one by one, delete them, and tabulate the times."""
    writes, recalls, ids = [], [], []
    for number in range(count):
        started = time.perf_counter()
        receipts = await mind.remember(sentence(number))
        writes.append(time.perf_counter() - started)
        ids.append(receipts[0].id)
        report()
    for number in range(count):
        started = time.perf_counter()
        await mind.recall(sentence(number))
        recalls.append(time.perf_counter() - started)
        report()
    for start in range(0, count, 1_000):
        await mind.forget(ids[start : start + 1_000])
    table = Table("milliseconds", "median", "95 of 100 below", title=f"{count} of each, one at a time")
    for name, times in (("remember", writes), ("recall", recalls)):
        ranks = quantiles(times, n=20)
        table.add_row(name, f"{ranks[9] * 1000:.1f}", f"{ranks[18] * 1000:.1f}")
    return table


def sentence(number: int) -> str:
    """Make up a memory."""
    first, second = WORDS[number % 10], WORDS[number // 10 % 10]
    return f"Note {number}: the {first} reminded somebody of the {second}"


@commands.command()
def bench(memories: Annotated[int, typer.Option(help="Number of memories to write and recall.", min=2)] = 200) -> None:
    """Measure the speed of writes and recalls in a temporary scope."""
    with Progress(console=err) as progress:
        task = progress.add_task("timing", total=2 * memories)
        report: Callable[[], None] = lambda: progress.advance(task)  # noqa: E731
        table = with_mind("bench", "", "bench", lambda mind: measure(mind, memories, report), here=True)
    out.print(table)
