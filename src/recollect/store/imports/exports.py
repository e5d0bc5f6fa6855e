"""Read the rows of a scope as lines of JSON, all of one moment, and store such lines in another scope as they were."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, LiteralString

from psycopg import IntegrityError
from psycopg.rows import DictRow
from psycopg.sql import SQL, Composable, Identifier

from recollect.core.imports.sections import COUNTERS, PROFILE, SECTIONS, VECTORS, Section
from recollect.core.text.terms import TERM_BITS, scope_bits
from recollect.core.text.variants import CARRIED, not_carried
from recollect.errors import InvalidInputError, SchemaError
from recollect.models.service import EmbeddingSpace, Scope
from recollect.store.database.pool import Connection, load_queries, show_cold, write_out
from recollect.store.memories.embeddings import vector_type, vectors_table
from recollect.store.service import jobs, scopes

GIVEN_LINES = SQL("jsonb_array_elements(%(lines)s::jsonb) as given (line)")
QUERIES = load_queries(__file__, given_lines=GIVEN_LINES)
TERM_MASK = (1 << TERM_BITS) - 1
BY_NAME = {section.name: section for section in SECTIONS}
AT_ONCE = 500
"""How many rows are read at once."""
SMALL = 1_000
"""Scopes of so many memories are read and stored in few round trips, all of it in memory."""
KEPT_BEFORE = {"purge_receipts"}
"""What an empty scope may hold: receipts of what it held before."""


@dataclass(frozen=True, slots=True)
class Held:
    """A scope that is to be exported."""

    scope_id: int
    agent: str
    user: str
    memories: int = 0
    cold: bool = False
    """Whether its rows are in an object."""


async def settle(connection: Connection) -> None:
    """Let the same rows be the same text in this transaction, wherever the scope's rows are."""
    await connection.execute(QUERIES["settle"])
    await show_cold(connection)


async def list_scopes(connection: Connection, agent: str | None, user: str | None) -> list[Held]:
    """List the scopes of a tenant that are wanted, in an order that is the same everywhere."""
    await settle(connection)
    found = await connection.execute(QUERIES["scopes"], {"agent": agent, "user": user})
    return [
        Held(row["id"], row["agent"], row["user"], row["memory_count"], row["cold"]) for row in await found.fetchall()
    ]


async def read_names(connection: Connection, scope_id: int) -> tuple[str, str, int]:
    """Read whose scope it is, and how many memories it has."""
    row = await (await connection.execute(QUERIES["names"], {"scope_id": scope_id})).fetchone()
    return (row["agent"], row["user"], row["memory_count"]) if row else ("", "", 0)


async def list_spaces(connection: Connection) -> list[EmbeddingSpace]:
    """List the embedding spaces."""
    found = await connection.execute(QUERIES["spaces"])
    return [EmbeddingSpace(state="", **row) for row in await found.fetchall()]


async def read_lines(connection: Connection, scope_id: int, section: str) -> AsyncIterator[Sequence[str]]:
    """Read the lines of a section, some at a time."""
    parameters: dict[str, object] = {"scope_id": scope_id, "term_mask": TERM_MASK}
    async with connection.cursor("exported") as cursor:
        await cursor.execute(*compose(section, parameters))
        while rows := await cursor.fetchmany(AT_ONCE):
            yield [row["line"] for row in rows]


async def read_small(connection: Connection, scope_id: int, names: Sequence[str]) -> dict[str, list[str]]:
    """Read all lines of sections of a scope in one round trip; of those that have any."""
    parameters: dict[str, object] = {"scope_id": scope_id, "term_mask": TERM_MASK}
    async with connection.pipeline():
        asked = {name: await connection.execute(*compose(name, parameters)) for name in names}
        found = {name: [row["line"] for row in await cursor.fetchall()] for name, cursor in asked.items()}
    return {name: lines for name, lines in found.items() if lines}


