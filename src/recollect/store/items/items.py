"""Write and read the items of one scope."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import Vector
from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.core.items.rules import (
    CLOSING,
    before_gap,
    bound_paths,
    decode_path,
    encode_path,
    match_suffix,
    match_under,
    prepare_where,
)
from recollect.core.items.writes import CurrentItem, Name, WriteOutcome
from recollect.core.memories.vectors import unit_vector
from recollect.core.text.terms import analyse_cue, hash_term, slot_of
from recollect.errors import InvalidInputError
from recollect.models.items import FindItems, FoundItem, Item, ListPaths, Path
from recollect.models.memories import JSON, Embedding
from recollect.models.service import Scope
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories.embeddings import to_vector, vector_type, vectors_table
from recollect.store.memories.memories import drop_buffered
from recollect.store.service.scopes import ScopeHandle, names

QUERIES = load_queries(__file__)
TOO_LARGE = "The response would be too large. Use a lower limit or several requests."


class NamedItems:
    """The items of some names, read once for all operations that get one of them."""

    def __init__(self, asked: AsyncCursor[DictRow]) -> None:
        self._asked = asked
        self._found: dict[Name, Item] | None = None

    async def find_item(self, name: Name, *, vector: bool = False) -> Item | None:
        """Return the item of a name, if it exists, with its vector if requested."""
        if self._found is None:
            items = [to_item(row) for row in await self._asked.fetchall()]
            self._found = {(item.path, item.key): item for item in items}
        found = self._found.get(name)
        return found if found is None or vector else replace(found, embedding=())


async def ask_named(
    connection: Connection, scope: Scope, wanted: Collection[Name], largest: int, *, vectors: bool = False
) -> NamedItems:
    """Query the items of some names, with their vectors if requested."""
    return NamedItems(
        await connection.execute(
            QUERIES["named"], names(scope) | name_parameters(wanted) | {"vectors": vectors, "largest": largest}
        )
    )


async def query_state(connection: Connection, scope: Scope, wanted: Collection[Name]) -> AsyncCursor[DictRow]:
    """Query the state of names in a locked scope, without the values."""
    return await connection.execute(QUERIES["standing"], names(scope) | name_parameters(wanted))


async def read_standing(asked: AsyncCursor[DictRow]) -> tuple[datetime, dict[Name, CurrentItem]]:
    """Read the result of `query_state`, with the time of the write."""
    rows = await asked.fetchall()
    standing = {
        (decode_path(row["path"]), row["key"]): CurrentItem(row["revision"], row["created_at"], row["memory_id"])
        for row in rows
        if row["path"] is not None
    }
    return rows[0]["last_written_at"], standing


async def ask_newest(connection: Connection, scope: Scope, find: FindItems, largest: int) -> AsyncCursor[DictRow]:
    """Query the items under a path, newest first."""
    return await connection.execute(compose("newest", find.under), names(scope) | narrow(find, largest))


async def ask_own(
    connection: Connection, scope: Scope, find: FindItems, largest: int, embedding: Embedding
) -> AsyncCursor[DictRow]:
    """Query the items whose vectors are nearest to one with the same number of dimensions."""
    vector = {"vector": Vector(unit_vector(embedding, len(embedding))), "dimensions": len(embedding)}
    return await connection.execute(compose("own", find.under), names(scope) | narrow(find, largest) | vector)


async def ask_nearest(
    connection: Connection, place: ScopeHandle, find: FindItems, largest: int, vector: NDArray[np.float32]
) -> AsyncCursor[DictRow]:
    """Query the items whose memories are nearest to a vector of the active space."""
    assert place.space is not None  # noqa: S101 - a vector is only computed with its space
    query = compose(
        "nearest",
        find.under,
        vectors=vectors_table(place.space.id),
        type=vector_type(place.space),
        dimensions=sql.Literal(place.space.dimensions),
    )
    parameters = narrow(find, largest) | {"scope_id": place.scope_id, "vector": to_vector(place.space, vector)}
    return await connection.execute(query, parameters)


async def ask_wording(
    connection: Connection, place: ScopeHandle, find: FindItems, largest: int
) -> AsyncCursor[DictRow]:
    """Query the items whose memories share words with a text."""
    scope_id = place.scope_id or 0
    terms = analyse_cue(find.text)
    words = {
        "scope_id": scope_id,
        "terms": [hash_term(scope_id, term) for term in terms],
        "slots": [slot_of(term) for term in terms],
        "memory_count": place.memory_count,
    }
    return await connection.execute(compose("wording", find.under), narrow(find, largest) | words)


async def read_found(asked: AsyncCursor[DictRow]) -> tuple[FoundItem, ...]:
    """Read the found items, in their order."""
    return tuple(FoundItem(to_item(row), row["score"]) for row in await asked.fetchall())


async def ask_paths(connection: Connection, scope: Scope, listing: ListPaths) -> AsyncCursor[DictRow]:
    """Query the paths that hold items."""
    under = before_gap(tuple(listing.under))
    first, beyond = bound_paths(under)
    parameters = {
        "first": first,
        "beyond": beyond,
        "under": match_under(tuple(listing.under)),
        "suffix": match_suffix(tuple(listing.suffix)),
        "depth": listing.depth,
        "closing": CLOSING,
        "limit": listing.limit,
        "offset": listing.offset,
    }
    return await connection.execute(compose("paths", under), names(scope) | parameters)


async def read_paths(asked: AsyncCursor[DictRow]) -> tuple[Path, ...]:
    """Read the result of `ask_paths`."""
    return tuple(decode_path(row["path"]) for row in await asked.fetchall())


async def store_items(
    connection: Connection,
    scope: Scope,
    scope_id: int,
    outcome: WriteOutcome,
    embeddings: Mapping[Name, Embedding | None],
) -> None:
    """Store the result of a batch in a locked scope, and forget the memories of replaced items."""
    if outcome.kept:
        await connection.execute(
            QUERIES["store"], {"scope_id": scope_id, **build_item_parameters(outcome.kept, embeddings)}
        )
    if outcome.dropped:
        await connection.execute(QUERIES["drop"], {"scope_id": scope_id, **name_parameters(outcome.dropped)})
    if outcome.forgotten:
        # Last, when no item refers to these memories: it would be deleted with them.
        await drop_buffered(connection, scope, outcome.forgotten)


async def ask_outcome(connection: Connection, scope: Scope, key: str) -> AsyncCursor[DictRow]:
    """Query the outcome of a batch by its idempotency key."""
    return await connection.execute(QUERIES["outcome"], names(scope) | {"idempotency_key": key})


async def read_outcome(asked: AsyncCursor[DictRow]) -> list[JSON]:
    """Read the result of `ask_outcome`."""
    row = await asked.fetchone()
    noted: list[JSON] = (row["outcome"] or []) if row else []
    return noted


async def record_outcome(connection: Connection, scope_id: int, key: str, noted: Sequence[JSON]) -> None:
    """Store the outcome of a batch under its idempotency key."""
    parameters = {"scope_id": scope_id, "idempotency_key": key, "outcome": Jsonb(list(noted))}
    await connection.execute(QUERIES["record_outcome"], parameters)


def name_parameters(wanted: Collection[Name]) -> dict[str, object]:
    """Return the parameters of names."""
    return {"paths": [encode_path(path) for path, _ in wanted], "keys": [key for _, key in wanted]}


def compose(query: str, under: Sequence[str], **places: sql.Composable) -> sql.Composed:
    """Write a query for the items under a path; without a range, for all items."""
    parts = {name: sql.SQL(QUERIES[name]) for name in ("only", "shown")}
    return sql.SQL(QUERIES[query]).format(range=sql.SQL(QUERIES["range"] if under else ""), **parts, **places)


def narrow(find: FindItems, largest: int) -> dict[str, object]:
    """Return the parameters of a search."""
    first, beyond = bound_paths(tuple(find.under))
    conditions = prepare_where(find.where)
    return {
        "first": first,
        "beyond": beyond,
        "fields": [condition.field for condition in conditions],
        "operators": [condition.operator for condition in conditions],
        "operands": [Jsonb(condition.operand) for condition in conditions],
        "limit": find.limit,
        "offset": find.offset,
        "largest": largest,
    }


def build_item_parameters(kept: Mapping[Name, Item], embeddings: Mapping[Name, Embedding | None]) -> dict[str, object]:
    """Return the parameters of items."""
    rows = [*kept.values()]
    return {
        **name_parameters(kept),
        "values": [Jsonb(dict(item.value)) for item in rows],
        "texts": [item.text for item in rows],
        "embeddings": [
            None if embedding is None else Vector(unit_vector(embedding, len(embedding)))
            for embedding in (embeddings.get(name) for name in kept)
        ],
        "memory_ids": [item.memory_id for item in rows],
        "revisions": [item.revision for item in rows],
        "beginnings": [item.created_at for item in rows],
        "updates": [item.updated_at for item in rows],
    }


def to_item(row: DictRow) -> Item:
    """Turn a row into an item."""
    if row["value"] is None:
        raise InvalidInputError(TOO_LARGE)
    memory_id: UUID | None = row["memory_id"]
    return Item(
        path=decode_path(row["path"]),
        key=row["key"],
        value=row["value"],
        text=row["text"],
        memory_id=memory_id,
        revision=row["revision"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        embedding=tuple(row.get("numbers") or ()),
    )
