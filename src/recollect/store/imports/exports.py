"""Read all rows of a scope as lines of JSON from one snapshot, and store such lines in another scope."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import LiteralString

from psycopg import IntegrityError, errors
from psycopg.sql import SQL, Composable, Identifier, Literal

from recollect.core.imports.rows import list_fields
from recollect.core.imports.sections import COUNTERS, PROFILE, SECTIONS, VECTORS, Section
from recollect.core.text.terms import TERM_BITS, scope_bits
from recollect.errors import InvalidInputError
from recollect.models.service import EmbeddingSpace, Scope
from recollect.store.database.pool import Connection, load_queries, show_cold, to_sql
from recollect.store.memories.embeddings import vector_type, vectors_table
from recollect.store.service import jobs, scopes

GIVEN_LINES = SQL("jsonb_array_elements(convert_from(%(lines)b, 'UTF8')::jsonb) as given (line)")
QUERIES = load_queries(__file__, given_lines=GIVEN_LINES)
TERM_MASK = (1 << TERM_BITS) - 1
BY_NAME = {section.name: section for section in SECTIONS}
AT_ONCE = 500
"""Maximum number of rows to read at once."""
SMALL = 1_000
"""Scopes with at most this number of memories are read and stored in few round trips, in memory."""
KEPT_BEFORE = {"purge_receipts"}
"""Tables that may have rows in an empty scope: receipts of its earlier content."""
FILLED = SQL(" union all ").join(
    SQL(QUERIES["filled"]).format(name=Literal(each.table), table=Identifier(each.table))
    for each in SECTIONS
    if each.table not in KEPT_BEFORE
)


@dataclass(frozen=True, slots=True)
class ExportedScopeRow:
    """A scope to export."""

    scope_id: int
    agent: str
    user: str
    memories: int = 0
    cold: bool = False
    """Whether its rows are in an object."""


async def fix_text_format(connection: Connection) -> None:
    """Set the formats of text, so that the same rows have the same text in all storage tiers."""
    await connection.execute(QUERIES["settle"])
    await show_cold(connection)


async def list_scopes(connection: Connection, agent: str | None, user: str | None) -> list[ExportedScopeRow]:
    """List the requested scopes of a tenant, in an order that is the same on every server."""
    await fix_text_format(connection)
    found = await connection.execute(QUERIES["scopes"], {"agent": agent, "user": user})
    return [
        ExportedScopeRow(row["id"], row["agent"], row["user"], row["memory_count"], row["cold"])
        for row in await found.fetchall()
    ]


async def read_names(connection: Connection, scope_id: int) -> tuple[str, str, int]:
    """Read the agent and user of a scope, and its number of memories."""
    row = await (await connection.execute(QUERIES["names"], {"scope_id": scope_id})).fetchone()
    return (row["agent"], row["user"], row["memory_count"]) if row else ("", "", 0)


async def list_spaces(connection: Connection) -> list[EmbeddingSpace]:
    """List embedding spaces."""
    found = await connection.execute(QUERIES["spaces"])
    return [EmbeddingSpace(state="", **row) for row in await found.fetchall()]


async def read_lines(connection: Connection, scope_id: int, section: str) -> AsyncIterator[Sequence[str]]:
    """Read the lines of a section, in batches."""
    async with connection.cursor("exported") as cursor:
        await cursor.execute(write_query(section), {"scope_id": scope_id, "term_mask": TERM_MASK})
        while rows := await cursor.fetchmany(AT_ONCE):
            yield [row["line"] for row in rows]


async def read_small(connection: Connection, scope_id: int, names: Sequence[str]) -> dict[str, list[str]]:
    """Read all lines of sections of a scope with one statement; empty sections are absent."""
    found: dict[str, list[str]] = {name: [] for name in names}
    parameters = {"scope_id": scope_id, "term_mask": TERM_MASK}
    for row in await (await connection.execute(write_union(tuple(names)), parameters)).fetchall():
        found[names[int(row["place"])]].append(row["line"])
    return {name: lines for name, lines in found.items() if lines}


@cache
def write_union(names: tuple[str, ...]) -> SQL:
    """Write one query of all sections: one statement each would cost more than the rows of a small scope."""
    each = SQL(QUERIES["placed"])
    queries = (each.format(place=place, rows=write_query(name)) for place, name in enumerate(names))
    return to_sql(SQL(" union all ").join(queries))


@cache
def write_query(name: str) -> SQL:
    """Write the query of a section."""
    if name.startswith(VECTORS):
        space_id = int(name.removeprefix(VECTORS))
        return to_sql(SQL(QUERIES["vectors"]).format(vectors=vectors_table(space_id), space_id=Literal(space_id)))
    if name in (PROFILE, COUNTERS):
        return SQL(QUERIES["profile" if name == PROFILE else "counters"])
    section, omitted = BY_NAME[name], Literal([*BY_NAME[name].omitted])
    rows = SQL(QUERIES[section.query])
    return to_sql(rows.format(table=Identifier(section.table), key=order_by(section), omitted=omitted))


def order_by(section: Section) -> Composable:
    """Write the order of a section's rows."""
    byte_by_byte: LiteralString = '{} collate "C"'
    columns = (SQL(byte_by_byte if each in section.text else "{}").format(Identifier(each)) for each in section.key)
    return SQL(", ").join(columns)


