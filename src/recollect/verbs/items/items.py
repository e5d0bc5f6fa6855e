"""Items: read and write JSON values under the caller's own names, a whole batch in one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.items.rules import check_operations, divide_limit, is_write
from recollect.core.items.writes import (
    Name,
    apply_writes,
    choose_last,
    find_remembered,
    fingerprint_operations,
    read_back,
    summarize_outcome,
)
from recollect.core.memories.vectors import unit_vector
from recollect.core.text.checks import check_idempotency_key
from recollect.models.items import FindItems, GetItem, ItemOperation, ItemResult, ListPaths, PutItem
from recollect.models.memories import JSON, Embedding, NewMemory
from recollect.models.recall import Cue
from recollect.models.service import Caller, Scope
from recollect.store.database.pool import Connection
from recollect.store.items import items
from recollect.store.memories.columns import Row
from recollect.store.service.scopes import ScopeHandle, locate
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.memories.perform import execute_write
from recollect.verbs.memories.rows import (
    BatchState,
    ExtraQuery,
    ExtraWrite,
    LinkedRows,
    Write,
    embed_missing,
    prepare_in_time,
)
from recollect.verbs.recall.recall import find_vectors

Answer: TypeAlias = Callable[[], Awaitable[ItemResult]]


@dataclass(frozen=True, slots=True)
class ItemSearch:
    """The location of searched texts, and their vectors by the numbers of their operations."""

    place: ScopeHandle | None
    vectors: Mapping[int, NDArray[np.float32] | None]


@dataclass(slots=True)
class ItemBatch:
    """A running batch: its operations, and their results by number."""

    scope: Scope
    operations: Sequence[ItemOperation]
    sought: ItemSearch
    room: int
    """Maximum size of each query's result."""
    key: str
    answers: dict[int, Answer] = field(default_factory=dict[int, Answer])
    results: dict[int, ItemResult] = field(default_factory=dict[int, ItemResult])
    read_noted: Callable[[], Awaitable[list[JSON]]] | None = None
    """The outcome of an earlier run of the same batch, if it has a key."""


def check_directions(operations: Sequence[ItemOperation]) -> None:
    """Refuse vectors without a direction."""
    for operation in operations:
        if isinstance(operation, PutItem | FindItems) and operation.embedding is not None:
            unit_vector(operation.embedding, len(operation.embedding))


async def batch(
    parts: Dependencies,
    caller: Caller,
    scope: Scope,
    operations: Sequence[ItemOperation],
    key: str = "",
    place: ScopeHandle | None = None,
) -> list[ItemResult]:
    """Run a batch of key-value operations in one transaction. Reads see the state before the writes."""
    check_operations(operations)
    check_directions(operations)
    check_idempotency_key(key)
    going = ItemBatch(scope, operations, await seek(parts, scope, operations, place), divide_limit(operations), key)
    if any(map(is_write, operations)):
        await change(parts, caller, going)
    else:
        async with parts.database.reading(scope.tenant_id, one_snapshot=len(operations) > 1) as connection:
            await ask_all(connection, going)
    await read_all(going)
    return [going.results[number] for number in range(len(operations))]


async def seek(
    parts: Dependencies, scope: Scope, operations: Sequence[ItemOperation], place: ScopeHandle | None
) -> ItemSearch:
    """Embed the searched texts, before a connection is taken."""
    finds = {number: each for number, each in enumerate(operations) if isinstance(each, FindItems)}
    texts = {number: find.text for number, find in finds.items() if find.text.strip()}
    if not texts:
        return ItemSearch(place, {})
    found = place or await locate(parts.database, scope)
    vectors = await find_vectors(parts, [Cue(text) for text in texts.values()], found)
    return ItemSearch(found, {number: vector for number, (vector, _) in zip(texts, vectors, strict=True)})


