"""Make up the long lives that the stream bench ranks: meanings that cluster, importance and accesses as real ones have.

Texts are not spread evenly over all directions, so these vectors are not noise: 2,000 subjects are drawn in 64
dimensions, every memory lies near one of them, and all are turned into 384 dimensions with a little noise. Cues are
drawn in the same way. `isotropic` worlds are pure noise, the hardest case for any index.

Importance is distributed as in the 989 memories that three agents of Generative Agents had at the end of their day, and
a third of the memories are thoughts. A tenth were accessed again later; the last recalls are still on the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import psycopg
from rich.progress import Progress

import filler
from recollect import Mind, Recollect
from recollect.core.service.numbers import bucket_of, number_scope
from recollect.store.memories import copy_protocol
from space import VECTORS

SUBJECTS, LATENT = 2_000, 64
IMPORTANCE = np.array([69, 64, 265, 105, 59, 141, 227, 53, 6, 1], dtype=float)
"""How many memories have importance 1, 2, 3 ..."""
BEGINNING, YEAR = datetime(2024, 1, 1, tzinfo=UTC), timedelta(days=365)
CHUNK = 20_000
UNFOLDED, TOUCHED = 12, 30
"""How many recalls are on the log, and how many memories each touched."""
TABLES = {
    "memories": "scope_id, id, kind, content, importance, origin, trust, occurred_at, created_at",
    "memory_features": "scope_id, id, kind, importance, origin, occurred_at, length, tells, pinned, speaker",
    VECTORS: "scope_id, id, kind, trust, idle, embedding",
    "accesses": "scope_id, id, kind, last_accessed_at, access_count",
}
TYPES = {
    "memories": "bigint uuid text text real text smallint timestamptz timestamptz",
    "memory_features": "bigint uuid text real text timestamptz integer smallint boolean text",
    VECTORS: "bigint uuid text smallint boolean bytea",
    "accesses": "bigint uuid text timestamptz integer",
}


@dataclass(frozen=True, slots=True)
class World:
    """Where vectors come from."""

    subjects: np.ndarray
    turning: np.ndarray
    isotropic: bool

    @classmethod
    def make(cls, dimensions: int, *, isotropic: bool = False) -> World:
        """Draw the subjects: the same in every run."""
        randomness = np.random.default_rng(5)
        subjects = randomness.standard_normal((SUBJECTS, LATENT), dtype=np.float32)
        turning = randomness.standard_normal((LATENT, dimensions), dtype=np.float32) / np.sqrt(np.float32(LATENT))
        return cls(subjects, turning, isotropic)

    def draw(self, count: int, randomness: np.random.Generator) -> np.ndarray:
        """Draw unit vectors."""
        dimensions = self.turning.shape[1]
        if self.isotropic:
            return filler.unit_vectors(count, dimensions, randomness)
        near = self.subjects[randomness.integers(0, SUBJECTS, count)]
        meant = near + 0.6 * randomness.standard_normal(near.shape, dtype=np.float32)
        rows = meant @ self.turning + 0.25 * randomness.standard_normal((count, dimensions), dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a life: memories by number, each with its kind and its moment."""

    numbers: range
    ids: Sequence[UUID]
    kinds: Sequence[str]
    moments: Sequence[datetime]
    importance: np.ndarray


async def live(recollect: Recollect, mind: Mind, size: int, world: World, progress: Progress) -> None:
    """Fill an empty scope with a life of so many memories, past every policy, unless it was lived already."""
    with psycopg.connect(recollect.addresses.owner, autocommit=True) as connection:
        with connection.transaction():
            if (scope_id := make_scope(connection, mind, size)) is None:
                return
            randomness = np.random.default_rng(size)
            task = progress.add_task(f"a life of {size:,} memories", total=size)
            for start in range(0, size, CHUNK):
                part = draw_stretch(range(start, min(start + CHUNK, size)), size, randomness)
                copy_in(connection, scope_id, part, world.draw(len(part.ids), randomness), randomness)
                progress.advance(task, len(part.ids))
            write_log(connection, scope_id, randomness)
        for table in (*TABLES, "access_log", "scopes"):
            connection.execute(f"vacuum analyze {table}")


