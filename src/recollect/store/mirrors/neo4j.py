"""The mirror in Neo4j: entities, and facts between them with both times; each generation has a separate label.

A batch is one transaction. It locks its scopes, and ignores changes that are older than their state.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, LiteralString, TypeAlias, cast
from uuid import UUID

from neo4j import AsyncDriver, AsyncManagedTransaction, Query
from neo4j.exceptions import DriverError, Neo4jError
from neo4j.time import DateTime

from recollect.core.mirrors.questions import MirrorHits, MirrorQuestion
from recollect.core.mirrors.rows import MirrorBatch, MirroredRow, MirroredTable, RowKey
from recollect.errors import MirrorError
from recollect.store.mirrors.generations import Generation
from recollect.store.mirrors.mirror import translate_engine_errors

NAME = "neo4j"
HEADING = re.compile(r"^// name: (\w+)\n", re.MULTILINE)
PARTS = HEADING.split(Path(__file__).with_suffix(".cypher").read_text(encoding="utf-8"))[1:]
QUERIES = {name: body.strip() for name, body in zip(PARTS[::2], PARTS[1::2], strict=True)}
MADE = ("constrain_entities", "index_scopes", "constrain_positions", "constrain_facts", "await_indexes")
REMOVED = ("remove", "remove_positions", "drop_entities", "drop_scopes", "drop_positions")
OF_BEATS = -1
"""The number that stores how many times it was written to; no scope has it."""
PAGE = 1000
HOPS, MAX_START_ENTITIES, BEAM = 2, 10, 200
ENDS = ("subject_id", "object_id")
JsonRow: TypeAlias = dict[str, Any]


class Neo4jMirror:
    """Entities and facts in Neo4j."""

    name = NAME
    tables = frozenset({MirroredTable.ENTITIES, MirroredTable.FACTS})

    def __init__(self, driver: AsyncDriver, database: str, seconds: float) -> None:
        self._driver = driver
        self._database = database
        self._seconds = seconds

    async def create(self, generation: Generation) -> None:
        """Create the constraints and indexes of a generation."""
        for step in MADE:
            await self._run(step, generation)

    async def switch(self, generation: Generation) -> None:
        """Set the plain label on the nodes of this generation, and remove it from others."""
        for step in ("hide", "show"):
            await self._run(step, generation)

    async def remove(self, generation: Generation) -> None:
        """Delete the nodes of a generation, with its constraints and indexes."""
        for step in REMOVED:
            await self._run(step, generation)

    async def apply(self, generation: Generation, batches: Sequence[MirrorBatch]) -> None:
        """Apply the present and gone rows of all scopes in one transaction."""
        with translate_engine_errors(NAME, DriverError, Neo4jError):
            async with self._driver.session(database=self._database) as session:
                taken = await session.execute_write(write_batches, generation, batches)
        if taken != len(batches):
            raise MirrorError("The Neo4j mirror has advanced in the meantime. Try again.")

    async def read_positions(self, generation: Generation, scopes: Sequence[int]) -> dict[int, int]:
        """Read how far scopes were followed."""
        rows = await self._run("positions", generation, scopes=list(scopes))
        return {row["scope"]: row["position"] for row in rows}

    async def find_held(self, generation: Generation, scope_id: int, keys: Sequence[RowKey]) -> set[RowKey]:
        """Find which of these rows exist."""
        held: set[RowKey] = set()
        for table in (MirroredTable.ENTITIES, MirroredTable.FACTS):
            wanted = [str(key.id) for key in keys if key.table is table]
            rows = await self._run(f"held_{table.value}", generation, scope=scope_id, ids=wanted)
            held |= {RowKey(table, UUID(row["id"])) for row in rows}
        return held

    async def walk(self, generation: Generation, scope_id: int) -> AsyncIterator[Sequence[MirroredRow]]:
        """Read all entities of a scope, then all facts, in the order of their ids."""
        for table in (MirroredTable.ENTITIES, MirroredTable.FACTS):
            after = ""
            while True:
                asked = {"scope": scope_id, "after": after, "limit": PAGE}
                rows = await self._run(f"walk_{table.value}", generation, **asked)
                if not rows:
                    break
                yield [to_row(table, row) for row in rows]
                after = rows[-1]["id"]

    async def search_mirror(self, generation: Generation, question: MirrorQuestion) -> MirrorHits:
        """Start from the entities in the query, and follow facts valid at its times for two hops, nearest first."""
        with translate_engine_errors(NAME, DriverError, Neo4jError):
            async with self._driver.session(database=self._database) as session:
                return await session.execute_read(search_graph, generation, question)

    async def store_write_count(self, generation: Generation, beats: int) -> None:
        """Store how many times it was written to."""
        await self._run("beat", generation, beats=beats)

    async def read_beats(self, generation: Generation) -> int:
        """Read how many times it was written to."""
        return (await self.read_positions(generation, [OF_BEATS])).get(OF_BEATS, 0)

    async def close_mirror(self) -> None:
        """Close the connections."""
        await self._driver.close()

    async def _run(self, step: str, generation: Generation, **parameters: Any) -> list[JsonRow]:  # noqa: ANN401 - of any query
        """Run one query in a separate session."""
        query = Query(cast("LiteralString", compose_query(step, generation)), timeout=self._seconds)
        with translate_engine_errors(NAME, DriverError, Neo4jError):
            async with self._driver.session(database=self._database) as session:
                answer = await session.run(query, parameters)
                return [dict(record) async for record in answer]


def compose_query(step: str, generation: Generation, label: str = "") -> str:
    """Write a query for a generation; labels cannot be parameters."""
    return QUERIES[step].format(g=generation.place, family=generation.family, label=label)


async def run(transaction: AsyncManagedTransaction, query: str, **parameters: Any) -> list[JsonRow]:  # noqa: ANN401
    """Run a query inside a transaction."""
    answer = await transaction.run(cast("LiteralString", query), parameters)
    return [dict(record) async for record in answer]


async def write_batches(
    transaction: AsyncManagedTransaction, generation: Generation, batches: Sequence[MirrorBatch]
) -> int:
    """Write changes that are newer than the scopes' state; return the number of scopes that changed."""
    asked = [
        {"scope": batch.scope_id, "version": batch.version, "position": batch.position}
        for batch in sorted(batches, key=lambda batch: batch.scope_id)
    ]
    taken = {row["scope"] for row in await run(transaction, compose_query("hold", generation), scopes=asked)}
    chosen = [batch for batch in batches if batch.scope_id in taken]
    facts = list_rows(chosen, MirroredTable.FACTS)
    # A fact with other ends is another relation: the old one is deleted first.
    left = await run(
        transaction, compose_query("delete_facts", generation), rows=facts + list_gone(chosen, MirroredTable.FACTS)
    )
    await write_entities(transaction, generation, chosen)
    for row in facts:
        row |= {"subject": row["values"].pop(ENDS[0]), "object": row["values"].pop(ENDS[1])}
    await run(transaction, compose_query("merge_facts", generation), rows=facts)
    gone = list_gone(chosen, MirroredTable.ENTITIES)
    await run(transaction, compose_query("blank_entities", generation), rows=gone)
    ends = [{"scope": row["scope"], "id": row[end]} for row in left for end in ("subject", "object")]
    await run(transaction, compose_query("sweep_entities", generation), rows=gone + ends)
    await run(
        transaction, compose_query("advance", generation), scopes=[each for each in asked if each["scope"] in taken]
    )
    return len(chosen)


