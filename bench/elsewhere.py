"""Rank a stream outside of the database, as is often done: all rows travel to the program and are scored there."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from uuid import UUID

import numpy as np
import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from space import VECTORS

WEIGHTS, DECAY = (0.5, 3.0, 2.0), 0.99
"""What recency, similarity and importance weigh, as they do inside."""
LIMIT = 30
COARSE = 100
"""So many of the nearest are taken where a search by vector goes first."""
NEAREST = f"""
    and memories.id in (
        select id from {VECTORS} where scope_id = %(scope)s order by embedding <=> %(cue)s::halfvec limit %(coarse)s
    )
"""
PULL = """
    with unfolded as (
        select touched.id, max(accessed_at) as accessed_at
        from access_log, unnest(ids) as touched (id) where scope_id = %(scope)s group by touched.id
    )
    select memories.id, memories.content, memories.importance, {embedding} as embedding
    from memories
    join {vectors} on {vectors}.scope_id = memories.scope_id and {vectors}.id = memories.id
    left join accesses on accesses.scope_id = memories.scope_id and accesses.id = memories.id
    left join unfolded on unfolded.id = memories.id
    where memories.scope_id = %(scope)s and memories.kind in ('event', 'thought') and not memories.idle {narrowed}
    order by greatest(memories.occurred_at, accesses.last_accessed_at, unfolded.accessed_at) desc,
             memories.kind = 'thought', memories.id desc
"""


def rank_in_python(dsn: str, scope_id: int, cue: np.ndarray) -> list[UUID]:
    """Pull vectors as text, as a driver without pgvector gets them, and score with plain lists and dictionaries."""
    query = PULL.format(vectors=VECTORS, embedding=f"{VECTORS}.embedding::text", narrowed="")
    with psycopg.connect(dsn, autocommit=True) as connection:
        rows = connection.execute(query, {"scope": scope_id}).fetchall()
    asked = [float(number) for number in cue]
    recency = normalise({row[0]: DECAY**place for place, row in enumerate(rows, 1)})
    similarity = normalise({row[0]: cosine(json.loads(row[3]), asked) for row in rows})
    importance = normalise({row[0]: float(row[2]) for row in rows})
    scores = {
        id_: WEIGHTS[0] * recency[id_] + WEIGHTS[1] * similarity[id_] + WEIGHTS[2] * importance[id_] for id_ in recency
    }
    return sorted(scores, key=lambda id_: scores[id_], reverse=True)[:LIMIT]


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """Compare two directions."""
    dot = sum(a * b for a, b in zip(left, right, strict=True))
    return dot / math.sqrt(sum(a * a for a in left)) / math.sqrt(sum(b * b for b in right))


def normalise(values: dict[UUID, float]) -> dict[UUID, float]:
    """Bring values between 0 and 1."""
    least, greatest = min(values.values()), max(values.values())
    return {id_: (value - least) / (greatest - least) for id_, value in values.items()}


def rank_in_numpy(dsn: str, scope_id: int, cue: np.ndarray, *, coarsely: bool = False) -> list[UUID]:
    """Pull vectors as pgvector's own objects and score all at once; if coarsely, only those nearest to the cue."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        register_vector(connection)
        query = PULL.format(vectors=VECTORS, embedding=f"{VECTORS}.embedding", narrowed=NEAREST if coarsely else "")
        parameters = {"scope": scope_id, "cue": HalfVector(cue), "coarse": COARSE}
        rows = connection.execute(query, parameters, binary=True).fetchall()
    vectors = np.stack([row[3].to_numpy() for row in rows]).astype(np.float32)
    factors = (
        DECAY ** np.arange(1, len(rows) + 1, dtype=float),
        vectors @ cue / np.linalg.norm(vectors, axis=1),
        np.array([row[2] for row in rows], dtype=float),
    )
    scores = sum(
        weight * (factor - factor.min()) / (factor.max() - factor.min())
        for weight, factor in zip(WEIGHTS, factors, strict=True)
    )
    return [rows[place][0] for place in np.argsort(-scores, kind="stable")[:LIMIT]]