async def ask_all(connection: Connection, going: ItemBatch) -> None:
    """Send all queries of a batch; their results are read when all are sent."""
    gets = {number: each for number, each in enumerate(going.operations) if isinstance(each, GetItem)}
    if gets:
        wanted = {number: (tuple(get.path), get.key) for number, get in gets.items()}
        vectors = any(get.vector for get in gets.values())
        named = await items.ask_named(connection, going.scope, set(wanted.values()), going.room, vectors=vectors)
        going.answers |= {
            number: partial(named.find_item, name, vector=gets[number].vector) for number, name in wanted.items()
        }
    for number, each in enumerate(going.operations):
        if isinstance(each, FindItems):
            going.answers[number] = await ask_found(connection, going, number, each)
        elif isinstance(each, ListPaths):
            listed = await items.ask_paths(connection, going.scope, each)
            going.answers[number] = partial(items.read_paths, listed)


async def read_all(going: ItemBatch) -> None:
    """Read the remaining results."""
    for number, answer in going.answers.items():
        if number not in going.results:
            going.results[number] = await answer()


async def ask_found(connection: Connection, going: ItemBatch, number: int, find: FindItems) -> Answer:
    """Send the query of a search: by its vector, by its text, or the newest."""
    if find.embedding is not None:
        return partial(items.read_found, await items.ask_own(connection, going.scope, find, going.room, find.embedding))
    place = going.sought.place
    if number not in going.sought.vectors or place is None:
        return partial(items.read_found, await items.ask_newest(connection, going.scope, find, going.room))
    vector = going.sought.vectors[number]
    if vector is None:
        return partial(items.read_found, await items.ask_wording(connection, place, find, going.room))
    return partial(items.read_found, await items.ask_nearest(connection, place, find, going.room, vector))


async def change(parts: Dependencies, caller: Caller, going: ItemBatch) -> None:
    """Write the changes of a batch, with the memories of its texts; a key writes them once."""
    remembered = find_remembered(going.operations)
    new = [*remembered.values()]
    prepared = await prepare_in_time(new)
    vectors = await embed_missing(parts, new)
    fingerprint = fingerprint_operations(going.operations) if going.key else b""
    also_ask = also_store(going, remembered)
    write = Write(caller, going.scope, prepared, vectors, going.key, fingerprint, also_ask)
    async with parts.database.transaction(going.scope.tenant_id) as connection:
        receipts = await execute_write(parts, connection, write)
    if not going.results and going.read_noted:
        made = dict(zip(remembered, (receipt.id for receipt in receipts), strict=True))
        going.results |= read_back(going.operations, await going.read_noted(), made)


def also_store(going: ItemBatch, remembered: Mapping[int, NewMemory]) -> ExtraQuery:
    """Prepare the rows that are written together with the memories, once the scope is locked."""
    last = choose_last(going.operations)

    async def query_items(connection: Connection) -> ExtraWrite:
        await ask_all(connection, going)
        asked = await items.query_state(connection, going.scope, last)
        if going.key:
            noted = await items.ask_outcome(connection, going.scope, going.key)
            going.read_noted = partial(items.read_outcome, noted)

        async def store_outcome(
            connection: Connection, scope_id: int, rows: Sequence[Row], _together: BatchState
        ) -> LinkedRows:
            # Before anything is written: if an operation cannot be answered, the batch is refused.
            await read_all(going)
            written_at, standing = await items.read_standing(asked)
            made: dict[int, UUID] = dict(zip(remembered, (row.id for row in rows), strict=True))
            outcome = apply_writes(going.operations, standing, made, written_at)
            await items.store_items(
                connection, going.scope, scope_id, outcome, find_item_vectors(going.operations, last)
            )
            if going.key:
                await items.record_outcome(connection, scope_id, going.key, summarize_outcome(outcome))
            going.results |= outcome.results
            return LinkedRows(rows)

        return store_outcome

    return query_items


def find_item_vectors(operations: Sequence[ItemOperation], last: Mapping[Name, int]) -> dict[Name, Embedding | None]:
    """Find the vectors of the last put of each name."""
    puts = {name: operations[number] for name, number in last.items()}
    return {name: put.embedding for name, put in puts.items() if isinstance(put, PutItem)}