async def write_entities(
    transaction: AsyncManagedTransaction, generation: Generation, batches: Sequence[MirrorBatch]
) -> None:
    """Write entities and their merges."""
    entities = list_rows(batches, MirroredTable.ENTITIES)
    led = [{**row, "kept": row["values"].pop("merged_into")} for row in entities if "merged_into" in row["values"]]
    label = ", e:Entity" if generation.ready else ""
    await run(transaction, compose_query("merge_entities", generation, label), rows=entities)
    await run(
        transaction,
        compose_query("leave_merged", generation),
        rows=entities + list_gone(batches, MirroredTable.ENTITIES),
    )
    await run(transaction, compose_query("lead_on", generation), rows=led)


async def search_graph(
    transaction: AsyncManagedTransaction, generation: Generation, question: MirrorQuestion
) -> MirrorHits:
    """Follow facts from the entities of a query, and read how far the scope was followed."""
    known = await run(transaction, compose_query("positions", generation), scopes=[question.scope_id])
    position = known[0]["position"] if known else 0
    asked = {"scope": question.scope_id, "names": list(question.names), "limit": MAX_START_ENTITIES}
    frontier = [row["id"] for row in await run(transaction, compose_query("starts", generation), **asked)]
    found: dict[str, None] = {}
    times = {"scope": question.scope_id, "as_of": question.as_of, "at": question.at, "limit": BEAM}
    for _ in range(HOPS):
        rows = await run(transaction, compose_query("touching", generation), ids=frontier, **times) if frontier else []
        found |= {row["id"]: None for row in rows}
        frontier = [*dict.fromkeys(row["other"] for row in rows)]
    allowed = None if question.allowed is None else {str(each) for each in question.allowed}
    ids = [UUID(each) for each in found if allowed is None or each in allowed]
    return MirrorHits(ids[: question.limit], position)


def list_rows(batches: Iterable[MirrorBatch], table: MirroredTable) -> list[JsonRow]:
    """List the present rows of a table, in the engine's format."""
    return [
        {"scope": batch.scope_id, "id": str(row.id), "values": to_values(row.values)}
        for batch in batches
        for row in batch.present
        if row.table is table
    ]


def list_gone(batches: Iterable[MirrorBatch], table: MirroredTable) -> list[JsonRow]:
    """List the gone rows of a table."""
    return [
        {"scope": batch.scope_id, "id": str(key.id)} for batch in batches for key in batch.gone if key.table is table
    ]


def to_values(values: Mapping[str, Any]) -> JsonRow:
    """Convert IDs to text: the engine has no type for them."""
    return {name: str(each) if isinstance(each, UUID) else each for name, each in values.items()}


def to_row(table: MirroredTable, row: Mapping[str, Any]) -> MirroredRow:
    """Convert an answer of the engine to a row."""
    others = {"scope", "id", "generation"}
    values = {name: read_value(each) for name, each in row["values"].items() if name not in others}
    if table is MirroredTable.FACTS:
        values |= {ENDS[0]: row["subject"], ENDS[1]: row["object"]}
    elif row["kept"] is not None:
        values["merged_into"] = row["kept"]
    return MirroredRow(table, UUID(row["id"]), values)


def read_value(value: Any) -> Any:  # noqa: ANN401 - of any property
    """Convert a time to the record's type."""
    native: datetime | Any = value.to_native() if isinstance(value, DateTime) else value
    return native
