"""Store merges of entities, with the times at which they began and ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from recollect.core.knowledge.merges import EndedMerge
from recollect.models.knowledge import Entity, EntityType
from recollect.store.database.pool import Connection, load_queries

QUERIES = load_queries(__file__)


async def fetch_known(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> dict[UUID, Entity]:
    """Fetch names and types of entities by the IDs that lead to them; IDs of other scopes are absent."""
    if not ids:
        return {}
    found = await connection.execute(QUERIES["known"], {"scope_id": scope_id, "ids": list(ids)})
    return {row["asked"]: Entity(row["id"], row["name"], EntityType(row["type"])) for row in await found.fetchall()}


async def store_merge(connection: Connection, scope_id: int, kept: UUID, absorbed: UUID, moment: datetime) -> None:
    """Merge one entity into another from a time on."""
    parameters = {"scope_id": scope_id, "kept": kept, "absorbed": absorbed, "moment": moment}
    await connection.execute(QUERIES["add"], parameters)


async def end_merge(connection: Connection, scope_id: int, absorbed: UUID, moment: datetime) -> EndedMerge | None:
    """End the merge of an entity; return the ended merge, None if the entity was not merged."""
    parameters = {"scope_id": scope_id, "absorbed": absorbed, "moment": moment}
    row = await (await connection.execute(QUERIES["end"], parameters)).fetchone()
    return EndedMerge(absorbed, row["kept"], row["merged_at"]) if row else None


async def list_ended(connection: Connection, scope_id: int, merge: EndedMerge) -> list[tuple[UUID, UUID]]:
    """List the versions that a merge replaced, each with the ID of its fact."""
    parameters = {"scope_id": scope_id, "absorbed": merge.absorbed, "merged_at": merge.merged_at}
    found = await connection.execute(QUERIES["ended"], parameters)
    return [(row["id"], row["lineage"]) for row in await found.fetchall()]
