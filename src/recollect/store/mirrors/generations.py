"""The generations of mirrors: a new one is filled while the current one answers."""

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
    """One filling of a mirror: its source record, and the embedding space of its vectors."""

    mirror: str
    number: int
    ready: bool
    """Whether it answers; if not, it is being filled."""
    incarnation: UUID
    space: EmbeddingSpace | None
    beats: int
    """How many times it was written to."""
    current: bool = True
    """Whether it was filled from the current record, with the current embedding space."""
    shard: int = 0
    """The number of the server that it follows, if there are several."""

    @property
    def family(self) -> str:
        """Return the common prefix of the names of its server's generations."""
        return f"{self.shard}_" if self.shard else ""

    @property
    def place(self) -> str:
        """Return its name in the engine, different from generations of other servers."""
        return f"{self.family}{self.number}"


async def list_generations(database: Database, mirror: str | None = None) -> list[Generation]:
    """List the generations of all mirrors, or of one; active ones first."""
    async with database.reading(None) as connection:
        found = await connection.execute(QUERIES["list"], {"mirror": mirror})
    return [to_generation(row) for row in await found.fetchall()]


async def begin(database: Database, mirror: str) -> Generation:
    """Start a generation in addition to the active one, or resume one that has the same source."""
    async with database.transaction(None) as connection:
        # Running writes end first, and later ones see that there is a mirror.
        await connection.execute(QUERIES["hold_log"])
        asked = await connection.execute(QUERIES["begin"], {"mirror": mirror, "shard": database.shard})
        row = await asked.fetchone()
    if row is None:
        raise ConflictError("This mirror is being built from another database. Drop it and build it again.")
    [begun] = [each for each in await list_generations(database, mirror) if each.number == row["generation"]]
    return begun


async def activate_generation(database: Database, generation: Generation) -> Generation:
    """Activate a generation in place of the previous one, whose rows are removed afterwards."""
    parameters = {"mirror": generation.mirror, "generation": generation.number}
    async with database.transaction(None) as connection:
        await connection.execute(QUERIES["retire"], parameters)
        await connection.execute(QUERIES["activate_generation"], parameters)
    return replace(generation, ready=True)


async def remove(database: Database, mirror: str, number: int | None = None) -> None:
    """Remove a generation of a mirror, or all of them."""
    async with database.transaction(None) as connection:
        await connection.execute(QUERIES["remove"], {"mirror": mirror, "generation": number})


async def store_write_count(database: Database, generation: Generation, beats: int) -> None:
    """Store how many times a generation was written to; the mirror has stored the number before."""
    parameters = {"mirror": generation.mirror, "generation": generation.number, "beats": beats}
    async with database.transaction(None) as connection:
        await connection.execute(QUERIES["beat"], parameters)


async def read_lag(database: Database, generation: Generation) -> tuple[int, int, float]:
    """Return how many scopes a generation has, in how many it is behind, and the maximum lag in seconds."""
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
