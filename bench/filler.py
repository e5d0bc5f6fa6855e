"""Make rows for the speed bench: fast, random, and the same shape as real ones."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from psycopg.types.json import Jsonb
from rich.progress import Progress

from recollect import Mind, NewMemory, Recollect
from recollect.channels.channel import Channel, Proposal
from recollect.core.recall.cues import ParsedCue
from recollect.core.service.numbers import tenant_of
from recollect.models.recall import Script, StreamWeights
from recollect.store.service.scopes import ScopeHandle, locate
from space import VECTORS

SYLLABLES = ("bar", "cor", "din", "fel", "gam", "hul", "jos", "kap", "lem", "mor", "nut", "pir", "ros", "sul", "tav")
VOCABULARY, FIRST_RANK = 3_000, 50
"""Words by rank; the first fifty stand for stop words, which no search sees."""
CHUNK = 20_000
SIGNATURE = b"PGCOPY\n\xff\r\n\0" + b"\0" * 8
MEMORY_COLUMNS = (
    "scope_id, id, kind, content, speaker, importance, subject, predicate, object, idle, depth, keywords, "
    "origin, trust, occurred_at, created_at, embedding_text, metadata"
)
TERM_COLUMNS = "scope_id, id, kind, trust, terms, weights, draw"
VECTOR_COLUMNS = "scope_id, id, kind, trust, idle, importance, embedding"
MEMORY_TYPES = (
    "int8 uuid text text text float4 text text text bool int2 text[] text int2 timestamptz timestamptz text jsonb"
)
TERM_TYPES = "int8 uuid text int2 int8[] sparsevec int4"
VECTOR_TYPES = "int8 uuid text int2 bool float4 halfvec"


def sentence(number: int) -> str:
    """Make up a memory of ten words: the most frequent one in about every twentieth, most of them rare."""
    chosen = random.Random(number)
    ranks = (int(FIRST_RANK * (VOCABULARY / FIRST_RANK) ** chosen.random()) for _ in range(10))
    return f"{number} " + " ".join(map(word, ranks))


def word(rank: int) -> str:
    """Spell the word of a rank."""
    return SYLLABLES[rank % 15] + SYLLABLES[rank // 15 % 15] + SYLLABLES[rank // 225]


def unit_vectors(count: int, dimensions: int, randomness: np.random.Generator) -> np.ndarray:
    """Draw random directions."""
    rows = randomness.standard_normal((count, dimensions), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def memories(start: int, count: int, randomness: np.random.Generator, dimensions: int) -> list[NewMemory]:
    """Make memories that bring their vectors along."""
    vectors = unit_vectors(count, dimensions, randomness)
    return [NewMemory(sentence(start + number), embedding=vectors[number]) for number in range(count)]


async def place_of(recollect: Recollect, mind: Mind) -> ScopeHandle:
    """Find where a scope lies."""
    return await locate(recollect.parts.database, mind.access.scope)


def reading(vector: np.ndarray) -> ParsedCue:
    """Read a cue that is a vector and nothing else."""
    return ParsedCue((), Script.WORDS, vector, StreamWeights(), datetime.now(UTC))


async def ask(recollect: Recollect, channel: Channel, place: ScopeHandle, vector: np.ndarray, limit: int) -> Proposal:
    """Put a vector to one channel, as recall does."""
    async with recollect.parts.database.reading(tenant_of(place.scope_id or 0)) as connection:
        answer = await channel.send_query(connection, place, reading(vector), limit)
    return await answer()


async def fill(recollect: Recollect, rows: int, dimensions: int, progress: Progress) -> None:
    """Fill the vector table with other scopes of 1,000 memories each, past every policy."""
    randomness = np.random.default_rng(9)
    task = progress.add_task(f"{rows:,} of other scopes", total=rows)
    async with await psycopg.AsyncConnection.connect(recollect.addresses.owner, autocommit=True) as connection:
        for start in range(0, rows, CHUNK):
            count = min(CHUNK, rows - start)
            block = pack(start, count, dimensions, randomness)
            query = f"copy {VECTORS} ({VECTOR_COLUMNS}) from stdin (format binary)"
            async with connection.cursor() as cursor, cursor.copy(query) as copy:
                await copy.write(SIGNATURE + block + b"\xff\xff")
            progress.advance(task, count)


def pack(start: int, count: int, dimensions: int, randomness: np.random.Generator) -> bytes:
    """Lay rows out as binary COPY wants them."""
    row = np.dtype(
        [
            ("fields", ">i2"), ("a", ">i4"), ("scope", ">i8"), ("b", ">i4"), ("id", "V16"), ("c", ">i4"),
            ("kind", "S5"), ("d", ">i4"), ("trust", ">i2"), ("e", ">i4"), ("idle", "?"), ("f", ">i4"),
            ("importance", ">f4"), ("g", ">i4"), ("dimensions", ">u2"), ("unused", ">u2"),
            ("embedding", ">f2", (dimensions,)),
        ]
    )  # fmt: skip
    block = np.zeros(count, row)
    block["fields"], block["a"], block["b"], block["c"], block["d"], block["e"], block["f"] = 7, 8, 16, 5, 2, 1, 4
    block["g"] = 4 + 2 * dimensions
    block["scope"] = (2**22 << 40) + (start + np.arange(count)) // 1000
    block["id"] = [UUID(int=(start + number) << 64 | 7 << 76).bytes for number in range(count)]
    block["kind"], block["trust"], block["importance"] = b"event", 50, 5.0
    block["dimensions"], block["embedding"] = dimensions, unit_vectors(count, dimensions, randomness)
    return block.tobytes()


def vacuum(recollect: Recollect) -> None:
    """Do what autovacuum would have done by now."""
    with psycopg.connect(recollect.addresses.owner, autocommit=True) as connection:
        for table in (VECTORS, "memories", "memory_terms", "memory_keywords", "accesses", "scopes"):
            connection.execute(f"vacuum analyze {table}")


Ready = list[tuple[str, list[str], list[tuple[Any, ...]]]]


async def fetch_rows(connection: psycopg.AsyncConnection[Any], ids: list[UUID], scope_id: int) -> Ready:
    """Read rows just loaded, as values ready to be copied bare under another scope."""
    tables = {
        "memories": (MEMORY_COLUMNS, MEMORY_TYPES), "memory_terms": (TERM_COLUMNS, TERM_TYPES),
        VECTORS: (VECTOR_COLUMNS, VECTOR_TYPES),
    }  # fmt: skip
    ready: Ready = []
    for table, (columns, types) in tables.items():
        renamed = columns.replace("scope_id", f"{scope_id}::bigint")
        query = f"select {renamed} from {table} where id = any (%s) order by id"
        rows = await (await connection.execute(query, (ids,))).fetchall()
        json_last = [(*row[:-1], Jsonb(row[-1])) for row in rows] if table == "memories" else rows
        ready.append((f"copy {table} ({columns}) from stdin (format binary)", types.split(), json_last))
    return ready


async def copy_bare(connection: psycopg.AsyncConnection[Any], ready: Ready) -> float:
    """Copy ready values straight into the tables with the driver's own COPY, and return the seconds."""
    started = time.perf_counter()
    async with connection.transaction():
        for query, types, rows in ready:
            async with connection.cursor() as cursor, cursor.copy(query) as copy:
                copy.set_types(types)
                for row in rows:
                    await copy.write_row(row)
    return time.perf_counter() - started