async def forget_plans(connection: Connection) -> None:
    """Plan statements anew: nothing analyzes the tables that a transaction fills."""
    await connection.execute(QUERIES["forget_plans"])


async def open_empty(connection: Connection, scope: Scope) -> int:
    """Lock a scope for an import, creating it if it is new; refuse a scope with content."""
    opening = await scopes.read_opening(await scopes.ask_opening(connection, scope))
    row = await (await connection.execute(FILLED, {"scope_id": opening.scope_id})).fetchone()
    if row:
        whose = f"{scope.agent}, {scope.user}" if scope.user else scope.agent
        raise InvalidInputError(f"The scope of {whose} holds {row['filled']} already: import into an empty one.")
    return opening.scope_id


async def store_rows(connection: Connection, scope_id: int, section: Section, rows: bytes) -> None:
    """Store rows of a section, given as one JSON array that was checked."""
    with refused(section.name):
        parameters = {"scope_id": scope_id, "scope_bits": scope_bits(scope_id), "lines": rows}
        await connection.execute(write_insert(section), parameters)


@cache
def write_insert(section: Section) -> SQL:
    """Write the statement that stores rows of a table; other fields are left out."""
    own_terms, known = SQL(QUERIES["own_terms"]), ["scope_id", *list_fields(section.name)]
    values = [own_terms if name == "terms" else Identifier("held", name) for name in known]
    return to_sql(
        SQL(QUERIES["store_rows"]).format(
            table=Identifier(section.table),
            columns=SQL(", ").join(map(Identifier, known)),
            values=SQL(", ").join(values),
        )
    )


async def store_counters(connection: Connection, scope_id: int, rows: bytes) -> None:
    """Count the memories of a scope, and restore the counters that cannot be counted."""
    with refused(COUNTERS):
        parameters = {"scope_id": scope_id, "lines": rows}
        await connection.execute(QUERIES["store_counters"], parameters)


async def store_profile(connection: Connection, agent: str, rows: bytes) -> bool:
    """Set the profile of an agent unless it has one; return whether it is in use now."""
    with refused(PROFILE):
        row = await (await connection.execute(QUERIES["store_profile"], {"agent": agent, "lines": rows})).fetchone()
        return row is None or bool(row["same"])


async def store_vectors(connection: Connection, scope_id: int, space: EmbeddingSpace, rows: bytes) -> None:
    """Store vectors of one space for their memories or entities."""
    with refused(f"{VECTORS}{space.id}"):
        query = SQL(QUERIES["store_vectors"]).format(vectors=vectors_table(space.id), type=vector_type(space))
        await connection.execute(query, {"scope_id": scope_id, "space_id": space.id, "lines": rows})


async def await_vectors(connection: Connection, scope_id: int) -> int:
    """Queue a job for the vectors that a scope lacks in the active space; return their number."""
    active = await (await connection.execute(QUERIES["active_space"])).fetchone()
    if active is None:
        return 0
    query = SQL(QUERIES["await_vectors"]).format(vectors=vectors_table(active["id"]))
    row = await (await connection.execute(query, {"scope_id": scope_id})).fetchone()
    waiting: int = row["waiting"] if row else 0
    if waiting:
        await jobs.defer(connection, "embed", f"embed:{scope_id}", {"scope_id": scope_id})
    return waiting


@contextmanager
def refused(section: str) -> Iterator[None]:
    """Raise InvalidInputError with the section's name if rows do not fit together."""
    try:
        yield
    except (IntegrityError, errors.SyntaxError):
        raise InvalidInputError(f"{section} contains invalid rows. Nothing was imported.") from None
