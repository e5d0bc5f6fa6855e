"""Store recalls with the input of their ranking, read them, and delete old ones."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import numpy as np
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.core.recall.saved import (
    CHANNEL_STATS,
    HITS,
    SavedRecallData,
    decode,
    encode,
    from_cue,
    list_memories,
    readable,
    to_cue,
)
from recollect.core.service.numbers import tenant_of
from recollect.models.recall import SavedRecall, Status
from recollect.models.service import Scope
from recollect.store.database.pool import Database, load_queries
from recollect.store.service.scopes import names

QUERIES = load_queries(__file__)
END = UUID(int=2**128 - 1)


async def keep(database: Database, scope_id: int, kept: SavedRecallData) -> bool:
    """Store a recall; return False if one of its memories has been forgotten."""
    row = {
        "scope_id": scope_id,
        "id": kept.recall_id,
        "asked_at": kept.asked_at,
        "text": kept.cue.text,
        # No names of other scopes: an erased name must not stay here.
        "cue": Jsonb(from_cue(replace(kept.cue, also=()))),
        "vector": None if kept.vector is None else kept.vector.astype("<f4").tobytes(),
        "space_id": kept.space_id,
        "inputs": encode(kept.inputs),
        "listed": list_memories(kept.inputs, kept.hits),
        "hits": Jsonb(HITS.dump_python(kept.hits, mode="json")),
        "limit": kept.limit,
        "status": kept.status.value,
        "message": kept.message,
        "methods": Jsonb(dict(kept.methods)),
        "tallies": Jsonb(CHANNEL_STATS.dump_python(dict(kept.tallies), mode="json")),
        "milliseconds": kept.milliseconds,
    }
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["share"], {"scope_id": scope_id})
        stored = await connection.execute(QUERIES["keep"], row)
    return await stored.fetchone() is not None


async def fetch(database: Database, scope: Scope, recall_id: UUID) -> SavedRecallData | None:
    """Fetch a saved recall; None if the scope has none with this ID."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["fetch"], {**names(scope), "id": recall_id})
    row = await found.fetchone()
    with readable():
        return to_kept(recall_id, row) if row else None


def to_kept(recall_id: UUID, row: DictRow) -> SavedRecallData:
    """Convert a row to a saved recall."""
    return SavedRecallData(
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
        tallies=CHANNEL_STATS.validate_python(row["tallies"]),
        milliseconds=row["milliseconds"],
    )


async def page(database: Database, scope: Scope, cursor: UUID | None, limit: int) -> list[SavedRecall]:
    """Fetch saved recalls before a cursor, latest first."""
    bounds = {**names(scope), "cursor": cursor or END, "limit": limit}
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["page"], bounds)
    return [
        SavedRecall(row["id"], row["asked_at"], row["text"], Status(row["status"]), row["hits"], row["milliseconds"])
        for row in await found.fetchall()
    ]
