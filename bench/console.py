"""Measure the console on a large scope: how soon every screen shows something, what it asks for, and what it computes.

make bench-console [ARGS="--memories 2000 --entities 200 --topics 100 --messages 300"]

A server of its own holds one scope. Chromium opens each screen anew and is traced: the time from the last answer that a
screen needs to its first content, the largest answer, and the longest task of the page's thread in processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ground import OUT, open_folder
from recollect import Mind, Settings
from recollect.llm.fake import FakeEmbedder
from recollect.mind.service import Addresses
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import NewFact
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.service import Right
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare

ROOT = Path(__file__).parents[1]
DATABASE, AGENT, USER, TALK = "console", "ada", "li", "long-talk"
BEGINNING = datetime(2024, 1, 1, tzinfo=UTC)
PROGRAM = "from recollect.doors.cli.main import main; main()"
HUBS, TOPICS_IN_AREA = 50, 50
"""So many entities know all the others; so many topics lie below one."""
LOADED, APPENDED, STATED = 5_000, 500, 200
START_SECONDS = 120.0
ROLES = (Role.USER, Role.ASSISTANT)
MOST_MS, MOST_BYTES, MOST_CPU_MS = 1_000.0, 1_000_000, 200.0
"""The bar of every screen: from the last answer to the first content, the largest answer, the longest task."""

COLUMNS = (
    "screen",
    "calls",
    "largest answer, kB",
    "first content after the last answer, ms",
    "longest task, ms of CPU",
    "first content after opening, ms",
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the scope is."""

    memories: int
    entities: int
    topics: int
    messages: int


async def fill(addresses: Addresses, sizes: Sizes, console: Console) -> str:
    """Fill the scope, and return a key with every right."""
    embedder = FakeEmbedder()
    await prepare(addresses, embedder)
    async with connected(Settings(embedder="fake", request_timeout_seconds=120), addresses, embedder) as recollect:
        mind = await recollect.mind(AGENT, USER)
        with Progress(console=console, transient=True) as bar:
            await load_events(mind, sizes, bar)
            await append_messages(mind, sizes, bar)
            await state_facts(mind, sizes, bar)
        caller = await recollect.operator.act_for("default")
        return (await recollect.create_key(caller, "bench", tuple(Right), 50))[1]


async def load_events(mind: Mind, sizes: Sizes, bar: Progress) -> None:
    """Load events over two years, each under a topic."""
    wanted = sizes.memories - sizes.messages - sizes.entities
    task = bar.add_task("events", total=wanted)
    for first in range(0, wanted, LOADED):
        numbers = range(first, min(first + LOADED, wanted))
        await mind.load([to_event(number, wanted, sizes.topics) for number in numbers])
        bar.advance(task, len(numbers))


def to_event(number: int, wanted: int, topics: int) -> NewMemory:
    """Make one event."""
    topic = number % topics
    return NewMemory(
        f"Note {number}: the parcel {number % 977} came to house {number % 613} by way of the harbour.",
        Kind.EVENT,
        importance=1 + number % 10,
        occurred_at=BEGINNING + timedelta(days=730) * number / wanted,
        topic=f"area {topic // TOPICS_IN_AREA}->place {topic}",
    )


async def append_messages(mind: Mind, sizes: Sizes, bar: Progress) -> None:
    """Append one long conversation."""
    task = bar.add_task("messages", total=sizes.messages)
    for first in range(0, sizes.messages, APPENDED):
        numbers = range(first, min(first + APPENDED, sizes.messages))
        said = [NewMessage(ROLES[number % 2], f"Turn {number}: and parcel {number % 977}?") for number in numbers]
        await mind.conversation(TALK).append(said)
        bar.advance(task, len(numbers))


async def state_facts(mind: Mind, sizes: Sizes, bar: Progress) -> None:
    """State facts, each of which names an entity that is new."""
    task = bar.add_task("facts", total=sizes.entities)
    for first in range(0, sizes.entities, STATED):
        numbers = range(first, min(first + STATED, sizes.entities))
        facts = [
            NewFact(f"House {number}", "is known to", f"Carrier {number % HUBS}", valid_at=BEGINNING)
            for number in numbers
        ]
        await mind.knowledge.add(facts)
        bar.advance(task, len(numbers))


@contextmanager
def serving(addresses: Addresses, port: int) -> Iterator[str]:
    """Serve the database until the block ends."""
    settings = {"DATABASE_URL": addresses.service, "OWNER_DATABASE_URL": addresses.owner}
    settings |= {"EMBEDDER": "fake", "PORT": str(port)}
    environment = os.environ | {f"RECOLLECT_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-c", PROGRAM, "serve"]
    server = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    url, until = f"http://127.0.0.1:{port}", time.monotonic() + START_SECONDS
    try:
        while not answers(url):
            if server.poll() is not None or time.monotonic() > until:
                raise SystemExit("the server did not come up")
            time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait(timeout=30)


def answers(url: str) -> bool:
    """Tell whether the server is ready."""
    try:
        return httpx.get(f"{url}/health/ready", timeout=5, trust_env=False).is_success
    except httpx.TransportError:
        return False


def walk(url: str, key: str) -> list[dict[str, Any]]:
    """Let the browser open every screen."""
    environment = os.environ | {"RECOLLECT_URL": url, "RECOLLECT_KEY": key, "AGENT": AGENT, "USER_NAME": USER}
    command = ["node", "tests/bench/walk.mjs"]
    ran = subprocess.run(
        command, cwd=ROOT / "console", env=environment | {"TALK": TALK}, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise SystemExit(ran.stdout + ran.stderr)
    seen: list[dict[str, Any]] = json.loads(ran.stdout)
    return seen


def render(seen: list[dict[str, Any]], sizes: Sizes) -> Table:
    """Draw a row for each screen; what is above the bar is marked."""
    title = ", ".join(f"{getattr(sizes, field.name):,} {field.name}" for field in fields(sizes))
    table = Table(title=title, title_justify="left")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "screen" else "right")
    for each in seen:
        numbers = (each["bytes"] / 1000, each["content_ms"], each["task_ms"])
        bars = (MOST_BYTES / 1000, MOST_MS, MOST_CPU_MS)
        cells = [f"{number:.0f}{' !' if number > most else ''}" for number, most in zip(numbers, bars, strict=True)]
        table.add_row(each["screen"], str(each["calls"]), *cells, f"{each['opened_ms']:.0f}")
    return table


def main() -> None:
    """Fill, serve, walk and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--entities", type=int, default=10_000)
    parser.add_argument("--topics", type=int, default=5_000)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--port", type=int, default=17_177)
    asked = parser.parse_args()
    sizes, console = Sizes(asked.memories, asked.entities, asked.topics, asked.messages), Console(width=120)
    with open_folder("console") as folder, Cluster(folder / "postgres", settings={"fsync": "off"}) as cluster:
        asyncio.run(ensure_database(cluster.dsn(), DATABASE))
        addresses = Addresses(cluster.dsn(DATABASE, "recollect_service"), cluster.dsn(DATABASE))
        key = asyncio.run(fill(addresses, sizes, console))
        with serving(addresses, asked.port) as url:
            seen = walk(url, key)
    console.print(render(seen, sizes))
    OUT.mkdir(exist_ok=True)
    (OUT / "console.json").write_text(json.dumps(seen, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
