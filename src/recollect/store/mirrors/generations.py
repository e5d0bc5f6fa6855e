"""The mirrors that there are: each filling is a generation, one is filled beside the one that answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from psycopg.rows import DictRow

from recollect.errors import ConflictError
from recollect.models.service import EmbeddingSpace
from recollect.store.database.pool import Database, load_queries

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Generation:
    """One filling of a mirror: from which record, with the vectors of which space."""

    mirror: str
    number: int
    ready: bool
    """Whether it answers; if not, it is being filled."""
    incarnation: UUID
    space: EmbeddingSpace | None
    beats: int
    """How many times it was written to."""
    current: bool = True
    """Whether the record is still the one that it was filled from, with the same embedding space."""
    shard: int = 0
    """The number of the server that it follows, where that is one of several."""

    @property
    def family(self) -> str:
        """Return how the names of all generations of its server begin."""
        return f"{self.shard}_" if self.shard else ""

    @property
    def place(self) -> str:
        """Name it in its engine, apart from the generations of other servers."""
        return f"{self.family}{self.number}"


async def list_generations(database: Database, mirror: str | None = None) -> list[Generation]:
    """List the generations of all mirrors, or of one; what answers comes first."""
    async with database.reading(None) as connection:
        found = await connection.execute(QUERIES["list"], {"mirror": mirror})
    return [to_generation(row) for row in await found.fetchall()]


async def begin(database: Database, mirror: str) -> Generation:
    """Begin a generation beside the one that answers, or go on with one that was begun from the same record."""
    async with database.transaction(None) as connection:
        # Writes that are under way end first, and those that come later see that there is a mirror.
        await connection.execute(QUERIES["hold_log"])
        asked = await connection.execute(QUERIES["begin"], {"mirror": mirror, "shard": database.shard})
        row = await asked.fetchone()
    if row is None:
        raise ConflictError("This mirror is being built already, from another record: drop it, then build it again.")
    [begun] = [each for each in await list_generations(database, mirror) if each.number == row["generation"]]
    return begun


async def make_ready(database: Database, generation: Generation) -> Generation:
    """Let a generation answer from now on, in place of the one before, whose rows are removed afterwards."""
    parameters = {"mirror": generation.mirror, "generation": generation.number}
    async with database.transaction(None) as connection:
        await connection.execute(QUERIES["retire"], parameters)
        await connection.execute(QUERIES["make_ready"], parameters)
    return replace(generation, ready=True)


async def remove(database: Database, mirror: str, number: int | None = None) -> None:
    """Remove a generation of a mirror, or all of them."""
    async with database.transaction(None) as connection:
        await connection.execute(QUERIES["remove"], {"mirror": mirror, "generation": number})


async def note_beat(database: Database, generation: Generation, beats: int) -> None:
    """Note how many times a generation was written to; it knows the number itself by then."""
    parameters = {"mirror": generation.mirror, "generation": generation.number, "beats": beats}
    async with database.transaction(None) as connection:
        await connection.execute(QUERIES["beat"], parameters)


async def read_standing(database: Database, generation: Generation) -> tuple[int, int, float]:
    """Say how many scopes a generation holds, in how many it is behind, and by how many seconds at most."""
    parameters = {"mirror": generation.mirror, "generation": generation.number}
    async with database.reading(None) as connection:
        asked = await connection.execute(QUERIES["standing"], parameters)
    row = await asked.fetchone() or {}
    return row["scopes"], row["behind"], row["seconds"]


def to_generation(row: DictRow) -> Generation:
    """Turn a row into a generation."""
    space = None
    if row["space_id"] is not None:
        space = EmbeddingSpace(row["space_id"], row["model"], row["dimensions"], row["space_state"], row["precision"])
    return Generation(
        mirror=row["name"],
        number=row["generation"],
        ready=row["state"] == "ready",
        incarnation=row["incarnation"],
        space=space,
        beats=row["beats"],
        current=row["same_record"] and row["same_space"],
        shard=row["shard"],
    )
