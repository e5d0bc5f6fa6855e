"""The mirror in Neo4j: entities, and facts between them in both times; every filling has a label of its own.

A batch is one transaction, which locks its scopes and takes nothing that is older than what they have followed.
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

from recollect.core.mirrors.questions import MirrorQuestion, Proposed
from recollect.core.mirrors.rows import Batch, MirroredRow, MirroredTable, RowKey
from recollect.errors import MirrorError
from recollect.store.mirrors.generations import Generation
from recollect.store.mirrors.mirror import told_as_ours

NAME = "neo4j"
HEADING = re.compile(r"^// name: (\w+)\n", re.MULTILINE)
PARTS = HEADING.split(Path(__file__).with_suffix(".cypher").read_text(encoding="utf-8"))[1:]
QUERIES = {name: body.strip() for name, body in zip(PARTS[::2], PARTS[1::2], strict=True)}
MADE = ("constrain_entities", "index_scopes", "constrain_positions", "constrain_facts", "await_indexes")
REMOVED = ("remove", "remove_positions", "drop_entities", "drop_scopes", "drop_positions")
OF_BEATS = -1
"""The number under which it is kept how many times it was written to; no scope has it."""
PAGE = 1000
HOPS, MOST_STARTS, BEAM = 2, 10, 200
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
        """Make the constraints and indexes of a generation."""
        for step in MADE:
            await self._run(step, generation)

    async def switch(self, generation: Generation) -> None:
        """Give the plain label to the nodes of this generation, and take it from others."""
        for step in ("hide", "show"):
            await self._run(step, generation)

    async def remove(self, generation: Generation) -> None:
        """Delete the nodes of a generation, and what was made for them."""
        for step in REMOVED:
            await self._run(step, generation)

    async def apply(self, generation: Generation, batches: Sequence[Batch]) -> None:
        """Apply what is present and what is gone, of all scopes in one transaction."""
        with told_as_ours(NAME, DriverError, Neo4jError):
            async with self._driver.session(database=self._database) as session:
                taken = await session.execute_write(write_batches, generation, batches)
        if taken != len(batches):
            raise MirrorError("The mirror neo4j has followed further meanwhile; try again.")

    async def read_positions(self, generation: Generation, scopes: Sequence[int]) -> dict[int, int]:
        """Read how far scopes were followed."""
        rows = await self._run("positions", generation, scopes=list(scopes))
        return {row["scope"]: row["position"] for row in rows}

    async def find_held(self, generation: Generation, scope_id: int, keys: Sequence[RowKey]) -> set[RowKey]:
        """Look these rows up."""
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

    async def ask(self, generation: Generation, question: MirrorQuestion) -> Proposed:
        """Start from what the cue names, and follow facts that held at its times for two hops, the nearest first."""
        with told_as_ours(NAME, DriverError, Neo4jError):
            async with self._driver.session(database=self._database) as session:
                return await session.execute_read(follow, generation, question)

    async def note_beat(self, generation: Generation, beats: int) -> None:
        """Note how many times it was written to."""
        await self._run("beat", generation, beats=beats)

    async def read_beats(self, generation: Generation) -> int:
        """Read how many times it was written to."""
        return (await self.read_positions(generation, [OF_BEATS])).get(OF_BEATS, 0)

    async def close(self) -> None:
        """Close the connections."""
        await self._driver.close()

    async def _run(self, step: str, generation: Generation, **parameters: Any) -> list[JsonRow]:  # noqa: ANN401 - of any query
        """Run one query by itself."""
        query = Query(cast("LiteralString", write(step, generation)), timeout=self._seconds)
        with told_as_ours(NAME, DriverError, Neo4jError):
            async with self._driver.session(database=self._database) as session:
                answer = await session.run(query, parameters)
                return [dict(record) async for record in answer]


def write(step: str, generation: Generation, label: str = "") -> str:
    """Write a query for a generation; labels cannot be parameters."""
    return QUERIES[step].format(g=generation.place, family=generation.family, label=label)


async def run(transaction: AsyncManagedTransaction, query: str, **parameters: Any) -> list[JsonRow]:  # noqa: ANN401
    """Run a query inside a transaction."""
    answer = await transaction.run(cast("LiteralString", query), parameters)
    return [dict(record) async for record in answer]


async def write_batches(transaction: AsyncManagedTransaction, generation: Generation, batches: Sequence[Batch]) -> int:
    """Write what is newer than what the scopes have; return how many of them took it."""
    asked = [
        {"scope": batch.scope_id, "version": batch.version, "position": batch.position}
        for batch in sorted(batches, key=lambda batch: batch.scope_id)
    ]
    taken = {row["scope"] for row in await run(transaction, write("hold", generation), scopes=asked)}
    chosen = [batch for batch in batches if batch.scope_id in taken]
    facts = list_rows(chosen, MirroredTable.FACTS)
    # A fact that has other ends now is another relation: the one before goes first.
    left = await run(
        transaction, write("delete_facts", generation), rows=facts + list_gone(chosen, MirroredTable.FACTS)
    )
    await write_entities(transaction, generation, chosen)
    for row in facts:
        row |= {"subject": row["values"].pop(ENDS[0]), "object": row["values"].pop(ENDS[1])}
    await run(transaction, write("merge_facts", generation), rows=facts)
    gone = list_gone(chosen, MirroredTable.ENTITIES)
    await run(transaction, write("blank_entities", generation), rows=gone)
    ends = [{"scope": row["scope"], "id": row[end]} for row in left for end in ("subject", "object")]
    await run(transaction, write("sweep_entities", generation), rows=gone + ends)
    await run(transaction, write("advance", generation), scopes=[each for each in asked if each["scope"] in taken])
    return len(chosen)


async def write_entities(
    transaction: AsyncManagedTransaction, generation: Generation, batches: Sequence[Batch]
) -> None:
    """Write entities, and which of them were merged into which."""
    entities = list_rows(batches, MirroredTable.ENTITIES)
    led = [{**row, "kept": row["values"].pop("merged_into")} for row in entities if "merged_into" in row["values"]]
    label = ", e:Entity" if generation.ready else ""
    await run(transaction, write("merge_entities", generation, label), rows=entities)
    await run(
        transaction, write("leave_merged", generation), rows=entities + list_gone(batches, MirroredTable.ENTITIES)
    )
    await run(transaction, write("lead_on", generation), rows=led)


async def follow(transaction: AsyncManagedTransaction, generation: Generation, question: MirrorQuestion) -> Proposed:
    """Follow facts from what a cue names, and see how far the scope was followed."""
    known = await run(transaction, write("positions", generation), scopes=[question.scope_id])
    position = known[0]["position"] if known else 0
    asked = {"scope": question.scope_id, "names": list(question.names), "limit": MOST_STARTS}
    frontier = [row["id"] for row in await run(transaction, write("starts", generation), **asked)]
    found: dict[str, None] = {}
    times = {"scope": question.scope_id, "as_of": question.as_of, "at": question.at, "limit": BEAM}
    for _ in range(HOPS):
        rows = await run(transaction, write("touching", generation), ids=frontier, **times) if frontier else []
        found |= {row["id"]: None for row in rows}
        frontier = [*dict.fromkeys(row["other"] for row in rows)]
    allowed = None if question.allowed is None else {str(each) for each in question.allowed}
    ids = [UUID(each) for each in found if allowed is None or each in allowed]
    return Proposed(ids[: question.limit], position)


def list_rows(batches: Iterable[Batch], table: MirroredTable) -> list[JsonRow]:
    """List what is present in a table, as the engine takes it."""
    return [
        {"scope": batch.scope_id, "id": str(row.id), "values": to_values(row.values)}
        for batch in batches
        for row in batch.present
        if row.table is table
    ]


def list_gone(batches: Iterable[Batch], table: MirroredTable) -> list[JsonRow]:
    """List what is gone from a table."""
    return [
        {"scope": batch.scope_id, "id": str(key.id)} for batch in batches for key in batch.gone if key.table is table
    ]


def to_values(values: Mapping[str, Any]) -> JsonRow:
    """Write ids as text: the engine knows none."""
    return {name: str(each) if isinstance(each, UUID) else each for name, each in values.items()}


def to_row(table: MirroredTable, row: Mapping[str, Any]) -> MirroredRow:
    """Turn what the engine answers into a row."""
    others = {"scope", "id", "generation"}
    values = {name: read_value(each) for name, each in row["values"].items() if name not in others}
    if table is MirroredTable.FACTS:
        values |= {ENDS[0]: row["subject"], ENDS[1]: row["object"]}
    elif row["kept"] is not None:
        values["merged_into"] = row["kept"]
    return MirroredRow(table, UUID(row["id"]), values)


def read_value(value: Any) -> Any:  # noqa: ANN401 - of any property
    """Read a time as the record has it."""
    native: datetime | Any = value.to_native() if isinstance(value, DateTime) else value
    return native