def make_scope(connection: psycopg.Connection, mind: Mind, size: int) -> int | None:
    """Make a scope with the counters that its memories will need; None if it is there."""
    row = connection.execute(
        'insert into scopes (id, tenant_id, agent, "user", memory_count) '
        "select %(id)s, %(tenant)s, %(agent)s, '', %(size)s on conflict do nothing returning id",
        {
            "id": number_scope(mind.access.scope.tenant_id, bucket_of(mind.access.scope.agent, ""), size),
            "tenant": mind.access.scope.tenant_id,
            "agent": mind.access.scope.agent,
            "size": size,
        },
    ).fetchone()
    return row[0] if row else None


def draw_stretch(numbers: range, size: int, randomness: np.random.Generator) -> Stretch:
    """Draw what a part of a life consists of, evenly spread over a year."""
    chances = randomness.integers(0, 2**61, len(numbers))
    moments = [BEGINNING + YEAR * (number / size) for number in numbers]
    ids = [
        UUID(int=(int(moment.timestamp() * 1000) << 80) | 7 << 76 | 2 << 62 | int(chance))
        for moment, chance in zip(moments, chances, strict=True)
    ]
    kinds = ["thought" if number % 3 == 0 else "event" for number in numbers]
    importance = randomness.choice(np.arange(1, 11), len(numbers), p=IMPORTANCE / IMPORTANCE.sum())
    return Stretch(numbers, ids, kinds, moments, importance)


def copy_in(
    connection: psycopg.Connection, scope_id: int, part: Stretch, vectors: np.ndarray, randomness: np.random.Generator
) -> None:
    """Write one part into all tables."""
    rows = list(zip(part.ids, part.kinds, map(float, part.importance), part.moments, strict=True))
    later = [BEGINNING + YEAR * float(share) for share in randomness.random(len(part.ids))]
    tables = {
        "memories": (
            (scope_id, id_, kind, filler.sentence(number % 5_000), weight, "bench", 100, moment, moment)
            for number, (id_, kind, weight, moment) in zip(part.numbers, rows, strict=True)
        ),
        "memory_features": (
            (scope_id, id_, kind, weight, "bench", moment, 8, 0, False, "") for id_, kind, weight, moment in rows
        ),
        VECTORS: (
            (scope_id, id_, kind, 100, False, embedding)
            for (id_, kind, _, _), embedding in zip(rows, copy_protocol.write_vectors(vectors, "half"), strict=True)
        ),
        "accesses": (
            (scope_id, id_, kind, max(happened, accessed), 1)
            for id_, kind, happened, accessed in list(zip(part.ids, part.kinds, part.moments, later, strict=True))[::10]
        ),
    }
    for table, values in tables.items():
        query = f"copy {table} ({TABLES[table]}) from stdin (format binary)"
        with connection.cursor() as cursor, cursor.copy(query) as copy:
            copy.set_types(TYPES[table].split())
            for row in values:
                copy.write_row(row)


def write_log(connection: psycopg.Connection, scope_id: int, randomness: np.random.Generator) -> None:
    """Append the recalls of the last minutes, which no job has folded yet."""
    query = (
        "insert into access_log (scope_id, accessed_at, ids, kinds) "
        "select %(scope)s, %(moment)s, array_agg(touched.id), array_agg(touched.kind) "
        "from unnest(%(starts)s::uuid[]) as start cross join lateral ("
        "    select id, kind from memories where scope_id = %(scope)s and id >= start order by id limit 1"
        ") touched"
    )
    for number in range(UNFOLDED):
        moments = [BEGINNING + YEAR * float(share) * 0.99 for share in randomness.random(TOUCHED)]
        starts = [UUID(int=int(moment.timestamp() * 1000) << 80) for moment in moments]
        moment = BEGINNING + YEAR + timedelta(minutes=number)
        connection.execute(query, {"scope": scope_id, "moment": moment, "starts": starts})
