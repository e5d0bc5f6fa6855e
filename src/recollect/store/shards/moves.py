"""Moves in the catalog: which buckets go where, how far they have come, and the switch, which decides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from psycopg import errors
from psycopg.rows import DictRow

from recollect.errors import ConflictError
from recollect.store.database.ownership import owning
from recollect.store.database.pool import load_queries
from recollect.store.shards import catalog

QUERIES = load_queries(__file__)


class MoveState(StrEnum):
    """How far a move has come; until it is switched the source is in charge."""

    COPYING = "copying"
    FENCED = "fenced"
    SWITCHED = "switched"
    DONE = "done"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Move:
    """Some buckets of a tenant that go from one shard to another."""

    id: int
    tenant_id: int
    first_bucket: int
    last_bucket: int
    source: int
    target: int
    state: MoveState

    @property
    def name(self) -> str:
        """Return what its publication, its subscription and its slot are called."""
        return f"recollect_move_{self.id}"


async def list_under_way(owner: str, tenant_id: int | None = None) -> list[Move]:
    """List the moves that have not ended, of one tenant or of all."""
    async with owning(owner) as connection:
        rows = await (await connection.execute(QUERIES["under_way"], {"tenant_id": tenant_id})).fetchall()
    return [to_move(row) for row in rows]


async def begin(owner: str, tenant_id: int, buckets: tuple[int, int], target: int) -> Move:
    """Give the buckets a placement of their own, and note that they are to move."""
    first, last = buckets
    async with owning(owner) as connection, connection.transaction():
        await connection.execute(catalog.QUERIES["lock"])
        placed = (await catalog.read_tenants(connection, tenant_id))[tenant_id].find(first)
        if last > placed.last_bucket:
            raise ConflictError(f"Buckets {first} to {last} lie on several shards: move each part by itself.")
        if placed.shard_id == target:
            raise ConflictError("These buckets lie there already.")
        asked = {"tenant_id": tenant_id, "first_bucket": first, "last_bucket": last}
        asked |= {"source": placed.shard_id, "target": target}
        try:
            row = await (await connection.execute(QUERIES["begin"], asked)).fetchone()
        except errors.UniqueViolation:
            raise ConflictError("Another move of this tenant is under way: let it end, or stop it.") from None
        if (placed.first_bucket, placed.last_bucket) != buckets:
            asked |= {"start": placed.first_bucket, "end": placed.last_bucket, "generation": placed.generation}
            await connection.execute(QUERIES["undivided"], asked)
            await connection.execute(QUERIES["divide"], asked)
    assert row is not None  # noqa: S101 - an insert returns its row
    return to_move(row)


async def set_state(owner: str, move: Move, state: MoveState, reason: str = "") -> None:
    """Note how far a move has come."""
    async with owning(owner) as connection:
        await connection.execute(QUERIES["set_state"], {"id": move.id, "state": state, "reason": reason})


async def switch(owner: str, move: Move) -> None:
    """Decide: from now on the target serves the buckets, under the next generation."""
    buckets = {"tenant_id": move.tenant_id, "first_bucket": move.first_bucket}
    async with owning(owner) as connection, connection.transaction():
        await connection.execute(catalog.QUERIES["lock"])
        await connection.execute(QUERIES["switch"], buckets | {"source": move.source, "target": move.target})
        await connection.execute(QUERIES["set_state"], {"id": move.id, "state": MoveState.SWITCHED, "reason": ""})


async def list_parts(owner: str, shard: str) -> list[tuple[str, tuple[int, int]]]:
    """List what a shard serves: tenants' names, and their buckets."""
    async with owning(owner) as connection:
        rows = await (await connection.execute(QUERIES["parts"], {"name": shard})).fetchall()
    return [(row["name"], (row["first_bucket"], row["last_bucket"])) for row in rows]


def to_move(row: DictRow) -> Move:
    """Turn a row into a move."""
    ends = (row["first_bucket"], row["last_bucket"], row["source"], row["target"])
    return Move(row["id"], row["tenant_id"], *ends, MoveState(row["state"]))
