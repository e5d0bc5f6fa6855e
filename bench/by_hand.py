"""Measure what is written by hand beside the library that could do it: broken answers of models, and bulk loads.

uv run python bench/by_hand.py                        # half a minute
uv run python bench/by_hand.py --answers 20 --sizes 50 --rounds 2      # the short form that CI runs
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import struct
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from pgvector import HalfVector, SparseVector
from pgvector.psycopg import register_vector_async
from pydantic_core import from_json
from rich.console import Console
from rich.table import Table

import filler
from ground import DIMENSIONS, OUT, open_folder, running
from recollect.core.memories.importance import read_importance
from recollect.core.text.lenient_json import OPENING, THOUGHT_ENDS, read_fragments
from recollect.core.text.terms import term_weights
from recollect.models.memories import NewMemory, Triple
from recollect.models.service import EmbeddingSpace
from recollect.store.embedded.cluster import Cluster
from recollect.store.memories import bulk
from recollect.store.memories.columns import EVERY, Row
from recollect.store.memories.copy_protocol import SLOTS, write_terms
from recollect.store.memories.memories import hash_terms
from recollect.verbs.memories.rows import prepare
from space import SPACE

Figures = dict[str, dict[str, float]]
EPOCH, BEGINNING = datetime(2000, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
BIGINT, INT, SMALLINT, REAL = (struct.Struct(f">{kind}").pack for kind in "qihf")
BOOLEAN, LENGTHS = (b"\0", b"\1"), {length: INT(length) for length in range(-1, 1_024)}
WORDS = ("Ann", "lives in", "Berlin", 'the "old" town', "it's late", "D:\\data", "one\ntwo", "tea, hot", "{draft}")


def make_answer(chance: random.Random) -> dict[str, Any]:
    """Make up what a model says of a segment: texts, and lists of objects whose last fields turn their meaning."""

    def say() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(1, 6)))

    entities = [{"name": f"{say()} {number}", "aliases": [say()], "type": "person"} for number in range(4)]
    facts = [
        {"subject": say(), "text": f"{say()} {number}", "valid_at": None, "replaces": [number, 12]}
        for number in range(6)
    ]
    return {"summary": say(), "importance": 10, "entities": entities, "facts": facts, "keywords": [say()]}


def cut(text: str, chance: random.Random) -> str:
    """End an answer anywhere behind its first fifth, as a limit of tokens does."""
    return text[: chance.randrange(len(text) // 5, len(text))]


DAMAGES: dict[str, Callable[[str, random.Random], str]] = {
    "whole": lambda text, _: text,
    "in a code block": lambda text, _: f"Here it is:\n```json\n{text}\n```\nAnything else?",
    "prose around": lambda text, _: f"Sure! {text} I hope this helps.",
    "after a thought": lambda text, _: f'<think>Perhaps {{"facts": []}}?</think>{text}',
    "two objects": lambda text, _: f'{text}\n{{"facts": []}}',
    "cut": cut,
    "in a code block, cut": lambda text, chance: f"```json\n{cut(text, chance)}",
    "trailing commas": lambda text, _: re.sub(r"(?<=[\]}\"])(?=[\]}])", ",", text),
    "a comma missing": lambda text, _: text.replace("}, {", "} {", 1),
    "a bracket missing": lambda text, _: text.replace("12]}", "12}", 1),
    "single quotes": lambda text, _: repr(json.loads(text)),
    "bare line breaks": lambda text, _: text.replace("\\n", "\n"),
    "backslashes alone": lambda text, _: text.replace("D:\\\\", "D:\\"),
}


def read_partial(text: str) -> Any:  # noqa: ANN401 - parsed JSON
    """Find the start of the JSON, and leave the rest to the library."""
    said = text.rpartition(THOUGHT_ENDS)[2]
    opening = OPENING.search(said)
    try:
        return from_json(said[opening.start() :], allow_partial=True) if opening else None
    except ValueError:
        return None


def read_careful(text: str) -> Any:  # noqa: ANN401 - parsed JSON
    """Leave out the last object of what the library read of a text that was cut: nobody knows if it was whole."""
    found = read_partial(text)
    opening = OPENING.search(text)
    try:
        from_json(text[opening.start() :] if opening else "")
    except ValueError as problem:
        if isinstance(found, dict) and "EOF" in str(problem):
            last = list(found)[-1:]
            return found | {name: found[name][:-1] for name in last if isinstance(found[name], list)}
    return found


READERS = {"our reader": read_fragments, "from_json": read_partial, "from_json, last left out": read_careful}


def measure_answers(count: int) -> dict[str, Figures]:
    """Count for each damage the answers whose entities and facts are read as far as they were said, no half ones."""
    chance = random.Random(7)
    right: Figures = {damage: dict.fromkeys(READERS, 0.0) for damage in DAMAGES}
    seconds = dict.fromkeys(READERS, 0.0)
    for _ in range(count):
        text = json.dumps(make_answer(chance))
        items = list_items(json.loads(text))
        for damage, spoil in DAMAGES.items():
            broken = spoil(text, chance)
            expected = [each for each in items if "cut" not in damage or json.dumps(each) in broken]
            for name, read in READERS.items():
                began = time.process_time()
                found = read(broken)
                seconds[name] += time.process_time() - began
                right[damage][name] += list_items(found) == expected
    own = seconds["our reader"]
    return {"answers": right, "cpu": {"ratio": {name: spent / own for name, spent in seconds.items()}}}


def list_items(answer: Any) -> list[Any]:  # noqa: ANN401 - parsed JSON
    """Give the objects of an answer."""
    said = answer if isinstance(answer, dict) else {}
    return [each for name in ("entities", "facts") for each in said.get(name, [])]


@dataclass(frozen=True, slots=True)
class Ground:
    """What a load is measured on."""

    connection: psycopg.AsyncConnection[Any]
    heading: bulk.BulkHeader
    rows: list[Row]
    vectors: dict[UUID, np.ndarray]


async def load_as_today(ground: Ground) -> None:
    """Let the driver write rows, with arrays and vectors as bytes that are ready."""
    await bulk.send(ground.connection, bulk.encode(ground.heading, ground.rows, ground.vectors))


async def load_by_driver(ground: Ground) -> None:
    """Let the driver and the adapters of pgvector write everything."""
    hashed = [hash_terms(ground.heading.scope_id, row.weights) for row in ground.rows]
    types = [*(column.type for column in EVERY), "bigint[]", "sparsevec", "integer", "halfvec"]
    async with ground.connection.cursor() as cursor, cursor.copy(bulk.QUERIES["copy"]) as copying:
        copying.set_types(types)
        for row, (hashes, by_slot) in zip(ground.rows, hashed, strict=True):
            vector = ground.vectors.get(row.id)
            embedding = None if vector is None else HalfVector(vector)
            values = [column.value(row) for column in EVERY]
            await copying.write_row((*values, hashes, to_sparse(by_slot), row.draw, embedding))


def to_sparse(by_slot: dict[int, float]) -> SparseVector:
    """Give weights by slot as the adapter takes them."""
    return SparseVector({slot - 1: weight for slot, weight in by_slot.items()}, SLOTS)


async def load_by_hand(ground: Ground) -> None:
    """Write the binary format ourselves."""
    terms = write_terms(ground.heading.scope_id, [row.weights for row in ground.rows])
    embedded = bulk.encode_vectors(ground.heading, ground.vectors)
    data = lay_out(
        (*write_memory(row), hashes, weights, INT(row.draw), embedded.get(row.id))
        for row, (hashes, weights) in zip(ground.rows, terms, strict=True)
    )
    async with ground.connection.cursor() as cursor, cursor.copy(bulk.QUERIES["copy"]) as copying:
        await copying.write(data)


def write_memory(row: Row) -> tuple[bytes | None, ...]:
    """Write what every row has, in the order of the columns."""
    memory, triple = row.memory, row.memory.triple
    return (
        row.id.bytes, memory.kind.encode(), memory.content.encode(), memory.speaker.encode(),
        REAL(read_importance(memory.importance)), memory.importance_from.encode(),
        triple.subject.encode(), triple.predicate.encode(), triple.object.encode(), BOOLEAN[row.idle],
        SMALLINT(row.depth), write_texts(row.keywords), SMALLINT(row.trust), write_moment(row.occurred_at),
        memory.embedding_text.encode(), b"\x01" + (json.dumps(memory.metadata).encode() if memory.metadata else b"{}"),
        write_moment(memory.expires_at) if memory.expires_at else None, INT(len(row.weights)), SMALLINT(row.tells),
        BOOLEAN[memory.pinned], row.named.encode(), None, None, None,
    )  # fmt: skip


def write_moment(moment: datetime) -> bytes:
    """Write a timestamptz."""
    return BIGINT((moment - EPOCH) // MICROSECOND)


def write_texts(values: Sequence[str]) -> bytes:
    """Write a text[]."""
    items = [value.encode() for value in values]
    head = struct.pack(">iiiii", 1, 0, 25, len(items), 1) if items else struct.pack(">iii", 0, 0, 25)
    return head + b"".join(INT(len(item)) + item for item in items)


def lay_out(rows: Iterable[Sequence[bytes | None]]) -> bytes:
    """Lay rows of fields out as one stream."""
    parts = [b"PGCOPY\n\xff\r\n\0" + bytes(8)]
    for row in rows:
        parts.append(SMALLINT(len(row)))
        for field in row:
            parts += (LENGTHS[-1],) if field is None else (LENGTHS.get(len(field)) or INT(len(field)), field)
    parts.append(b"\xff\xff")
    return b"".join(parts)


WAYS: dict[str, Callable[[Ground], Awaitable[None]]] = {
    "as today": load_as_today,
    "driver alone": load_by_driver,
    "by hand": load_by_hand,
}


def make_row(number: int) -> Row:
    """Make up a memory ready to be written."""
    triple = Triple("Ann", "drinks", "tea") if number % 2 else Triple()
    metadata = {"number": number} if number % 3 == 0 else {}
    memory = NewMemory(filler.sentence(number), speaker="Ann", triple=triple, keywords=("tea",), metadata=metadata)
    ready = prepare(memory)
    moment = BEGINNING + timedelta(minutes=number)
    identity = UUID(int=number << 64 | 7)
    weights = term_weights(ready.counts, 30.0)
    place = (moment, 100, (), weights, ready.draw, ready.tells, ready.named)
    return Row(identity, memory, ready.keywords, True, False, 0, *place)  # noqa: FBT003


async def measure_loads(sizes: list[int], rounds: int) -> Figures:
    """Measure the CPU of this process for each way, in turns, with and without vectors."""
    figures: Figures = {}
    with open_folder("by-hand") as folder, Cluster(folder / "postgres") as cluster:
        async with (
            running(cluster, "by_hand"),
            await psycopg.AsyncConnection.connect(cluster.dsn("by_hand"), autocommit=True) as connection,
        ):
            await register_vector_async(connection)
            stage = bulk.QUERIES["stage"].replace("on commit drop", "").replace("{type}", "halfvec")
            await connection.execute(stage)
            space = EmbeddingSpace(SPACE, "bench@1", DIMENSIONS, "active")
            heading = bulk.BulkHeader(1, "bench", BEGINNING, space)
            for size in sizes:
                rows = [make_row(number) for number in range(1, size + 1)]
                vectors = np.random.default_rng(7).standard_normal((size, DIMENSIONS), np.float32)
                bare = Ground(connection, heading, rows, {})
                full = replace(bare, vectors={row.id: vector for row, vector in zip(rows, vectors, strict=True)})
                figures[f"{size:,}"] = await compare(bare, rounds)
                figures[f"{size:,} with vectors"] = await compare(full, rounds)
    return figures


async def compare(ground: Ground, rounds: int) -> dict[str, float]:
    """Give the median CPU of each way in microseconds a memory."""
    spent: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, load in WAYS.items():
            began = time.process_time()
            await load(ground)
            spent[way].append(time.process_time() - began)
            await ground.connection.execute("truncate staged_memories")
    return {way: median(seconds) / len(ground.rows) * 1e6 for way, seconds in spent.items()}


def show(title: str, figures: Figures, form: str) -> None:
    """Print one table."""
    table = Table(title, *next(iter(figures.values())))
    for name, row in figures.items():
        table.add_row(name, *(format(value, form) for value in row.values()))
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--answers", type=int, default=200, help="how many, each damaged in every way")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000], help="memories of a load")
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    measured = measure_answers(chosen.answers) | {"loads": asyncio.run(measure_loads(chosen.sizes, chosen.rounds))}
    show(f"read right, of {chosen.answers}", measured["answers"], ".0f")
    show("CPU", measured["cpu"], ".2f")
    show("µs of CPU a memory", measured["loads"], ".1f")
    OUT.mkdir(exist_ok=True)
    (OUT / "by_hand.json").write_text(json.dumps(measured, indent=1))
