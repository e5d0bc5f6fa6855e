"""Compute the effect of a batch of writes on the stored items."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias
from uuid import UUID

from recollect.errors import ConflictError
from recollect.models.items import DropItem, Item, ItemOperation, ItemWrite, Path, PutItem
from recollect.models.memories import JSON, NewMemory

Name: TypeAlias = tuple[Path, str]


@dataclass(frozen=True, slots=True)
class CurrentItem:
    """The stored state of an item."""

    revision: int
    created_at: datetime
    memory_id: UUID | None


@dataclass(slots=True)
class WriteOutcome:
    """The result of a batch of writes."""

    results: dict[int, Item | bool] = field(default_factory=dict[int, "Item | bool"])
    """The result of each write, by its position in the batch."""
    kept: dict[Name, Item] = field(default_factory=dict[Name, Item])
    """The final items of the names that were put."""
    dropped: list[Name] = field(default_factory=list[Name])
    """Names that were stored before and are now deleted."""
    forgotten: list[UUID] = field(default_factory=list[UUID])
    """The memories of replaced or deleted items."""


def name_of(write: ItemWrite) -> Name:
    """Return the name of the item that a write changes."""
    return tuple(write.path), write.key


def choose_last(operations: Sequence[ItemOperation]) -> dict[Name, int]:
    """Find the last write of every name, by its position in the batch."""
    return {name_of(each): place for place, each in enumerate(operations) if isinstance(each, ItemWrite)}


def find_remembered(operations: Sequence[ItemOperation]) -> dict[int, NewMemory]:
    """Return the memories of a batch, by the position of their puts.

    A put that the same batch overwrites makes no memory.
    """
    puts = {place: operations[place] for place in choose_last(operations).values()}
    return {
        place: to_memory(put)
        for place, put in sorted(puts.items())
        if isinstance(put, PutItem) and put.text and put.memory
    }


def to_memory(put: PutItem) -> NewMemory:
    """Convert the text of an item to a memory; its metadata has the item's name."""
    named: dict[str, JSON] = {"item": {"path": [*put.path], "key": put.key}}
    return NewMemory(put.text, importance=put.importance, occurred_at=put.occurred_at, metadata=named)


def apply_writes(
    operations: Sequence[ItemOperation],
    standing: Mapping[Name, CurrentItem],
    memory_ids: Mapping[int, UUID],
    written_at: datetime,
) -> WriteOutcome:
    """Apply the writes in order to the stored items, or refuse them all."""
    outcome, now = WriteOutcome(), dict(standing)
    for place, write in enumerate(operations):
        if not isinstance(write, ItemWrite):
            continue
        name = name_of(write)
        before = now.get(name)
        check_revision(place, write.expected, before.revision if before else 0)
        if isinstance(write, DropItem):
            outcome.results[place] = now.pop(name, None) is not None
            outcome.kept.pop(name, None)
            continue
        item = make_item(write, before, memory_ids.get(place), written_at)
        now[name] = CurrentItem(item.revision, item.created_at, item.memory_id)
        outcome.results[place] = outcome.kept[name] = item
    outcome.dropped += [name for name in standing if name not in now]
    outcome.forgotten += [each.memory_id for each in standing.values() if each.memory_id is not None]
    return outcome


def check_revision(place: int, expected: int | None, actual: int) -> None:
    """Refuse a write that expects a different revision."""
    if expected not in (None, actual):
        found = f"the item has revision {actual}" if actual else "there is no such item"
        wanted = f"not revision {expected}" if expected else "and none was expected"
        raise ConflictError(f"operations.{place}: {found}, expected {wanted}. Read it again and retry.")


def make_item(put: PutItem, before: CurrentItem | None, memory_id: UUID | None, written_at: datetime) -> Item:
    """Return the item that a put stores."""
    return Item(
        path=tuple(put.path),
        key=put.key,
        value=put.value,
        text=put.text,
        memory_id=memory_id,
        revision=before.revision + 1 if before else 1,
        created_at=before.created_at if before else written_at,
        updated_at=written_at,
    )


def summarize_outcome(outcome: WriteOutcome) -> list[JSON]:
    """Return the outcome of writes without their content, for repeated requests."""
    return [note(result) for _, result in sorted(outcome.results.items())]


def note(result: Item | bool) -> JSON:  # noqa: FBT001 - what a drop comes to
    """Return the outcome of one write without its content."""
    if isinstance(result, bool):
        return result
    return [result.revision, result.created_at.isoformat(), result.updated_at.isoformat()]


def read_back(
    operations: Sequence[ItemOperation], noted: Sequence[JSON], memory_ids: Mapping[int, UUID]
) -> dict[int, Item | bool]:
    """Return the original results of a repeated batch."""
    places = [place for place, each in enumerate(operations) if isinstance(each, ItemWrite)]
    results: dict[int, Item | bool] = {}
    for place, each in zip(places, noted, strict=True):
        put = operations[place]
        if isinstance(put, PutItem) and isinstance(each, list):
            revision, created_at, updated_at = int(str(each[0])), *map(datetime.fromisoformat, map(str, each[1:]))
            standing = CurrentItem(revision - 1, created_at, None)
            results[place] = make_item(put, standing, memory_ids.get(place), updated_at)
        else:
            results[place] = bool(each)
    return results


def fingerprint_operations(operations: Sequence[ItemOperation]) -> bytes:
    """Hash the writes of a batch, to detect an idempotency key that is reused with other writes."""
    digest = hashlib.sha256(b"items\n")
    for write in operations:
        if isinstance(write, ItemWrite):
            digest.update(json.dumps(list_write_fields(write), sort_keys=True, separators=(",", ":")).encode() + b"\n")
    return digest.digest()


def list_write_fields(write: ItemWrite) -> list[object]:
    """List all fields of a write."""
    if isinstance(write, DropItem):
        return ["drop", [*write.path], write.key, write.expected]
    happened = write.occurred_at.astimezone(UTC).isoformat() if write.occurred_at else None
    vector = None if write.embedding is None else [float(number) for number in write.embedding]
    given = [write.text, vector, write.importance, happened, write.expected, write.memory]
    return ["put", [*write.path], write.key, dict(write.value), given]