def compose(name: str, parameters: dict[str, object]) -> tuple[SQL, dict[str, object]]:
    """Write the query of a section, with its parameters."""
    if name.startswith(VECTORS):
        return write_query(name), parameters | {"space_id": int(name.removeprefix(VECTORS))}
    if name in (PROFILE, COUNTERS):
        return write_query(name), parameters
    return write_query(name), parameters | {"omitted": list(BY_NAME[name].omitted)}


@cache
def write_query(name: str) -> SQL:
    """Write the query of a section."""
    if name.startswith(VECTORS):
        return write_out(SQL(QUERIES["vectors"]).format(vectors=vectors_table(int(name.removeprefix(VECTORS)))))
    if name in (PROFILE, COUNTERS):
        return SQL(QUERIES["profile" if name == PROFILE else "counters"])
    section = BY_NAME[name]
    return write_out(SQL(QUERIES[section.query]).format(table=Identifier(section.table), key=order_by(section)))


def order_by(section: Section) -> Composable:
    """Write the order of a section's rows."""
    byte_by_byte: LiteralString = '{} collate "C"'
    columns = (SQL(byte_by_byte if each in section.text else "{}").format(Identifier(each)) for each in section.key)
    return SQL(", ").join(columns)


async def open_empty(connection: Connection, scope: Scope) -> int:
    """Lock a scope for an import, making it if it is new; refuse one that holds anything."""
    # Rows come as they are: a scope that is here already may be folded by any version.
    await scopes.read_place(await scopes.ask_place(connection, scope.agent, scope.user))
    opening = await scopes.read_opening(await scopes.ask_opening(connection, scope))
    for section in SECTIONS:
        if section.table in KEPT_BEFORE:
            continue
        query = SQL(QUERIES["is_filled"]).format(table=Identifier(section.table))
        row = await (await connection.execute(query, {"scope_id": opening.scope_id})).fetchone()
        if row and row["filled"]:
            whose = f"{scope.agent}, {scope.user}" if scope.user else scope.agent
            raise InvalidInputError(f"The scope of {whose} holds {section.table} already: import into an empty one.")
    return opening.scope_id


async def store_lines(connection: Connection, scope_id: int, section: Section, lines: Sequence[bytes]) -> None:
    """Store lines of a section of rows."""
    with refused(section.name):
        given = join(lines)
        known = await read_columns(connection, section)
        await check_fields(connection, section.name, known, given)
        parameters = {"scope_id": scope_id, "scope_bits": scope_bits(scope_id), "lines": given}
        await connection.execute(write_insert(section.table, tuple(known)), parameters)


async def store_small(connection: Connection, scope_id: int, given: Mapping[Section, Sequence[bytes]]) -> None:
    """Store sections of a scope together, in few round trips; each comes after those that its rows refer to."""
    async with connection.pipeline():
        asked = [await connection.execute(QUERIES["columns"], {"table": section.table}) for section in given]
        columns = [[row["name"] for row in await cursor.fetchall()] for cursor in asked]
        for (section, lines), found in zip(given.items(), columns, strict=True):
            known = [name for name in found if name not in section.omitted]
            fields = {"known": [name for name in known if name != "scope_id"], "lines": join(lines)}
            unknown = await connection.execute(QUERIES["unknown_fields"], fields)
            parameters = {"scope_id": scope_id, "scope_bits": scope_bits(scope_id), "lines": fields["lines"]}
            await connection.execute(write_insert(section.table, tuple(known)), parameters)
            asked.append(unknown)
    for cursor in asked[len(given) :]:
        refuse_unknown("An object", await cursor.fetchone())


@cache
def write_insert(table: str, known: tuple[str, ...]) -> SQL:
    """Write the statement that stores lines of a table."""
    own_terms = SQL(QUERIES["own_terms"])
    values = [own_terms if name == "terms" else Identifier("held", name) for name in known]
    return write_out(
        SQL(QUERIES["store_rows"]).format(
            table=Identifier(table), columns=SQL(", ").join(map(Identifier, known)), values=SQL(", ").join(values)
        )
    )


