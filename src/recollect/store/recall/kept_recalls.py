"""Store recalls with the input of their ranking, read them back, and delete old ones."""

from __future__ import annotations

from uuid import UUID

import numpy as np
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.core.recall.kept import HITS, TALLIES, Kept, decode, encode, from_cue, list_memories, to_cue
from recollect.core.service.numbers import tenant_of
from recollect.models.kept import KeptRecall
from recollect.models.recall import Status
from recollect.models.service import Scope
from recollect.store.database.pool import Database, load_queries
from recollect.store.service.scopes import names

QUERIES = load_queries(__file__)
END = UUID(int=2**128 - 1)


async def keep(database: Database, scope_id: int, kept: Kept) -> bool:
    """Store a recall, and tell whether it was: not if a memory that it lists has been forgotten meanwhile."""
    row = {
        "scope_id": scope_id,
        "id": kept.recall_id,
        "asked_at": kept.asked_at,
        "text": kept.cue.text,
        "cue": Jsonb(from_cue(kept.cue)),
        "vector": None if kept.vector is None else kept.vector.astype("<f4").tobytes(),
        "space_id": kept.space_id,
        "inputs": encode(kept.inputs),
        "listed": list_memories(kept.inputs, kept.hits),
        "hits": Jsonb(HITS.dump_python(kept.hits, mode="json")),
        "limit": kept.limit,
        "status": kept.status.value,
        "message": kept.message,
        "methods": Jsonb(dict(kept.methods)),
        "tallies": Jsonb(TALLIES.dump_python(dict(kept.tallies), mode="json")),
        "milliseconds": kept.milliseconds,
    }
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["share"], {"scope_id": scope_id})
        stored = await connection.execute(QUERIES["keep"], row)
    return await stored.fetchone() is not None


async def fetch(database: Database, scope: Scope, recall_id: UUID) -> Kept | None:
    """Fetch a kept recall; None if there is none of this id in the scope."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["fetch"], {**names(scope), "id": recall_id})
    row = await found.fetchone()
    return to_kept(recall_id, row) if row else None


def to_kept(recall_id: UUID, row: DictRow) -> Kept:
    """Turn a row into a kept recall."""
    return Kept(
        recall_id=recall_id,
        asked_at=row["asked_at"],
        cue=to_cue(row["cue"]),
        vector=None if row["vector"] is None else np.frombuffer(row["vector"], "<f4"),
        space_id=row["space_id"],
        inputs=decode(row["inputs"]),
        hits=HITS.validate_python(row["hits"]),
        limit=row["limit"],
        status=Status(row["status"]),
        message=row["message"],
        methods=row["methods"],
        tallies=TALLIES.validate_python(row["tallies"]),
        milliseconds=row["milliseconds"],
    )


async def page(database: Database, scope: Scope, cursor: UUID | None, limit: int) -> list[KeptRecall]:
    """Fetch kept recalls before a cursor, the latest first."""
    bounds = {**names(scope), "cursor": cursor or END, "limit": limit}
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["page"], bounds)
    return [
        KeptRecall(row["id"], row["asked_at"], row["text"], Status(row["status"]), row["hits"], row["milliseconds"])
        for row in await found.fetchall()
    ]
