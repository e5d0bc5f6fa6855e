"""Measure the import of a ChatGPT export beside appending the same messages by hand, in one run.

uv run python bench/imports.py                        # 250 conversations of 40 messages; two minutes
uv run python bench/imports.py --conversations 10 --messages 20      # the short form that CI runs
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ground import OUT, open_folder, running
from recollect import Recollect
from recollect.doors.imports.files import read_documents
from recollect.models.conversations import NewMessage
from recollect.models.imports import FileImport, Format
from recollect.models.memories import Role
from recollect.store.embedded.cluster import Cluster

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from support.imports.foreign_exports import chatgpt_line, name

WORDS = ("tea", "bees", "lake", "school", "morning", "oolong", "river", "train", "plan", "budget", "garden", "letter")
SHARE = 10
"""Of how many conversations one is appended turn by turn, which takes longest."""


def speak(number: int, messages: int) -> list[str]:
    """Make up what is said in one conversation."""
    chance = random.Random(number)
    return [" ".join(chance.choice(WORDS) + str(chance.randrange(500)) for _ in range(60)) for _ in range(messages)]


async def bring(recollect: Recollect, path: Path) -> int:
    """Import the file, and return how many messages came over."""
    wanted = FileImport(Format.CHATGPT, "imported", "li")
    documents = read_documents(path, Format.CHATGPT)
    return (await recollect.operator.imports.file(wanted, "default", documents, lambda *_: None)).messages


async def append(recollect: Recollect, conversations: int, messages: int, step: int) -> int:
    """Append the same messages, so many at a time."""
    mind = await recollect.mind(f"appended-{step}", "li")
    for number in range(conversations):
        conversation = mind.conversation(name(f"t{number}"))
        said = [
            NewMessage(Role.ASSISTANT if place % 2 else Role.USER, text, external_id=str(place))
            for place, text in enumerate(speak(number, messages))
        ]
        for first in range(0, messages, step):
            await conversation.append(said[first : first + step])
    return conversations * messages


async def measure(conversations: int, messages: int) -> dict[str, dict[str, float]]:
    """Time the import, the import again, and both ways of appending, each per message."""
    figures: dict[str, dict[str, float]] = {}
    with open_folder("imports") as folder, Cluster(folder / "postgres") as cluster:
        path = folder / "conversations.json"
        path.write_text(
            json.dumps([chatgpt_line(f"t{number}", speak(number, messages)) for number in range(conversations)])
        )
        async with running(cluster, "imports") as recollect:
            ways: dict[str, tuple[int, Callable[[], Awaitable[int]]]] = {
                "import": (conversations * messages, lambda: bring(recollect, path)),
                "again": (conversations * messages, lambda: bring(recollect, path)),
                "append conversations": (
                    conversations * messages,
                    lambda: append(recollect, conversations, messages, messages),
                ),
                "append turns": (
                    max(1, conversations // SHARE) * messages,
                    lambda: append(recollect, max(1, conversations // SHARE), messages, 2),
                ),
            }
            # The first append of a process reads a vocabulary.
            await append(recollect, 1, 1, 1)
            for way, (total, work) in ways.items():
                start, worked = time.perf_counter(), time.process_time()
                written = await work()
                figures[way] = {
                    "messages": total,
                    "written": written,
                    "ms": (time.perf_counter() - start) / total * 1_000,
                    "processor_ms": (time.process_time() - worked) / total * 1_000,
                }
        figures["file"] = {"mb": path.stat().st_size / 1e6}
    return figures


def show(figures: dict[str, dict[str, float]]) -> None:
    """Print the figures, and keep them."""
    table = Table("", "messages", "ms a message", "of which Python", "against the import")
    for way, row in figures.items():
        if way != "file":
            share = row["ms"] / figures["import"]["ms"]
            cells = (f"{row['messages']:,}", f"{row['ms']:.2f}", f"{row['processor_ms']:.2f}", f"{share:.2f}")
            table.add_row(way, *cells)
    Console().print(table)
    OUT.mkdir(exist_ok=True)
    (OUT / "imports.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=int, default=250)
    parser.add_argument("--messages", type=int, default=40)
    chosen = parser.parse_args()
    show(asyncio.run(measure(chosen.conversations, chosen.messages)))
