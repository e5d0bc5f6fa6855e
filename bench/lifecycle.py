"""Measure what a long conversation costs on its way out and back: the time, the longest step, and who waits for it.

    uv run python bench/lifecycle.py                       # 100,000 messages; about five minutes
    uv run python bench/lifecycle.py --messages 2000       # the short form

Beside each change somebody goes on appending to another conversation of the same scope: the slowest of these calls
shows for how long a step can hold up a writer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from statistics import median

import numpy as np
import psycopg
import uvloop
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ground import DIMENSIONS, OUT, open_folder, running
from recollect import Mind
from recollect.models.conversations import ConversationState, NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.service import KeyBinding
from recollect.store.conversations import lifecycle
from recollect.store.conversations.lifecycle import StateChange
from recollect.store.embedded.cluster import Cluster

console = Console()
CALL = 500
WORDS = ("lake", "bread", "river", "window", "garden", "winter", "letter", "music", "stone", "candle", "forest")
LIFE = (
    ("archive", ConversationState.ARCHIVED),
    ("restore", ConversationState.ACTIVE),
    ("delete", ConversationState.DELETED),
    ("restore after delete", ConversationState.ACTIVE),
    ("purge", ConversationState.PURGING),
)


def speak(chance: np.random.Generator, number: int, role: Role) -> NewMessage:
    """Make up one message with its vector."""
    vector = chance.normal(size=DIMENSIONS).astype(np.float32)
    said = " ".join(chance.choice(WORDS, size=20))
    return NewMessage(role, f"{said} {number}", embedding=vector / np.linalg.norm(vector))


async def fill(mind: Mind, messages: int, progress: Progress) -> None:
    """Fill the conversation `long`, and derive a thought from every hundredth message."""
    chance, task = np.random.default_rng(7), progress.add_task("writing", total=messages)
    for start in range(0, messages, CALL):
        said = [
            speak(chance, number, Role.ASSISTANT if number % 2 else Role.USER)
            for number in range(start, min(start + CALL, messages))
        ]
        appended = await mind.conversation("long").append(said)
        thoughts = [
            NewMemory("a thought", Kind.THOUGHT, evidence=(each.id,), embedding=said[0].embedding)
            for each in appended[::100]
        ]
        await mind.remember(thoughts)
        progress.update(task, completed=start + len(said))


async def chatter(mind: Mind, waits: list[float], done: asyncio.Event) -> None:
    """Append to another conversation again and again, and note how long each call took."""
    chance = np.random.default_rng(8)
    while not done.is_set():
        started = time.perf_counter()
        await mind.conversation("other").append(speak(chance, len(waits), Role.USER))
        waits.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(0.02)


async def live(mind: Mind, state: ConversationState) -> dict[str, float]:
    """Bring the conversation into a state, step by step."""
    waits: list[float] = []
    done = asyncio.Event()
    writing = asyncio.create_task(chatter(mind, waits, done))
    database, began = mind.access.parts.database, time.perf_counter()
    scope_id = await lifecycle.change(database, mind.access.scope, "long", StateChange(state, "bench"))
    changed = time.perf_counter()
    steps: list[float] = []
    while True:
        started = time.perf_counter()
        step = await lifecycle.sync_chunk(database, scope_id or 0)
        if step is None:
            break
        steps.append((time.perf_counter() - started) * 1000)
    ended = time.perf_counter()
    done.set()
    await writing
    return {
        "change_ms": (changed - began) * 1000,
        "seconds": ended - began,
        "steps": len(steps),
        "step_median_ms": median(steps),
        "step_slowest_ms": max(steps),
        "append_median_ms": median(waits),
        "append_slowest_ms": max(waits),
    }


async def measure(messages: int) -> dict[str, dict[str, float]]:
    """Live through all states on a server of its own."""
    figures: dict[str, dict[str, float]] = {}
    with open_folder("lifecycle") as folder, Cluster(folder / "postgres") as cluster, Progress(console=console) as bar:
        async with running(cluster, "lifecycle") as recollect:
            mind = await recollect.mind("ada", "li")
            await fill(mind, messages, bar)
            with psycopg.connect(cluster.dsn("lifecycle"), autocommit=True) as owner:
                owner.execute("vacuum analyze")
            for name, state in LIFE:
                figures[name] = await live(mind, state)
            purged = await recollect.tenant.receipts(mind.access.caller, KeyBinding("ada", "li"), conversation="long")
            figures["removed"] = {name: float(count) for name, count in purged.receipts[0].removed.items()}
    return figures


def main() -> None:
    """Measure, print a table, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    messages: int = parser.parse_args().messages
    figures = uvloop.run(measure(messages))
    table = Table("", "change", "all of it", "steps", "step, median", "slowest", "append beside it, median", "slowest")
    for name, _ in LIFE:
        each = figures[name]
        table.add_row(
            name,
            f"{each['change_ms']:.0f} ms",
            f"{each['seconds']:.1f} s",
            f"{each['steps']:.0f}",
            *(f"{each[key]:.0f} ms" for key in ("step_median_ms", "step_slowest_ms")),
            *(f"{each[key]:.0f} ms" for key in ("append_median_ms", "append_slowest_ms")),
        )
    console.print(f"a conversation of {messages:,} messages, {figures['removed']['derived']:,.0f} memories derived")
    console.print(table)
    OUT.mkdir(exist_ok=True)
    (OUT / "lifecycle.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
