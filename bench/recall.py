"""Measure what asking every channel at once costs: against the slowest channel alone, and over HTTP.

    uv run python bench/recall.py                                  # a scope of 10,000 memories; about two minutes
    uv run python bench/recall.py --memories 500 --rounds 5        # the short form that CI runs

Every cue names somebody, a thing, a topic and a day, and brings its vector along, so that every channel has something
to go by. The calls alternate, and medians are compared. All of them are whole recalls, from the cue to the memories.
"""

from __future__ import annotations

import argparse
import http.client
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import uvloop
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import filler
from ground import DIMENSIONS, LARGE_MACHINE, OUT, WARMING, alternate, open_folder, running
from recollect import Mind, NewMemory, Recollect
from recollect.client.bodies import flatten
from recollect.core.recall.weights import EVERY_CHANNEL
from recollect.models import Cue
from recollect.models.knowledge import NewFact
from recollect.models.memories import Triple
from recollect.models.service import Right
from recollect.store.embedded.cluster import Cluster
from speed import serving

PEOPLE, THINGS, FIELDS, FACTS, CHUNK = 200, 400, 50, 500, 1_000
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
RATIO_GOAL, HTTP_GOAL_MS = 4.0, 50.0
console = Console()
Figures = dict[str, dict[str, float]]


def person(number: int) -> str:
    """Name somebody; no two share a word of their names, as no two memories of a life need to."""
    return filler.word(3_000 + number % PEOPLE).capitalize()


def thing(number: int) -> str:
    """Name a thing."""
    return filler.word(2_600 + number % THINGS)


def memory(number: int, size: int, vector: np.ndarray) -> NewMemory:
    """Make up what somebody did with a thing at some time of the last year, filed under a topic."""
    triple = Triple(person(number), "uses", thing(number * 7))
    moment = NOW - timedelta(days=365) * (number / size)
    content = f"{triple.subject} uses {triple.object}: {filler.sentence(number)}"
    topic = f"area {number % FIELDS % 10}->field {number % FIELDS}"
    return NewMemory(content, triple=triple, occurred_at=moment, topic=topic, embedding=vector.tolist())


async def fill(mind: Mind, size: int) -> None:
    """Store memories, and facts about the people in them."""
    randomness = np.random.default_rng(0)
    with Progress(console=console) as progress:
        task = progress.add_task(f"a scope of {size:,}", total=size)
        for start in range(0, size, CHUNK):
            vectors = filler.unit_vectors(min(CHUNK, size - start), DIMENSIONS, randomness)
            await mind.remember([memory(start + number, size, vector) for number, vector in enumerate(vectors)])
            progress.advance(task, len(vectors))
    for start in range(0, FACTS, 50):
        pairs = [(number, number + 1 + number % 7) for number in range(start, start + 50)]
        await mind.knowledge.add([NewFact(person(one), "knows", person(other)) for one, other in pairs])


def cue(number: int, vector: np.ndarray, *channels: str) -> Cue:
    """Ask for somebody, a thing, a topic and a day; no worker folds the log of accesses, so none is written."""
    text = f"What did {person(number)} do with {thing(number)} and {filler.word(60 + number)} last week?"
    topics = (f"area {number % FIELDS % 10}->field {number % FIELDS}",)
    return Cue(text, embedding=vector.tolist(), topics=topics, now=NOW, touch=False, channels=channels)


async def measure_channels(recollect: Recollect, mind: Mind, rounds: int) -> Figures:
    """Compare a recall by all channels with a recall by each of them alone, all in the same run."""
    names = [name for name in EVERY_CHANNEL if name in {channel.name for channel in recollect.parts.channels}]
    vectors = filler.unit_vectors(rounds + WARMING, DIMENSIONS, np.random.default_rng(1))

    async def ask(number: int, *, channels: tuple[str, ...]) -> object:
        found = await mind.recall(cue(number, vectors[number], *channels))
        late = [name for name, method in found.methods.items() if "did not answer" in method]
        assert not late, f"{late} ran out of time"
        return found

    calls: list[Callable[[int], Awaitable[object]]] = [partial(ask, channels=(name,)) for name in names]
    *alone, together = await alternate(rounds, *calls, partial(ask, channels=tuple(names)))
    figures = {name: {"ms": milliseconds} for name, milliseconds in zip(names, alone, strict=True)}
    return figures | {"all": {"ms": together, "channels": len(names), "ratio": together / max(alone)}}


async def measure_http(recollect: Recollect, mind: Mind, rounds: int) -> Figures:
    """Time recalls over HTTP, from a server of its own process: by all channels, and by the usual ones."""
    vectors = filler.unit_vectors(rounds + WARMING, DIMENSIONS, np.random.default_rng(2))
    names = tuple(name for name in EVERY_CHANNEL if name in {channel.name for channel in recollect.parts.channels})
    caller = await recollect.operator.act_for("default")
    _, secret = await recollect.create_key(caller, "bench", [Right.READ], 100)
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}

    def body(number: int, channels: tuple[str, ...]) -> bytes:
        fields: dict[str, Any] = flatten(cue(number, vectors[number], *channels))
        return json.dumps({"agent": mind.access.scope.agent} | fields).encode()

    with serving(recollect.addresses.service) as port:
        client = http.client.HTTPConnection("127.0.0.1", port)

        async def ask(number: int, *, channels: tuple[str, ...]) -> object:
            client.request("POST", "/v1/recall", body(number, channels), headers)
            answer = client.getresponse()
            assert answer.status == 200, answer.read()
            return answer.read()

        every, usual = await alternate(rounds, partial(ask, channels=names), partial(ask, channels=()))
        client.close()
    return {"http all": {"ms": every}, "http usual": {"ms": usual}}


async def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=100)
    asked = parser.parse_args()
    with open_folder("recall") as folder, Cluster(folder / "postgres", settings=LARGE_MACHINE) as cluster:
        async with running(cluster, "recall") as recollect:
            mind = await recollect.mind("ada")
            await fill(mind, asked.memories)
            filler.vacuum(recollect)
            figures = await measure_channels(recollect, mind, asked.rounds)
            figures |= await measure_http(recollect, mind, asked.rounds)
    OUT.mkdir(exist_ok=True)
    (OUT / "recall.json").write_text(json.dumps(figures, indent=1))
    print_figures(figures, asked.memories)


def print_figures(figures: Figures, size: int) -> None:
    """Print what was measured next to the goal."""
    table = Table("recall by", "median", "figure", "goal", title=f"a scope of {size:,} memories")
    for name, row in figures.items():
        figure, goal = "", ""
        if name == "all":
            figure, goal = f"{row['ratio']:.2f} x the slowest", f"<= {RATIO_GOAL:g} x"
        elif name.startswith("http"):
            figure, goal = "", f"< {HTTP_GOAL_MS:g} ms"
        table.add_row(name, f"{row['ms']:.2f} ms", figure, goal)
    console.print(table)


if __name__ == "__main__":
    uvloop.run(main())  # the loop that the server runs on