async def read_columns(connection: Connection, section: Section) -> list[str]:
    """List the columns of a section's table that an import writes."""
    found = await connection.execute(QUERIES["columns"], {"table": section.table})
    return [row["name"] for row in await found.fetchall() if row["name"] not in section.omitted]


async def check_fields(connection: Connection, section: str, known: Sequence[str], lines: str) -> None:
    """Refuse lines with a field that has no column: it would be lost."""
    asked = {"known": [each for each in known if each != "scope_id"], "lines": lines}
    found = await connection.execute(QUERIES["unknown_fields"], asked)
    refuse_unknown(section, await found.fetchone())


def refuse_unknown(what: str, row: DictRow | None) -> None:
    """Refuse a field that has no column."""
    if row is not None:
        raise InvalidInputError(f"{what} has a field that this program does not know: {row['field']}.")


async def read_one(connection: Connection, lines: Sequence[bytes]) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a section of one line, as the database reads it."""
    row = await (await connection.execute(QUERIES["read_given"], {"lines": join(lines)})).fetchone()
    return row["line"] if row else None


async def store_counters(connection: Connection, scope_id: int, lines: Sequence[bytes]) -> None:
    """Set the counters of a scope as they were."""
    with refused(COUNTERS):
        parameters = {"scope_id": scope_id, "lines": join(lines)}
        row = await (await connection.execute(QUERIES["store_counters"], parameters)).fetchone()
    if row is not None and row["text_version"] not in CARRIED:
        raise SchemaError(not_carried(row["text_version"]))


async def store_profile(connection: Connection, agent: str, lines: Sequence[bytes]) -> bool:
    """Give an agent a profile unless it has one; tell whether it goes by it now."""
    with refused(PROFILE):
        parameters = {"agent": agent, "lines": join(lines)}
        row = await (await connection.execute(QUERIES["store_profile"], parameters)).fetchone()
        return row is None or bool(row["same"])


async def store_vectors(connection: Connection, scope_id: int, space: EmbeddingSpace, lines: Sequence[bytes]) -> None:
    """Store lines of vectors of one space, each where its memory or its entity stands."""
    with refused(f"{VECTORS}{space.id}"):
        given = join(lines)
        await check_fields(connection, VECTORS, ("id", "embedding", "with_context"), given)
        query = SQL(QUERIES["store_vectors"]).format(vectors=vectors_table(space.id), type=vector_type(space))
        await connection.execute(query, {"scope_id": scope_id, "space_id": space.id, "lines": given})


async def await_vectors(connection: Connection, scope_id: int) -> int:
    """See that a job makes the vectors that a scope lacks in the active space; return how many."""
    active = await (await connection.execute(QUERIES["active_space"])).fetchone()
    if active is None:
        return 0
    query = SQL(QUERIES["await_vectors"]).format(vectors=vectors_table(active["id"]))
    row = await (await connection.execute(query, {"scope_id": scope_id})).fetchone()
    waiting: int = row["waiting"] if row else 0
    if waiting:
        await jobs.defer(connection, "embed", f"embed:{scope_id}", {"scope_id": scope_id})
    return waiting


def join(lines: Sequence[bytes]) -> str:
    """Write lines as one list in JSON: an array of texts would have to be quoted once more."""
    return f"[{','.join(decode(lines))}]"


def decode(lines: Sequence[bytes]) -> list[str]:
    """Read lines as text."""
    return [line.decode() for line in lines]


@contextmanager
def refused(section: str) -> Iterator[None]:
    """Say which section holds rows that do not fit together."""
    try:
        yield
    except IntegrityError:
        raise InvalidInputError(f"{section} holds rows that cannot be stored. Nothing was imported.") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"{section} is not UTF-8. Nothing was imported.") from None
